"""What training is given, read and checked before any graph is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.eval.files import refuse_unwritable
from hopbench.flows.studies.train_options import TrainOptions
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.eval.types import Benchmark


def names_of(given: Sequence[str], benchmarks: Sequence[Benchmark]) -> list[str]:
    """The sets' names; InputError where there is none, or one is there twice."""
    names = [benchmark.name for benchmark in benchmarks]
    if not names or len(set(given)) < len(given):
        raise InputError(f"--dataset {', '.join(given) or 'is not given'}: name at least one data set, each once")
    if len(set(names)) < len(names):
        raise InputError(
            f"--dataset {', '.join(given)}: two have one name, which must tell them apart: rename a folder"
        )
    return names


def check_files(options: TrainOptions, benchmarks: Sequence[Benchmark], triples: Mapping[str, Path]) -> None:
    """Refuse files that cannot be written, or that hold what is learned from."""
    files = [file for file in (options.out, options.held_out) if file is not None]
    folders = [benchmark.folder.resolve() for benchmark in benchmarks if benchmark.folder]
    for file in files:
        refuse_unwritable(file)
        place = file.resolve()
        inside = any(place.is_relative_to(folder) for folder in folders)
        if place.exists() and (inside or place in {one.resolve() for one in triples.values()}):
            raise InputError(f"cannot write {file}: it is there already, among what is learned from: name another file")
    if len({file.resolve() for file in files}) < len(files):
        raise InputError(f"--out {options.out} and --held-out {options.held_out} are one file: name two")


def check_questions(benchmarks: Sequence[Benchmark], folds: int) -> None:
    """Refuse a set without gold, and a number of folds for which there are too few questions."""
    asked = {benchmark.name: sum(bool(question.gold) for question in benchmark.questions) for benchmark in benchmarks}
    for name, count in asked.items():
        if not count:
            raise InputError(f"{name} has no question with gold passages: nothing to learn from")
    count = sum(asked.values())
    if folds and not 2 <= folds <= count:
        wanted = f"2 to {count}, the number of questions, or 0" if count > 1 else "0 for a single question"
        raise InputError(f"--folds {folds}: wanted is {wanted} for no cross-validation")


def embedders_of(given: Sequence[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Data set → its embedders, of `EMBEDDER` for all sets and `EMBEDDER=SET,…` for some; refuses a set without one."""
    result: dict[str, list[str]] = {name: [] for name in names}
    for text in given:
        embedder, equals, sets = text.partition("=")
        for name in sets.split(",") if equals else names:
            if name not in result:
                raise UnknownNameError("data set under --embedder", name, names)
            if embedder in result[name]:
                raise InputError(f"--embedder {', '.join(given)}: name each once, {embedder} is twice for {name}")
            result[name].append(embedder)
    bare = [name for name, of_set in result.items() if not of_set]
    if bare:
        raise InputError(f"--embedder {', '.join(given)}: none for {', '.join(bare)}; name it, or one for all sets")
    return result


def triples_of(given: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """Data set → file of `NAME=FILE`; refuses any other form, a set that is not trained on, and a missing file."""
    result: dict[str, Path] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not equals or not Path(file).is_file():
            raise InputError(f"--triples {text}: write NAME=FILE, with a file that is there")
        if name not in names:
            raise UnknownNameError("data set under --triples", name, names)
        if name in result:
            raise InputError(f"--triples {', '.join(given)}: {name} has two files: name one")
        result[name] = Path(file)
    return result
