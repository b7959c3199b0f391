"""A graph's folder while it is written: which tables are whole, so that a killed write goes on with the next one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hopbench.retrieval.support.checksum import file_sum

JOURNAL = "written.jsonl"  # a line for each table that is whole: the SHA-256 of its files


class UnfinishedGraph:
    """The folder of a graph with this `key`; empty unless a write of the same key began it. "" is never gone on with.

    Files that are not as they were written are removed with their table, as are those of a table that is not whole.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder, self.tables = folder, dict[str, Mapping[str, str]]()
        lines = _lines(folder / JOURNAL) if key else []
        if lines[:1] != [{"key": key}]:
            lines = [{"key": key}]
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        whole = [line for line in lines[1:] if _intact(folder, line["sums"])]
        self.tables = {line["table"]: line["sums"] for line in whole}
        for file in self._others():
            file.unlink()
        (folder / JOURNAL).write_text("".join(json.dumps(line) + "\n" for line in [lines[0], *whole]), "utf-8")

    def once(self, table: str, write: Callable[[], None]) -> None:
        """Have `write` write a table's files, unless they are there."""
        if table in self.tables:
            return
        write()
        sums = {file.name: file_sum(file) for file in self._others()}
        with (self.folder / JOURNAL).open("a", encoding="utf-8") as journal:
            journal.write(json.dumps({"table": table, "sums": sums}) + "\n")
        self.tables[table] = sums

    def finished(self) -> dict[str, str]:
        """The SHA-256 of each file by its name; nothing else is in the folder then."""
        (self.folder / JOURNAL).unlink()
        return {name: digest for sums in self.tables.values() for name, digest in sorted(sums.items())}

    def _others(self) -> list[Path]:
        """The files of no table."""
        known = {JOURNAL, *(name for sums in self.tables.values() for name in sums)}
        return [file for file in sorted(self.folder.iterdir()) if file.name not in known]


def _lines(journal: Path) -> list[dict[str, Any]]:
    """What a journal has; a line that was being written when the process was killed is its last, and is left out."""
    found: list[dict[str, Any]] = []
    with suppress(OSError, ValueError):
        found.extend(map(json.loads, journal.read_text(encoding="utf-8").splitlines()))
    return found


def _intact(folder: Path, sums: Mapping[str, str]) -> bool:
    try:
        return all(file_sum(folder / name) == digest for name, digest in sums.items())
    except OSError:
        return False
