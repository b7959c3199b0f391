"""The trial ledger: every finished trial under the digest of everything that decides its outcome.

    with Ledger.open(home.ledger) as ledger:
        key = TrialKey.of(strategy, index, ...)
        if ledger.claim(key.id):        # not finished, and no other process is working on it
            ledger.put(record)
        record = ledger.get(key.id)

One SQLite file in WAL mode: a killed process loses at most the trial it was doing, readers never wait for a writer. It
is the source of truth about trials: MLflow's runs are written from it.

A trial whose row is damaged is moved to the table `set_aside`, reported, and done again; a file whose structure is
damaged is set aside when it is opened, and every readable row goes into a new one.
"""

from __future__ import annotations

import fcntl
import io
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.trials.claims import Claims, immediate
from hopbench.eval.trials.ledger_file import COLUMNS, connected, heal_damaged
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.locking import open_lock
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.resources import exhausted
from hopbench.retrieval.support.sqlite_files import SEAL, is_damage, seal

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.trials.key import TrialSettings


@dataclass(frozen=True)
class TrialRecord:
    """A finished trial. `settings` decide it; `metrics` are zero-filled means; `questions` has a row per question.

    `seconds` is what the strategy took, `started` and `ended` are since the epoch. `costs` are what it spent: tokens,
    LLM calls, round trips, and the latency of single calls (ms) where it was measured.
    """

    trial_id: str
    settings: TrialSettings
    metrics: Mapping[str, float]
    questions: pd.DataFrame = field(repr=False)
    failures: int
    seconds: float
    started: float
    ended: float
    costs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Champion:
    """The best configuration known on a benchmark: its trial, its label, its MLflow run, and since when."""

    benchmark_digest: str
    trial_id: str
    label: str
    run_id: str
    created: float


class Ledger:
    """Finished trials by their content address. Make one with `Ledger.open`."""

    def __init__(self, connection: sqlite3.Connection, claims: Claims) -> None:
        self._connection = connection
        self._claims = claims

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Ledger]:
        """Open or create the ledger; a damaged one is healed first.

        Raises InputError when the file is none, of a newer HopBench, or damaged while others are at work in it.
        """
        owners = path.with_name(f"{path.name}-owners")
        try:
            owners.mkdir(exist_ok=True)
            with open_lock(owners / "open") as lock:  # SQLite does not wait for a change of the journal's mode
                fcntl.flock(lock, fcntl.LOCK_EX)
                heal_damaged(path, owners)
                connection = connected(path)
            with closing(connection):
                claims = Claims(connection, owners)
                with closing(claims):
                    yield cls(connection, claims)
        except (sqlite3.DatabaseError, FileExistsError, NotADirectoryError) as error:
            if (lacking := exhausted(error, path)) is not None:
                raise lacking from error
            remedy = "hopbench doctor --repair keeps what reads" if is_damage(error) else "move it away to start anew"
            raise InputError(f"{path}: the trial ledger cannot be used: {error}: {remedy}") from error

    def get(self, name: str) -> TrialRecord | None:
        """The trial of that id, if it is finished; a damaged one is set aside and counts as not finished."""
        query = f"SELECT {', '.join(COLUMNS)}, {SEAL} FROM trials WHERE trial_id = ?"
        row = self._connection.execute(query, (name,)).fetchone()
        if row is None:
            return None
        if row[-1] != seal(row[:-1]):
            self._set_aside(name, "it is not as it was written")
            return None
        try:
            return _record_of(name, row[:-1])
        except (ValueError, TypeError, OSError, KeyError) as error:  # pyarrow's errors are ValueErrors and OSErrors
            self._set_aside(name, str(error))
            return None

    def _set_aside(self, name: str, reason: str) -> None:
        with immediate(self._connection):
            self._connection.execute(
                "INSERT INTO set_aside SELECT trial_id, ?, ?, CAST(settings AS BLOB), questions FROM trials "
                "WHERE trial_id = ?",
                (time.time(), reason, name),
            )
            self._connection.execute("DELETE FROM trials WHERE trial_id = ?", (name,))
        notice(f"trial {name} in the ledger does not read ({reason}): set aside there, and done again when needed")

    def damaged(self) -> list[str]:
        """Check every trial; the ids of the damaged ones, which are set aside."""
        names = [row[0] for row in self._connection.execute("SELECT trial_id FROM trials ORDER BY rowid").fetchall()]
        return [name for name in names if self.get(name) is None]

    def claim(self, name: str) -> bool:
        """Claim a trial for this process; False if it is finished or claimed by another living process."""
        return self._claims.take(name)

    def put(self, record: TrialRecord) -> None:
        """Store a finished trial and release its claim; of several with one id the first is kept."""
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
            json.dumps(record.costs),
        )
        with immediate(self._connection):
            self._connection.execute(
                f"INSERT OR IGNORE INTO trials (trial_id, {', '.join(COLUMNS)}, {SEAL}) VALUES ({','.join('?' * 10)})",
                (*values, seal(values[1:])),
            )
            self._connection.execute("DELETE FROM claims WHERE trial_id = ?", (record.trial_id,))

    def pace(self, strategy: str) -> float | None:
        """Mean seconds per question of the strategy's latest trials, scoring included; None without any."""
        query = (
            "SELECT avg(each) FROM (SELECT (ended - started) / json_array_length(settings, '$.questions') AS each "
            "FROM trials WHERE CASE WHEN json_valid(settings) THEN json_extract(settings, '$.strategy') = ? END "
            "ORDER BY ended DESC LIMIT 20)"
        )
        seconds = self._connection.execute(query, (strategy,)).fetchone()[0]
        return None if seconds is None else float(seconds)

    def sweep_started(self, sweep_id: str) -> float:
        """When a sweep was first started: the same for each of its resumptions, since the epoch."""
        self._connection.execute("INSERT OR IGNORE INTO sweeps VALUES (?, ?)", (sweep_id, time.time()))
        row = self._connection.execute("SELECT started FROM sweeps WHERE sweep_id = ?", (sweep_id,)).fetchone()
        return float(row[0])

    def set_champion(self, champion: Champion) -> None:
        """Name a benchmark's champion in place of the one before."""
        values = (champion.benchmark_digest, champion.trial_id, champion.label, champion.run_id, champion.created)
        self._connection.execute("INSERT OR REPLACE INTO champions VALUES (?, ?, ?, ?, ?)", values)

    def champion_of(self, benchmark_digest: str) -> Champion | None:
        """The champion of a benchmark, if one was named."""
        query = "SELECT * FROM champions WHERE benchmark_digest = ?"
        row = self._connection.execute(query, (benchmark_digest,)).fetchone()
        return None if row is None else Champion(*row)


def _record_of(name: str, row: Sequence[Any]) -> TrialRecord:
    import pandas as pd

    settings, metrics, questions, failures, seconds, started, ended, costs = row
    table = pd.read_parquet(io.BytesIO(questions))
    table.index = table.index.astype(object)  # as `score` makes it
    spent = failures, seconds, started, ended
    return TrialRecord(name, json.loads(settings), json.loads(metrics), table, *spent, json.loads(costs))
