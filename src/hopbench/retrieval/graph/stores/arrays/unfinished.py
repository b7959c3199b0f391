"""A graph's folder while it is written: which tables are whole, so that a killed write goes on with the next one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from hopbench.retrieval.support.checksum import file_sum
from hopbench.retrieval.support.notice import notice

JOURNAL = "written.jsonl"  # the key, and a line for each table that is whole: the SHA-256 of its files

KEY, ENTRY = TypeAdapter(str), TypeAdapter(tuple[str, dict[str, str]])


class _Kept(NamedTuple):
    """The key of a write, and the tables that it finished."""

    key: str
    tables: dict[str, dict[str, str]]


class UnfinishedGraph:
    """The folder of a graph with this `key`; empty unless a write of the same key began it. "" is never gone on with.

    A table of which a file is not as it was written is written again, as is one that was not whole.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder = folder
        self.tables: dict[str, Mapping[str, str]] = {}
        kept = _kept(folder / JOURNAL)
        if key and kept.key == key:
            self.tables = {table: sums for table, sums in kept.tables.items() if _intact(folder, table, sums)}
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        for file in self._others():
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        (folder / JOURNAL).write_text(f"{json.dumps(key)}\n", encoding="utf-8")
        for table in self.tables:
            self._note(table)

    def once(self, table: str, write: Callable[[], None]) -> None:
        """Have `write` write a table's files, unless they are there."""
        if table in self.tables:
            return
        write()
        self.tables[table] = {file.name: file_sum(file) for file in self._others()}
        self._note(table)

    def _note(self, table: str) -> None:
        with (self.folder / JOURNAL).open("a", encoding="utf-8") as journal:
            journal.write(f"{json.dumps([table, self.tables[table]])}\n")

    def finished(self) -> dict[str, str]:
        """The SHA-256 of each file by its name; nothing else is in the folder then."""
        (self.folder / JOURNAL).unlink()
        return {name: digest for sums in self.tables.values() for name, digest in sorted(sums.items())}

    def _others(self) -> list[Path]:
        """The files of no table."""
        known = {JOURNAL, *(name for sums in self.tables.values() for name in sums)}
        return [file for file in sorted(self.folder.iterdir()) if file.name not in known]


def _kept(journal: Path) -> _Kept:
    """What a journal says until its first line that does not read: the last, if the process was killed at it."""
    kept = _Kept("", {})
    with suppress(OSError, ValueError):
        first, *lines = journal.read_text(encoding="utf-8").splitlines()
        kept = _Kept(KEY.validate_json(first), {})
        for line in lines:
            table, sums = ENTRY.validate_json(line)
            kept.tables[table] = sums
    return kept


def _intact(folder: Path, table: str, sums: Mapping[str, str]) -> bool:
    try:
        same = all(file_sum(folder / name) == digest for name, digest in sums.items())
    except OSError:
        same = False
    if not same:
        notice(f"{folder}: a file of {table} does not read as it was written: that table is written again")
    return same
