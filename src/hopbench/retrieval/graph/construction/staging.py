"""The results of finished build stages on disk, so that a killed build continues after them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from hopbench.retrieval.graph.schema import LIST_COLUMNS
from hopbench.retrieval.support.checksum import file_sum
from hopbench.retrieval.support.forked import in_copies
from hopbench.retrieval.support.locking import exclusive_and_gone
from hopbench.retrieval.support.notice import notice

SUMS = "parts.json"  # versions before parts wrote sums.json: what they left is no stage, and is done again
Part = tuple[str, pd.DataFrame]
"""The name of a table, and some of its rows."""


@dataclass(frozen=True)
class Stage:
    """The tables of a finished stage, each a file for every part."""

    folder: Path

    def parts(self, table: str, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The parts of a table, or some of its columns, in the order in which they were made; none of an absent one."""
        for file in self._files(table):
            yield _with_lists(pd.read_parquet(file, columns=None if columns is None else list(columns)))

    def intact(self) -> bool:
        """Whether every file is as it was written."""
        try:
            return bool(json.loads((self.folder / SUMS).read_text(encoding="utf-8")) == _sums(self.folder))
        except (OSError, ValueError):
            return False

    def sums(self) -> str:
        """What tells it from a stage with other files."""
        return (self.folder / SUMS).read_text(encoding="utf-8")

    def _files(self, table: str) -> list[Path]:
        return sorted(self.folder.glob(f"{table}-*.parquet"))


@dataclass(frozen=True)
class Stages:
    """The tables of several stages, one stage after the other."""

    stages: Sequence[Stage]

    def parts(self, table: str, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """See `Stage.parts`."""
        return (part for stage in self.stages for part in stage.parts(table, columns))

    def sums(self) -> str:
        """See `Stage.sums`."""
        return "".join(stage.sums() for stage in self.stages)


@dataclass(frozen=True)
class Staging:
    """A build's folder: each stage appears whole or not at all."""

    folder: Path

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Wait until no other process builds the same graph: both would use this folder, and one build is enough."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with exclusive_and_gone(self.folder.with_name(f"{self.folder.name}.lock")):
            yield

    def load_or_compute(self, name: str, compute: Callable[[], Iterable[Part]]) -> Stage:
        """A stage: read back if it is finished, else computed and saved, each part as it comes."""
        return self.load(name) or self.save(name, compute())

    def each(self, name: str, computes: Sequence[Callable[[], Iterable[Part]]], processes: int = 1) -> list[Stage]:
        """A stage for each of `computes`.

        With several `processes` each is made in a copy of this process that leaves it here, as many at a time; one that
        a copy did not finish is made in this process.
        """
        stages = [partial(self.load_or_compute, f"{name}-{number:05}", one) for number, one in enumerate(computes)]
        if min(processes, len(stages)) > 1:
            in_copies(stages, processes)
        return [stage() for stage in stages]

    def load(self, name: str) -> Stage | None:
        """A finished stage; None where there is none, or, with a notice, where a file of it is damaged."""
        stage = Stage(self.folder / name)
        if not stage.folder.is_dir():
            return None
        if stage.intact():
            return stage
        notice(f"{stage.folder} does not read as it was written: that stage of the graph is done again")
        shutil.rmtree(stage.folder)
        return None

    def save(self, name: str, parts: Iterable[Part]) -> Stage:
        """Write a stage, each part as it comes, in place of what it may have been."""
        stage, unfinished = Stage(self.folder / name), self.folder / f"{name}.partial"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        numbers: Counter[str] = Counter()
        for table, part in parts:
            part.to_parquet(unfinished / f"{table}-{numbers[table]:06}.parquet")
            numbers[table] += 1
        (unfinished / SUMS).write_text(json.dumps(_sums(unfinished)), encoding="utf-8")
        self.forget(name)
        unfinished.rename(stage.folder)
        return stage

    def forget(self, name: str) -> None:
        """Remove a stage, if there is one."""
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def clear(self) -> None:
        """Forget all stages."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _sums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each table by file name."""
    return {path.name: file_sum(path) for path in sorted(folder.glob("*.parquet"))}


def _with_lists(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{name: table[name].map(list) for name in table.columns if name in LIST_COLUMNS})
