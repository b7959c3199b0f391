"""Data sets of two files, as their authors publish them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hopbench.eval.benchmarks.beir import Parsed, missing_questions


@dataclass(frozen=True)
class FileSet:
    """A corpus and its questions, None where there are none; `parse` reads both."""

    name: str
    corpus: Path
    questions: Path | None
    parse: Callable[[FileSet], Parsed]

    def read(self, *, need_questions: bool) -> Parsed:
        """Passages and questions. Raises InputError as `parse`, and where questions are needed and there are none."""
        if self.questions is None and need_questions:
            raise missing_questions(self.corpus.parent)
        return self.parse(self)


def first_file(folder: Path, *stems: str) -> Path | None:
    """The first file of these names that ends in `.json` or `.json.gz`."""
    names = (f"{stem}{ending}" for stem in stems for ending in (".json", ".json.gz"))
    return next((folder / name for name in names if (folder / name).is_file()), None)
