"""What reads a format of data set: a loader, and the rules by which a plug-in's is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hopbench.eval.benchmarks.beir import Parsed
from hopbench.eval.benchmarks.fields import Record, Rows
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.support.errors import HopBenchError, InputError
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.types import Passage


@dataclass(frozen=True)
class Loader:
    """Reads one format of records: JSON lines, a JSON array, a table, or a Hub set's rows.

    `detects` says of a file's first record whether the format is this one. `read` gets the file's name and its records,
    each with its place, and returns all passages and questions; what it cannot use it refuses with `place.error(…)`.
    """

    detects: Callable[[Record], bool]
    read: Callable[[str, Rows], Parsed]


def usable(name: str, loader: object) -> Loader:
    """Refuse what is no loader."""
    if not isinstance(loader, Loader):
        raise InputError("it is no Loader (hopbench.eval.benchmarks.formats)")
    if name == "beir":
        raise InputError("the format 'beir' is HopBench's own: give the loader another name")
    return loader


def detects(name: str, loader: Loader, record: Record) -> bool:
    """Whether a plug-in's loader takes a record; one that fails at it takes none, with a notice."""
    try:
        return bool(loader.detects(record))
    except Exception as error:  # a plug-in may raise anything
        notice(f"the loader {name!r} cannot tell whether a file is its own ({type(error).__name__}: {error})")
        return False


def read_by(name: str, loader: Loader) -> Callable[[str, Rows], Parsed]:
    """The `read` of a plug-in's loader; its faults and results of another form are errors that name it."""

    def read(source: str, rows: Rows) -> Parsed:
        try:
            read_passages, read_questions = loader.read(source, rows)
            passages, questions = tuple(read_passages), tuple(read_questions)
        except HopBenchError:
            raise
        except Exception as error:  # a plug-in may raise anything
            raise InputError(f"{source}: the loader {name!r} failed with {type(error).__name__}: {error}") from error
        for part, kind in ((passages, Passage), (questions, BenchmarkQuestion)):
            if other := next((one for one in part if not isinstance(one, kind)), None):
                raise InputError(
                    f"{source}: the loader {name!r} returned {type(other).__name__} where {kind.__name__} belongs: it "
                    "returns all passages, then all questions"
                )
        return passages, questions

    return read
