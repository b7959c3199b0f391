"""Passages that were read and checked once, kept as memory-mapped columns by the content of their file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from hopbench.eval.benchmarks.passages import checked_passages
from hopbench.eval.benchmarks.records import layout_ending, read_records
from hopbench.retrieval.corpus import MappedPassages, write_passages
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import unreadable
from hopbench.retrieval.support.kept_files import kept
from hopbench.retrieval.support.resources import exhausted

FORMAT = "passages-2"  # it grows with each change of what is read or refused: files are then read again


def mapped_passages(files: Sequence[Path], folder: Path) -> MappedPassages:
    """The passages of files, from the columns that `folder` holds of them; read and written where it does not.

    Files and columns are read whole for their checksums: seconds per gigabyte, a tenth of reading the passages.

    Raises InputError as `read_passages`, for files that are written while they are read, and for a folder that cannot
    be written; another error of the project's where the disk is full.
    """
    source = str(files[0] if len(files) == 1 else files[0].parent)
    name = _content(files)

    def write(place: Path) -> None:
        write_passages(checked_passages(source, chain.from_iterable(map(read_records, files))), place)
        if _content(files) != name:
            raise InputError(f"{source}: was written to while it was read: run the command again when it is complete")

    try:
        return kept(folder / name, FORMAT, write, MappedPassages, content=True)
    except OSError as error:  # of the folder: those of the corpus are told by its readers
        if (lacking := exhausted(error, folder)) is not None:
            raise lacking from error
        raise InputError(f"cannot write {folder}: {error}. Set HOPBENCH_HOME to another folder") from error


def _content(files: Sequence[Path]) -> str:
    """SHA-256 of the files and of their endings, by which their layout is known."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(layout_ending(file).encode())
        try:
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
        except OSError as error:
            raise unreadable(str(file), error) from error
    return digest.hexdigest()
