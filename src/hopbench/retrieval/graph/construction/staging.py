"""Results of finished build stages on disk, so that a killed build resumes after them.

The search for nearest neighbours is a single long stage; `Staging.search` saves its progress about once a minute.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from time import monotonic

import numpy as np
import pandas as pd

from hopbench.retrieval.graph.schema import LIST_COLUMNS
from hopbench.retrieval.search.candidates import Candidates, Held, blocks
from hopbench.retrieval.support.cached_files import file_sum
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.processes import collector_off, in_threads

SUMS = "parts.json"
Part = tuple[str, pd.DataFrame]
"""The name of a table, and some of its rows."""


@dataclass(frozen=True)
class Stage:
    """The tables of a finished stage or of several, one stage after the other; a file per part."""

    folders: tuple[Path, ...]

    def __add__(self, other: Stage) -> Stage:
        return Stage(self.folders + other.folders)

    def parts(self, table: str, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The parts of a table (or some of its columns) in the order they were written; none if the table is absent."""
        for file in chain.from_iterable(sorted(folder.glob(f"{table}-*.parquet")) for folder in self.folders):
            part = pd.read_parquet(file, columns=None if columns is None else list(columns))
            yield part.assign(**{name: part[name].map(list) for name in LIST_COLUMNS.intersection(part.columns)})


def intact(folder: Path) -> bool:
    """Whether every file of a stage matches its checksum."""
    try:
        return bool(json.loads((folder / SUMS).read_text(encoding="utf-8")) == _sums(folder))
    except (OSError, ValueError):
        return False


def _in_worker(stage: Callable[[], Stage]) -> Stage:
    with collector_off():
        return stage()


def _sums(folder: Path) -> dict[str, str]:
    return {path.name: file_sum(path) for path in sorted(folder.glob("*.parquet"))}


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
class Staging:
    """A build's folder: each stage appears whole or not at all."""

    folder: Path

    def load_or_compute(self, name: str, compute: Callable[[], Iterable[Part]]) -> Stage:
        """Load a stage if it is finished; else compute it and save each part as it comes."""
        return self.load(name) or self.save(name, compute())

    def each(self, name: str, computes: Sequence[Callable[[], Iterable[Part]]], processes: int = 1) -> Stage:
        """Load or compute one stage per entry of `computes`.

        With several `processes` the stages are computed by as many workers; what a worker that was killed (by a system
        without memory, say) leaves is computed in this process.
        """
        stages = [partial(self.load_or_compute, f"{name}-{number:05}", one) for number, one in enumerate(computes)]
        if min(processes, len(stages)) > 1:
            from joblib import Parallel, delayed

            with suppress(BrokenExecutor):
                Parallel(processes, max_nbytes=None)(delayed(_in_worker)(stage) for stage in stages)
        return Stage(tuple(folder for stage in stages for folder in stage().folders))

    def load(self, name: str) -> Stage | None:
        """Load a finished stage; None if there is none, or (with a warning) if one of its files is damaged."""
        folder = self.folder / name
        if not folder.is_dir():
            return None
        if intact(folder):
            return Stage((folder,))
        notice(f"{folder} is damaged (its checksums differ): that stage of the build is repeated")
        shutil.rmtree(folder)
        return None

    def save(self, name: str, parts: Iterable[Part]) -> Stage:
        """Write a stage part by part, replacing an earlier one."""
        unfinished = self.folder / f"{name}.partial"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        numbers: Counter[str] = Counter()
        for table, part in parts:
            part.to_parquet(unfinished / f"{table}-{numbers[table]:06}.parquet")
            numbers[table] += 1
        (unfinished / SUMS).write_text(json.dumps(_sums(unfinished)), encoding="utf-8")
        self.forget(name)
        return Stage((unfinished.rename(self.folder / name),))

    def forget(self, name: str = "") -> None:
        """Remove a stage if it exists; without a name, all of them."""
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def search(self, name: str, found: Candidates, works: Sequence[Work], *, seconds: float = ROUND_SECONDS) -> None:
        """Run all work items as `at_once` does, but save the candidates as a stage every so many seconds.

        Work items that an earlier process finished are skipped and their candidates taken over.
        """
        left = list(range(len(works)))
        saved = self.load(name)
        if saved is not None and (rest := next(saved.parts(LEFT)))["of"].iloc[0] == len(works):
            candidates = pd.concat(saved.parts(CANDIDATES))
            rows, others, products = (candidates[name].to_numpy() for name in ("row", "candidate", "product"))
            found.take_over(Held(rows, others, products, next(saved.parts(LEAST))["least"].to_numpy()))
            left = rest["work"].tolist()
        while left:

            def done(number: int, first: int = left[0], end: float = monotonic() + seconds) -> bool:
                if number != first and monotonic() >= end:
                    return False
                works[number]()
                return True

            left = [number for number, is_done in zip(left, in_threads(done, left), strict=True) if not is_done]
            if left:
                self.save(name, _tables(found.held(), left, len(works)))


def _tables(held: Held, left: Sequence[int], works: int) -> Iterator[Part]:
    for part in blocks(max(len(held.rows), 1), PART_CANDIDATES):
        columns = {"row": held.rows[part], "candidate": held.candidates[part], "product": held.products[part]}
        yield CANDIDATES, pd.DataFrame(columns)
    yield LEAST, pd.DataFrame({"least": held.least})
    yield LEFT, pd.DataFrame({"work": np.array(left), "of": works})
