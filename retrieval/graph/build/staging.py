"""The results of finished build stages on disk, so that a killed build continues after them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from hopbench.retrieval.graph.schema import LIST_COLUMNS
from hopbench.retrieval.support.checksum import file_sum
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

    def _files(self, table: str) -> list[Path]:
        return sorted(self.folder.glob(f"{table}-*.parquet"))


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
        stage = Stage(self.folder / name)
        if stage.folder.is_dir():
            if stage.intact():
                return stage
            notice(f"{stage.folder} does not read as it was written: that stage of the graph is done again")
            shutil.rmtree(stage.folder)
        partial = self.folder / f"{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        numbers: Counter[str] = Counter()
        for table, part in compute():
            part.to_parquet(partial / f"{table}-{numbers[table]:06}.parquet")
            numbers[table] += 1
        (partial / SUMS).write_text(json.dumps(_sums(partial)), encoding="utf-8")
        partial.rename(stage.folder)
        return stage

    def clear(self) -> None:
        """Forget all stages."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _sums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each table by file name."""
    return {path.name: file_sum(path) for path in sorted(folder.glob("*.parquet"))}


def _with_lists(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{name: table[name].map(list) for name in table.columns if name in LIST_COLUMNS})
