"""Calls on disk, so that none is paid twice: not by a later run, one that was killed, or two at the same time.

One SQLite file with a write-ahead log: a reply is committed before anybody sees it, `kill -9` loses only what was in
flight, and several processes may share the file. The key names all that decides a reply: endpoint, model, parameters,
messages, schema, prompt version, repeat, and which occurrence of the same request in its sample it is.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from filelock import Timeout
from tenacity import retry, retry_if_exception_message, stop_after_delay, wait_random

from hopbench.retrieval.support.errors import InputError, exhausted
from hopbench.retrieval.support.locking import process_lock
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.sqlite_files import damage, heal, lenient, seal

LOCK_SECONDS = 60.0
POLL_SECONDS = 0.1  # between two looks at a call that another process has in flight


def request_key(**parts: object) -> str:
    """SHA-256 of everything that decides a reply."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


# Two processes that both turn a new file to write-ahead logging may be refused without SQLite's own waiting.
@retry(
    retry=retry_if_exception_message(match=".*locked"),
    stop=stop_after_delay(LOCK_SECONDS),
    wait=wait_random(0.01, 0.1),
    reraise=True,
)
def connect(file: Path | str, schema: str) -> sqlite3.Connection:
    """A connection for all threads of this process (callers hold a lock), the tables created; commits by itself.

    A damaged file is healed first: what it kept of calls is paid for.
    """
    if isinstance(file, Path) and damage(file) is not None:
        heal(file, "what is lost of calls to language models is paid for again")
    connection = sqlite3.connect(file, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        lenient(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(schema)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextmanager
def explained(file: Path | None) -> Iterator[None]:
    """Turn an error of the disk or of SQLite into one that names the file and the remedy."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        if (lacking := exhausted(error, str(file))) is not None:
            raise lacking from error
        raise InputError(
            f"{file}: {error}. Make sure that the folder can be written and the disk has room; if the file is damaged, "
            "hopbench doctor --repair keeps what reads"
        ) from error


_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL, seal INTEGER)"


class ReplyCache:
    """Replies (the JSON of a chat completion) by `request_key`, in `FOLDER/llm.sqlite`.

    At most `limit` calls of this process are in flight at a time: each is an open file, and others wait for it.
    """

    def __init__(self, folder: Path, limit: int = 64) -> None:
        self.file = folder / "llm.sqlite"
        self._slots = asyncio.Semaphore(limit)
        self._lock = threading.Lock()
        with explained(self.file):
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = connect(self.file, _TABLE)

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The reply stored under `key`; a damaged one is dropped, with a notice."""
        with explained(self.file), self._lock:
            row = self._connection.execute("SELECT reply, seal FROM replies WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            if row[1] == seal(row[:1]):
                reply: Mapping[str, Any] = json.loads(row[0])
                return reply
            self._connection.execute("DELETE FROM replies WHERE key = ?", (key,))
        notice(f"{self.file}: a reply was damaged and is asked for again")
        return None

    def put(self, key: str, reply: str) -> None:
        """Keep a reply; where another process was first, its reply stays."""
        with explained(self.file), self._lock:
            self._connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?)", (key, reply, seal([reply])))

    @asynccontextmanager
    async def in_flight(self, key: str) -> AsyncIterator[None]:
        """Wait until no other process has the call in flight (a locked file); its reply may be here by then."""
        path = self.file.with_name(f"{key}.flight")
        async with self._slots:
            lock = process_lock(path)
            while True:
                try:
                    lock.acquire(blocking=False)
                    break
                except Timeout:
                    await asyncio.sleep(POLL_SECONDS)
            try:
                yield
            finally:
                # A process that waits for this file finds the reply; where there is none, each asks for itself.
                path.unlink(missing_ok=True)
                lock.release()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
