"""Files read as bytes, whether compressed with gzip or not; one that is small and unfolds without end is refused."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import regular, unreadable

ENDING = ".gz"
WHOLE_LIMIT = 2 * 1024**3  # bytes of a file that is read at once; HotpotQA's training file has 0.6 GB
RATIO_LIMIT = 200  # text shrinks to a third or a tenth; gzip makes at most 1,030 bytes of one
FREE = 4 * 1024 * 1024  # bytes that any file may unfold to
_MAGIC = b"\x1f\x8b"
_BLOCK = 1 << 20


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """An ordinary file for reading; it is decompressed where it begins as gzip does, whatever its name.

    Raises
    ------
    InputError
        For what cannot be opened or read, a damaged or cut-off gzip file, and one that unfolds beyond `RATIO_LIMIT`.
    """
    try:
        with regular(path).open("rb") as file:
            compressed = file.read(len(_MAGIC)) == _MAGIC
            file.seek(0)
            if compressed:
                content: io.RawIOBase = _Unfolded(path, file)
                yield io.BufferedReader(content, _BLOCK)
            else:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: not a whole gzip file ({error}): download or compress it again") from error
    except OSError as error:
        raise unreadable(str(path), error) from error


class _Unfolded(io.RawIOBase):
    """The decompressed bytes of a file, up to the limit."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file, self._content, self._size = path, file, gzip.GzipFile(fileobj=file), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override] # the library's is a union of buffers
        count = self._content.readinto(buffer)
        self._size += count
        if self._size > max(FREE, RATIO_LIMIT * self._file.tell()):
            raise InputError(
                f"{self._path}: its first {self._file.tell():,} bytes unfold to {self._size:,}, and over {RATIO_LIMIT} "
                "times as many is the limit, as no text has that: decompress it yourself if you want to read it"
            )
        return count


def read_whole(path: Path) -> bytes:
    """The content of a file of at most `WHOLE_LIMIT` bytes, decompressed. Raises InputError, as `opened` does too."""
    with opened(path) as file:
        blocks, size = [], 0
        while block := file.read(_BLOCK):
            blocks.append(block)
            size += len(block)
            if size > WHOLE_LIMIT:
                raise InputError(
                    f"{path}: over {WHOLE_LIMIT:,} bytes, which is the limit for a file of one JSON value: write JSON "
                    "lines, a record on each"
                )
        return b"".join(blocks)
