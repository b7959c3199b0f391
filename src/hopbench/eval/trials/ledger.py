"""The trial ledger: every finished trial under the digest of everything that decides its outcome.

    with Ledger.open(home.ledger) as ledger:
        key = TrialKey.of(strategy, index, ...)
        if ledger.claim(key.id):        # not finished, and no other process is working on it
            ledger.put(record)
        record = ledger.get(key.id)

One SQLite file in WAL mode: a killed process loses at most the trial it was running, and readers never wait for a
writer. It is the source of truth about trials: MLflow's runs are written from it.

A claim lasts as long as its owner holds the lock on its file, which the operating system releases however the process
ends. So the claim of a killed process can be taken over at once, and that of a suspended process never is.

A trial whose row is damaged is moved to the table `set_aside`, reported, and run again; a file whose structure is
damaged is set aside when it is opened, and every readable row goes into a new one.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.retrieval.support.errors import InputError, exhausted
from hopbench.retrieval.support.locking import open_lock
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.sqlite_files import MAGIC, SEAL, damage, heal, is_damage, lenient, seal

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.trials.key import TrialSettings

VERSION = 3
WAIT_SECONDS = 60.0
_TABLES = """
CREATE TABLE IF NOT EXISTS trials (
    trial_id TEXT PRIMARY KEY, settings TEXT NOT NULL, metrics TEXT NOT NULL, questions BLOB NOT NULL,
    failures INTEGER NOT NULL, seconds REAL NOT NULL, started REAL NOT NULL, ended REAL NOT NULL,
    costs TEXT NOT NULL DEFAULT '{}', seal INTEGER
) STRICT;
CREATE TABLE IF NOT EXISTS set_aside (
    trial_id TEXT NOT NULL, found REAL NOT NULL, reason TEXT NOT NULL, settings BLOB, questions BLOB
) STRICT;
CREATE TABLE IF NOT EXISTS claims (trial_id TEXT PRIMARY KEY, owner TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS sweeps (sweep_id TEXT PRIMARY KEY, started REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS champions (
    benchmark_digest TEXT PRIMARY KEY, trial_id TEXT NOT NULL, label TEXT NOT NULL, run_id TEXT NOT NULL,
    created REAL NOT NULL
) STRICT;
"""
COLUMNS = ("settings", "metrics", "questions", "failures", "seconds", "started", "ended", "costs")


@contextmanager
def immediate(connection: sqlite3.Connection) -> Iterator[None]:
    """Open a transaction that is the only writer from its first statement on."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def alive(owner: Path) -> bool:
    """Whether the process that owns this file is alive; the file of a dead one is removed."""
    try:
        with owner.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    owner.unlink(missing_ok=True)
    return False


def unreadable(path: Path) -> list[str]:
    """List the ids of trials whose rows are damaged, without changing the file."""
    with closing(lenient(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True))) as connection:
        if SEAL not in [row[1] for row in connection.execute("PRAGMA table_info(trials)")]:
            return []
        rows = connection.execute(f"SELECT {SEAL}, trial_id, {', '.join(COLUMNS)} FROM trials")
        return [str(row[1]) for row in rows if row[0] != seal(row[2:])]


def heal_damaged(path: Path, owners: Path) -> None:
    """Replace a damaged ledger by its readable rows. Raises InputError while another process uses it."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        is_database = file.read(len(MAGIC)) == MAGIC
    reason = damage(path) if is_database else None
    if reason is None:
        return
    if any(alive(owner) for owner in owners.iterdir() if owner.name != "open"):
        raise InputError(
            f"{path}: the trial ledger is damaged ({reason}), and another process is using it: wait for it to end, "
            "then run the same command again, which keeps every readable row"
        )
    heal(path, "other trials are run again when needed")


def connected(path: Path) -> sqlite3.Connection:
    """Connect to the file, which is created if missing. Raises InputError for a file of another version."""
    # Prefect may run a flow's body in another thread than the one that opened the ledger.
    connection = lenient(sqlite3.connect(path, WAIT_SECONDS, isolation_level=None, check_same_thread=False))
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT")
            connection.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        connection.close()
        raise
    if version not in (0, VERSION):
        connection.close()
        raise InputError(f"{path}: is of another HopBench (version {version}, not {VERSION}): move it away")
    return connection


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
    """Finished trials by their content address. Make one with `Ledger.open`.

    `owners` is a folder that holds a locked file for each living process with claims.
    """

    def __init__(self, connection: sqlite3.Connection, owners: Path) -> None:
        self._connection = connection
        self._owners = owners
        self._owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._lock = open_lock(owners / self._owner)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Ledger]:
        """Open or create the ledger; a damaged one is healed first.

        Raises InputError when the file is none, of another version, or damaged while other processes use it.
        """
        owners = path.with_name(f"{path.name}-owners")
        try:
            owners.mkdir(exist_ok=True)
            with open_lock(owners / "open") as lock:  # SQLite does not wait for a change of the journal's mode
                fcntl.flock(lock, fcntl.LOCK_EX)
                heal_damaged(path, owners)
                connection = connected(path)
            with closing(connection), closing(cls(connection, owners)) as ledger:
                yield ledger
        except (sqlite3.DatabaseError, FileExistsError, NotADirectoryError) as error:
            if (lacking := exhausted(error, path)) is not None:
                raise lacking from error
            remedy = "hopbench doctor --repair keeps what reads" if is_damage(error) else "move it away to start anew"
            raise InputError(f"{path}: the trial ledger cannot be used: {error}: {remedy}") from error

    def get(self, name: str) -> TrialRecord | None:
        """Look up a finished trial by id; a damaged one is set aside and counts as not finished."""
        query = f"SELECT {', '.join(COLUMNS)}, {SEAL} FROM trials WHERE trial_id = ?"
        row = self._connection.execute(query, (name,)).fetchone()
        if row is None:
            return None
        if row[-1] != seal(row[:-1]):
            self._set_aside(name, "it is not as it was written")
            return None
        import pandas as pd

        settings, metrics, questions, failures, seconds, started, ended, costs, _ = row
        spent = failures, seconds, started, ended
        try:
            table = pd.read_parquet(io.BytesIO(questions))
            table.index = table.index.astype(object)  # as `score` makes it
            return TrialRecord(name, json.loads(settings), json.loads(metrics), table, *spent, json.loads(costs))
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
        notice(f"trial {name} in the ledger does not read ({reason}): set aside there, and run again when needed")

    def damaged(self) -> list[str]:
        """Check every trial, set damaged ones aside, and return their ids."""
        names = [row[0] for row in self._connection.execute("SELECT trial_id FROM trials ORDER BY rowid").fetchall()]
        return [name for name in names if self.get(name) is None]

    def claim(self, name: str) -> bool:
        """Claim a trial for this process; False if it is finished or claimed by another living process."""
        with immediate(self._connection):
            if self._connection.execute("SELECT 1 FROM trials WHERE trial_id = ?", (name,)).fetchone():
                return False
            row = self._connection.execute("SELECT owner FROM claims WHERE trial_id = ?", (name,)).fetchone()
            if row is not None and row[0] != self._owner and alive(self._owners / row[0]):
                return False
            self._connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (name, self._owner))
            return True

    def close(self) -> None:
        """Release all claims."""
        with immediate(self._connection):
            self._connection.execute("DELETE FROM claims WHERE owner = ?", (self._owner,))
        (self._owners / self._owner).unlink(missing_ok=True)
        self._lock.close()

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
        """Look up the champion of a benchmark, if one was named."""
        query = "SELECT * FROM champions WHERE benchmark_digest = ?"
        row = self._connection.execute(query, (benchmark_digest,)).fetchone()
        return None if row is None else Champion(*row)
