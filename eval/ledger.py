"""The trial ledger: every finished trial under a name made of all that decides its outcome.

    with Ledger.open(home.ledger) as ledger:
        record = ledger.get(trial_id(**settings)) or ...
        ledger.put(record)

One SQLite file in WAL mode: a killed process loses at most the trial it was at, readers never wait for a writer.
"""

from __future__ import annotations

import io
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.unfinished import trial_key
from retrieval.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

VERSION = 1
ID_LENGTH = 16
WAIT_SECONDS = 60.0
_TABLES = """
CREATE TABLE IF NOT EXISTS trials (
    trial_id TEXT PRIMARY KEY, settings TEXT NOT NULL, metrics TEXT NOT NULL, questions BLOB NOT NULL,
    failures INTEGER NOT NULL, seconds REAL NOT NULL, started REAL NOT NULL, ended REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS sweeps (sweep_id TEXT PRIMARY KEY, started REAL NOT NULL) STRICT;
"""


@dataclass(frozen=True)
class TrialRecord:
    """A finished trial. `settings` decide it; `metrics` are zero-filled means; `questions` has a row per question.

    `seconds` is what the strategy took, `started` and `ended` are since the epoch.
    """

    trial_id: str
    settings: Mapping[str, Any]
    metrics: Mapping[str, float]
    questions: pd.DataFrame = field(repr=False)
    failures: int
    seconds: float
    started: float
    ended: float


def trial_id(**settings: object) -> str:
    """A trial's content address: 16 hexadecimal digits of the SHA-256 of everything that decides its outcome."""
    return trial_key(**settings)[:ID_LENGTH]


class Ledger:
    """Finished trials by their content address. Make one with `Ledger.open`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Ledger]:
        """Open or create the ledger. Raises InputError when the file is none, or of a newer HopBench."""
        try:
            # Prefect may run a flow's body in another thread than the one that opened the ledger.
            connection = sqlite3.connect(path, WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            with closing(connection):
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version > VERSION:
                    raise InputError(f"{path}: is of a newer HopBench (version {version}): update, or move it away")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(_TABLES)
                connection.execute(f"PRAGMA user_version = {VERSION}")
                yield cls(connection)
        except sqlite3.DatabaseError as error:
            raise InputError(f"{path}: the trial ledger cannot be used: {error}: move it away to start anew") from error

    def get(self, name: str) -> TrialRecord | None:
        """The trial of that id, if it is finished."""
        import pandas as pd

        columns = "settings, metrics, questions, failures, seconds, started, ended"
        row = self._connection.execute(f"SELECT {columns} FROM trials WHERE trial_id = ?", (name,)).fetchone()
        if row is None:
            return None
        settings, metrics, questions, *rest = row
        table = pd.read_parquet(io.BytesIO(questions))
        table.index = table.index.astype(object)  # as `score` makes it
        return TrialRecord(name, json.loads(settings), json.loads(metrics), table, *rest)

    def put(self, record: TrialRecord) -> None:
        """Keep a finished trial; the first of equal ones stays."""
        buffer = io.BytesIO()
        record.questions.to_parquet(buffer, compression="zstd")
        values = (
            record.trial_id,
            json.dumps(record.settings, sort_keys=True, ensure_ascii=False),
            json.dumps(record.metrics),
            buffer.getvalue(),
            record.failures,
            record.seconds,
            record.started,
            record.ended,
        )
        self._connection.execute("INSERT OR IGNORE INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def sweep_started(self, sweep_id: str) -> float:
        """When a sweep was first started: the same for each of its resumptions, since the epoch."""
        self._connection.execute("INSERT OR IGNORE INTO sweeps VALUES (?, ?)", (sweep_id, time.time()))
        row = self._connection.execute("SELECT started FROM sweeps WHERE sweep_id = ?", (sweep_id,)).fetchone()
        return float(row[0])
