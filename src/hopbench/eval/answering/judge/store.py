"""Judgements on disk, each saved as soon as it is made: a run that was killed resumes, and none is paid for twice.

The key names everything that decides a score: the judge's endpoint, model, sampling and prompt version, the metric, the
sample's own texts, the embedder where one is used, and the repeat. So one judge's scores never serve another, and
equal samples of two labels are judged once. A failure is recorded, and tried again by the next run.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hopbench.retrieval.llm.cache import connect, explained
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.sqlite_files import seal, sealed

_TABLE = """CREATE TABLE IF NOT EXISTS judgements (key TEXT PRIMARY KEY, judge TEXT NOT NULL, metric TEXT NOT NULL,
question_id TEXT NOT NULL, repeat INTEGER NOT NULL, value REAL, failure TEXT, calls INTEGER NOT NULL,
tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, seconds REAL NOT NULL, at REAL NOT NULL) STRICT"""
_OWN = ("metric", "question_id", "repeat", "value", "failure", "calls", "tokens_in", "tokens_out", "seconds")


@dataclass(frozen=True, slots=True)
class Judgement:
    """One score of one question, or the reason why there is none, and its cost; each repeat is a judgement.

    `calls` and tokens are those of the judgement alone; `seconds` is how long it took when it was made.
    """

    metric: str
    question_id: str
    repeat: int
    value: float | None = None
    failure: str | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0


def judgement_key(**parts: object) -> str:
    """The SHA-256 of everything that decides a judgement."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


class JudgementStore:
    """Judgements by `judgement_key` in one SQLite file. Make one with `JudgementStore.open`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        with explained(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = connect(file, _TABLE)
            sealed(self._connection, "judgements", _OWN)

    @classmethod
    @contextmanager
    def open(cls, file: Path) -> Iterator[JudgementStore]:
        """Open or create the file, close it in the end."""
        store = cls(file)
        try:
            yield store
        finally:
            store._connection.close()

    def get(self, key: str) -> Judgement | None:
        """The score stored under `key`; None for a failure, and for a row that fails its checksum."""
        query = f"SELECT {', '.join(_OWN)}, seal FROM judgements WHERE key = ? AND failure IS NULL"
        with explained(self._file), self._lock:
            row = self._connection.execute(query, (key,)).fetchone()
            if row is None or row[-1] == seal(row[:-1]):
                return None if row is None else Judgement(*row[:-1])
            self._connection.execute("DELETE FROM judgements WHERE key = ?", (key,))
        notice(f"{self._file}: a judgement was damaged and is made again")
        return None

    def put(self, key: str, judge: str, judgement: Judgement) -> None:
        """Store a judgement; it is on disk when this returns."""
        content = tuple(getattr(judgement, name) for name in _OWN)
        with explained(self._file), self._lock:
            self._connection.execute(
                "INSERT OR REPLACE INTO judgements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (key, judge, *content, time.time(), seal(content)),
            )
