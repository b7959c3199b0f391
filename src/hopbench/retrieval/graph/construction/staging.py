"""Results of finished build stages on disk, so that a killed build resumes after them.

The search for nearest neighbours is a single long stage; `Rounds` saves its progress about once a minute.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic

import numpy as np
import pandas as pd

from hopbench.retrieval.graph.schema import LIST_COLUMNS
from hopbench.retrieval.search.candidates import Candidates, Held, blocks
from hopbench.retrieval.support.cached_files import file_sum
from hopbench.retrieval.support.locking import exclusive_and_gone
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.processes import collector_off, in_threads

SUMS = "parts.json"
Part = tuple[str, pd.DataFrame]
"""The name of a table, and some of its rows."""


@dataclass(frozen=True)
class Stage:
    """The tables of a finished stage, one file per part."""

    folder: Path

    def parts(self, table: str, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The parts of a table (or some of its columns) in the order they were written; none if the table is absent."""
        for file in self._files(table):
            yield _with_lists(pd.read_parquet(file, columns=None if columns is None else list(columns)))

    def intact(self) -> bool:
        """Whether every file matches its checksum."""
        try:
            return bool(json.loads((self.folder / SUMS).read_text(encoding="utf-8")) == _sums(self.folder))
        except (OSError, ValueError):
            return False

    def sums(self) -> str:
        """The checksums, which identify the stage's content."""
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
        """Wait until no other process is building the same graph: both would use this folder."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with exclusive_and_gone(self.folder.with_name(f"{self.folder.name}.lock")):
            yield

    def load_or_compute(self, name: str, compute: Callable[[], Iterable[Part]]) -> Stage:
        """Load a stage if it is finished; else compute it and save each part as it comes."""
        return self.load(name) or self.save(name, compute())

    def each(self, name: str, computes: Sequence[Callable[[], Iterable[Part]]], processes: int = 1) -> list[Stage]:
        """Load or compute one stage per entry of `computes`.

        With several `processes` the stages are computed by as many workers; what a worker that was killed (by a system
        without memory, say) leaves is computed in this process.
        """
        stages = [partial(self.load_or_compute, f"{name}-{number:05}", one) for number, one in enumerate(computes)]
        if min(processes, len(stages)) > 1:
            from joblib import Parallel, delayed

            with suppress(BrokenExecutor):
                Parallel(processes, max_nbytes=None)(delayed(_in_worker)(stage) for stage in stages)
        return [stage() for stage in stages]

    def load(self, name: str) -> Stage | None:
        """Load a finished stage; None if there is none, or (with a warning) if one of its files is damaged."""
        stage = Stage(self.folder / name)
        if not stage.folder.is_dir():
            return None
        if stage.intact():
            return stage
        notice(f"{stage.folder} is damaged (its checksums differ): that stage of the build is repeated")
        shutil.rmtree(stage.folder)
        return None

    def save(self, name: str, parts: Iterable[Part]) -> Stage:
        """Write a stage part by part, replacing an earlier one."""
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
        """Remove a stage if it exists."""
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def clear(self) -> None:
        """Remove all stages."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _in_worker(stage: Callable[[], Stage]) -> Stage:
    with collector_off():
        return stage()


def _sums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each table by file name."""
    return {path.name: file_sum(path) for path in sorted(folder.glob("*.parquet"))}


def _with_lists(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{name: table[name].map(list) for name in table.columns if name in LIST_COLUMNS})


ROUND_SECONDS = 60.0  # saving a round of a million chunks takes about 3 s
PART_CANDIDATES = 4_000_000  # 48 MB
CANDIDATES, LEAST, LEFT = "candidates", "least", "left"  # the tables of a round

Work = Callable[[], None]
Search = Callable[[Candidates, Sequence[Work]], None]
"""Runs all work items, which offer candidates, in any order on as many threads as BLAS uses."""


def at_once(found: Candidates, works: Sequence[Work]) -> None:
    """Run all work items without saving progress (a `Search`)."""
    in_threads(lambda work: work(), works)


@dataclass(frozen=True)
class Rounds:
    """A `Search` that saves its candidates in `staging`, under `name`, after every `seconds`."""

    staging: Staging
    name: str
    seconds: float = ROUND_SECONDS

    def __call__(self, found: Candidates, works: Sequence[Work]) -> None:
        """See `Search`; work items that an earlier process finished are skipped and their candidates taken over."""
        left = self._taken_over(found, len(works))
        while left:
            left = self._round(works, left)
            if left:
                self.staging.save(self.name, _tables(found.held(), left, len(works)))

    def _round(self, works: Sequence[Work], numbers: Sequence[int]) -> list[int]:
        """Run work items until the time is up, at least one; returns the indices of those left."""
        end = monotonic() + self.seconds

        def done(number: int) -> bool:
            if number != numbers[0] and monotonic() >= end:
                return False
            works[number]()
            return True

        return [number for number, is_done in zip(numbers, in_threads(done, numbers), strict=True) if not is_done]

    def _taken_over(self, found: Candidates, works: int) -> list[int]:
        """Take over saved candidates; returns the indices of the work items left."""
        saved = self.staging.load(self.name)
        left = None if saved is None else next(saved.parts(LEFT))
        if saved is None or left is None or left["of"].iloc[0] != works:
            return list(range(works))
        candidates = pd.concat(saved.parts(CANDIDATES))
        rows, others, products = (candidates[name].to_numpy() for name in ("row", "candidate", "product"))
        found.take_over(Held(rows, others, products, next(saved.parts(LEAST))["least"].to_numpy()))
        return left["work"].tolist()


def _tables(held: Held, left: Sequence[int], works: int) -> Iterator[Part]:
    for part in blocks(max(len(held.rows), 1), PART_CANDIDATES):
        columns = {"row": held.rows[part], "candidate": held.candidates[part], "product": held.products[part]}
        yield CANDIDATES, pd.DataFrame(columns)
    yield LEAST, pd.DataFrame({"least": held.least})
    yield LEFT, pd.DataFrame({"work": np.array(left), "of": works})
