"""The results of finished build stages on disk, so that a killed build continues after them."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from hopbench.retrieval.graph.schema import LIST_COLUMNS
from hopbench.retrieval.support.locking import exclusive_and_gone
from hopbench.retrieval.support.notice import notice

SUMS = "sums.json"
Tables = Mapping[str, pd.DataFrame]


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

    def load_or_compute(self, stage: str, compute: Callable[[], Tables]) -> Tables:
        """The tables of a stage: read back if the stage is finished, else computed and saved."""
        done = self.folder / stage
        if done.is_dir():
            if (tables := read_stage(done)) is not None:
                return tables
            notice(f"{done} does not read as it was written: that stage of the graph is done again")
            shutil.rmtree(done)
        tables = compute()
        partial = self.folder / f"{stage}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, table in tables.items():
            table.to_parquet(partial / f"{name}.parquet")
        (partial / SUMS).write_text(json.dumps(_sums(partial)), encoding="utf-8")
        partial.rename(done)
        return tables

    def clear(self) -> None:
        """Forget all stages."""
        shutil.rmtree(self.folder, ignore_errors=True)


def read_stage(folder: Path) -> Tables | None:
    """The tables of a finished stage; None where a file is not as it was written, or is missing."""
    try:
        if json.loads((folder / SUMS).read_text(encoding="utf-8")) != _sums(folder):
            return None
        return {file.stem: _with_lists(pd.read_parquet(file)) for file in sorted(folder.glob("*.parquet"))}
    except (OSError, ValueError):  # pyarrow's errors are ValueErrors
        return None


def _sums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each table by file name."""
    sums = {}
    for path in sorted(folder.glob("*.parquet")):
        with path.open("rb") as file:
            sums[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return sums


def _with_lists(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{name: table[name].map(list) for name in table.columns if name in LIST_COLUMNS})
