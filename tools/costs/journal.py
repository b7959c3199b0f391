"""What a long measurement found so far, a JSON line each: a measurement that was killed goes on after the last."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from hopbench.retrieval.support.errors import InputError

KEPT = ConfigDict(extra="forbid", allow_inf_nan=False)  # what is written as a line, and read from one
Line = dict[str, Any]


@dataclass(frozen=True)
class Journal:
    """The lines of a file, the first of which are the `settings` that all of them were measured with."""

    file: Path
    settings: Mapping[str, Any]

    @classmethod
    def open(cls, file: Path, settings: Mapping[str, Any]) -> Journal:
        """Continue the file, or begin it. Raises InputError where it was begun with other settings."""
        journal = cls(file, dict(settings))
        lines = list(journal.lines())
        if not lines:
            file.parent.mkdir(parents=True, exist_ok=True)
            journal.add({"settings": dict(settings)})
        elif "settings" not in lines[0]:
            raise InputError(f"{file} does not begin with what it was measured with: remove it, or name another --out")
        elif lines[0]["settings"] != settings:
            raise InputError(
                f"{file} was measured with {lines[0]['settings']}, not with {dict(settings)}: name another --out"
            )
        return journal

    def lines(self) -> Iterator[Line]:
        """The lines; what a kill left of one is none."""
        if not self.file.exists():
            return
        for text in self.file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict):
                yield line

    def add(self, line: Mapping[str, Any]) -> None:
        """Append a line, on the disk when this returns; it begins on a line of its own."""
        with self.file.open("ab") as opened:
            opened.write(b"\n" * (opened.tell() > 0) + json.dumps(line).encode())
            opened.flush()
            os.fsync(opened.fileno())
