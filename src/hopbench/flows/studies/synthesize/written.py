"""Synthetic sets on the disk: a folder holds all of them, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopbench.eval.synthesize.write import Origin
    from hopbench.eval.types import Benchmark

UNFINISHED = ".unfinished"
EXAMPLES = 3


@dataclass(frozen=True)
class ToWrite:
    """A set with the provenance of each question; `name` is its folder within --out, empty for --out itself."""

    name: str
    benchmark: Benchmark
    provenances: Sequence[Mapping[str, Any]]
    origin: Origin


@dataclass(frozen=True)
class Written:
    """A data set that was written: its folder, questions by type, and what was left out for which reason."""

    folder: Path
    role: str
    types: Mapping[str, int]
    dropped: Mapping[str, int]
    wanted: int
    examples: Sequence[str]


def write_sets(out: Path, sets: Sequence[ToWrite], wanted: int) -> list[Written]:
    """Write all sets beside each other, then move them into place; `wanted` questions of each were asked for.

    What a process that was killed has left behind is written anew. Raises InputError where a folder cannot be written.
    """
    from hopbench.eval.synthesize.write import write_synthetic

    staging = out / UNFINISHED
    rmtree(staging, ignore_errors=True)
    try:
        for one in sets:
            write_synthetic(_staged(out, one), one.benchmark, one.provenances, one.origin)
        for one in sets:
            _move(_staged(out, one), out / one.name)
    finally:
        rmtree(staging, ignore_errors=True)
    return [_written(out, one, wanted) for one in sets]


def _staged(out: Path, one: ToWrite) -> Path:
    """A folder of the final name, which the card has."""
    return out / UNFINISHED / (one.name or out.resolve().name)


def _move(staged: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for file in sorted(staged.iterdir()):
        file.rename(folder / file.name)


def _written(out: Path, one: ToWrite, wanted: int) -> Written:
    questions = one.benchmark.questions
    return Written(
        folder=out / one.name,
        role=one.origin.role,
        types=dict(sorted(Counter(question.type for question in questions).items())),
        dropped=one.origin.dropped,
        wanted=wanted,
        examples=[question.text for question in questions[:EXAMPLES]],
    )
