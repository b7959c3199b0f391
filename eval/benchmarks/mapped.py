"""Passages that were read and checked once, kept as memory-mapped columns by the content of their file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hopbench.eval.benchmarks.passages import checked_passages
from hopbench.eval.benchmarks.records import read_records
from hopbench.retrieval.corpus import MappedPassages, write_passages
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import unreadable
from hopbench.retrieval.support.kept_files import kept
from hopbench.retrieval.support.resources import exhausted

FORMAT = "passages-2"  # it grows with each change of what is read or refused: files are then read again


def mapped_passages(corpus: Path, folder: Path) -> MappedPassages:
    """The passages of a file, from the columns that `folder` holds of it; they are read and written where it does not.

    Both files are read whole for their checksums: seconds per gigabyte, a tenth of reading the passages.

    Raises InputError as `read_passages`, for a file that is written while it is read, and for a folder that cannot be
    written; another error of the project's where the disk is full.
    """
    name = _content(corpus)

    def write(place: Path) -> None:
        write_passages(checked_passages(str(corpus), read_records(corpus)), place)
        if _content(corpus) != name:
            raise InputError(f"{corpus}: was written to while it was read: run the command again when it is complete")

    try:
        return kept(folder / name, FORMAT, write, MappedPassages, content=True)
    except OSError as error:  # of the folder: those of the corpus are told by its readers
        if (lacking := exhausted(error, folder)) is not None:
            raise lacking from error
        raise InputError(f"cannot write {folder}: {error}. Set HOPBENCH_HOME to another folder") from error


def _content(file: Path) -> str:
    """SHA-256 of a file and of its suffix, by which its layout is known."""
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, lambda: hashlib.sha256(file.suffix.encode())).hexdigest()
    except OSError as error:
        raise unreadable(str(file), error) from error
