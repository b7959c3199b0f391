"""Damaged SQLite files: detection, notice, and recovery row by row.

SQLite has no checksums: a flipped byte is found by luck, where it hits the file's structure. So tables whose rows enter
a ranking or a score carry a `seal`, a CRC-32 over the row, which finds any change of up to 32 bits in a row, and longer
ones but for 1 in 4 billion.
"""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from hopbench.retrieval.support.locking import exclusive_and_gone
from hopbench.retrieval.support.notice import notice

SEAL = "seal"
MAGIC = b"SQLite format 3\0"


def seal(values: Iterable[object]) -> int:
    """The CRC-32 of a row's values, the same before and after a round trip through SQLite."""
    crc = 0
    for value in values:
        crc = zlib.crc32(value if isinstance(value, bytes) else _written(value), crc)
    return crc


def seal_of_bytes(first: bytes, second: bytes) -> int:
    """`seal` of two values that are bytes, in a sixth of its time."""
    return zlib.crc32(second, zlib.crc32(first))


def _written(value: object) -> bytes:
    """A value as text; a REAL column returns an integer as a float, and no number (NaN) as none."""
    if isinstance(value, int | float):
        value = None if math.isnan(value) else float(value)
    return repr(value).encode("utf-8", "surrogatepass")


def lenient(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Let damaged texts (no longer UTF-8) be read and fail their row's checksum, instead of raising an error."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return connection


def is_damage(error: BaseException) -> bool:
    """Whether SQLite says that the file itself is broken (its OperationalErrors are about locks, rights and room)."""
    return type(error) is sqlite3.DatabaseError


def damage(file: Path) -> str | None:
    """What `PRAGMA quick_check` finds wrong with the file, in words; None for a sound file, and where there is none."""
    if not file.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=60)) as connection:
            verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error) if is_damage(error) else None
    return None if verdict == "ok" else " ".join(verdict.split())


def heal(file: Path, consequence: str, say: Callable[[str], object] = notice) -> str | None:
    """Set a damaged file aside and copy its readable rows into a new one; returns the notice it gave, None if sound.

    `consequence` says what follows for the rows that are lost. Nothing happens to a file that is sound.
    """
    with exclusive_and_gone(file.with_name(f"{file.name}.healing")):
        reason = damage(file)
        if reason is None:
            return None
        aside = file.with_name(f"{file.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
        for ending in ("", "-wal", "-shm"):
            part = file.with_name(file.name + ending)
            if part.exists():
                part.rename(aside.with_name(aside.name + ending))
        rows = _copy(aside, file)
    message = f"{file} was damaged ({reason}): {rows:,} rows that read were kept, {consequence}; see {aside}"
    say(message)
    return message


def unsound(file: Path, table: str, columns: Sequence[str], remove: bool = False) -> int:
    """The number of rows of a sealed table that fail their checksum; with `remove` they are deleted."""
    with closing(lenient(sqlite3.connect(file, timeout=60, isolation_level=None))) as connection:
        if SEAL not in [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]:
            return 0
        rows = connection.execute(f"SELECT rowid, {SEAL}, {', '.join(columns)} FROM {table}")
        bad = [(row[0],) for row in rows if row[1] != seal(row[2:])]
        if remove:
            connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", bad)
    return len(bad)


def _copy(aside: Path, file: Path) -> int:
    """Copy the readable rows; returns their number. Without a readable schema no file is made."""
    fresh, count = file.with_name(f"{file.name}.fresh"), 0
    fresh.unlink(missing_ok=True)
    with closing(lenient(sqlite3.connect(aside))) as source, closing(sqlite3.connect(fresh)) as target:
        try:
            made = "SELECT name, sql FROM sqlite_master WHERE type = ? AND sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
            tables = source.execute(made, ("table",)).fetchall()
            indexes = source.execute(made, ("index",)).fetchall()
            version = source.execute("PRAGMA user_version").fetchone()[0]
            target.execute(f"PRAGMA page_size = {source.execute('PRAGMA page_size').fetchone()[0]}")
            for _, statement in tables:
                target.execute(statement)
        except (sqlite3.Error, UnicodeError):
            fresh.unlink(missing_ok=True)
            return 0
        target.execute(f"PRAGMA user_version = {version}")
        for table, _ in tables:
            for row in _rows(source, table):
                marks = ",".join("?" * len(row))
                try:
                    count += target.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row).rowcount
                except (sqlite3.Error, UnicodeError):
                    continue  # of the wrong type by now
        for _, statement in indexes:
            with suppress(sqlite3.Error):  # one that must be unique, over rows that no longer are
                target.execute(statement)
        target.commit()
    fresh.rename(file)
    return count


def _rows(source: sqlite3.Connection, table: str) -> Iterator[tuple[object, ...]]:
    """The rows that read, in order of rowid; a stretch that does not is left in steps that double."""
    last, step = -1, 1
    while last < 1 << 62:
        try:
            for row in source.execute(f"SELECT rowid, * FROM {table} WHERE rowid > ? ORDER BY rowid", (last,)):
                last, step = max(last, int(row[0])), 1
                yield row[1:]
        except (sqlite3.Error, UnicodeError):
            last, step = last + step, step * 2
        else:
            return
