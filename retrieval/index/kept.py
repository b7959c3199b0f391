"""What an index computes from its chunks alone, in files that the processes of a machine share."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from hopbench.retrieval.search.exact import LexicalIndex
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.text import Tagger

SIZES = "sizes.json"  # written last: without it, or where another file has another size, the folder is made again
FORMAT = 1  # of the files: with each change of what BM25 or the tagger computes it grows, and they are made again
TAGGER = "tagger.json"
T = TypeVar("T")


@dataclass(frozen=True)
class KeptSearch:
    """The folder of one corpus. It is safe to delete: what is missing or cut is computed again."""

    folder: Path

    def lexical(self, compute: Callable[[], LexicalIndex]) -> LexicalIndex:
        """BM25, memory-mapped."""
        return self._kept("bm25", lambda place: compute().save(place), LexicalIndex.load)

    def tagger(self, compute: Callable[[], Tagger]) -> Tagger:
        """The tagger."""
        return self._kept(
            "tagger", lambda place: compute().save(place / TAGGER), lambda place: Tagger.load(place / TAGGER)
        )

    def _kept(self, name: str, write: Callable[[Path], None], read: Callable[[Path], T]) -> T:
        place = self.folder / name
        if _intact(place):
            with suppress(OSError, ValueError, TypeError, KeyError):  # damaged, whatever its size
                return read(place)
        if place.exists():
            notice(f"{place} does not read as it was written: it is made again")
            shutil.rmtree(place, ignore_errors=True)
        self._make(place, write)
        return read(place)

    def _make(self, place: Path, write: Callable[[Path], None]) -> None:
        """Write a folder whole or not at all; where another process was faster, its folder stays."""
        self.folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=self.folder, prefix=f".{place.name}-"))
        try:
            write(made)
            sizes = {file.name: file.stat().st_size for file in made.iterdir()}
            (made / SIZES).write_text(json.dumps({"version": _version(), "sizes": sizes}), encoding="utf-8")
            if not _intact(place):
                shutil.rmtree(place, ignore_errors=True)
            try:
                os.rename(made, place)
            except OSError:
                if not _intact(place):
                    raise
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _intact(place: Path) -> bool:
    try:
        written = json.loads((place / SIZES).read_text(encoding="utf-8"))
        fits = all((place / name).stat().st_size == size for name, size in written["sizes"].items())
        return bool(fits and written["version"] == _version())
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False


def _version() -> str:
    """Of the code that computes what is kept."""
    return f"{FORMAT} bm25s {version('bm25s')}"
