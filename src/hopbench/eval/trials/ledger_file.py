"""The SQLite file of the trial ledger: its tables, upgrades from older versions, and what is saved of a damaged one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from hopbench.eval.trials.claims import alive
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.sqlite_files import MAGIC, SEAL, damage, heal, lenient, seal, sealed

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
_UPGRADES = {
    1: "ALTER TABLE trials ADD COLUMN costs TEXT NOT NULL DEFAULT '{}';",
    2: "",  # seals, which `sealed` adds
}


def unreadable(path: Path) -> list[str]:
    """The ids of trials whose rows are damaged; the file is not changed."""
    with closing(lenient(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True))) as connection:
        if SEAL not in [row[1] for row in connection.execute("PRAGMA table_info(trials)")]:
            return []
        rows = connection.execute(f"SELECT {SEAL}, trial_id, {', '.join(COLUMNS)} FROM trials")
        return [str(row[1]) for row in rows if row[0] != seal(row[2:])]


def heal_damaged(path: Path, owners: Path) -> None:
    """Replace a damaged ledger by its readable rows. Raises InputError while another process uses it."""
    reason = damage(path) if path.is_file() and _begins(path) == MAGIC else None
    if reason is None:
        return
    if any(alive(owner) for owner in owners.iterdir() if owner.name != "open"):
        raise InputError(
            f"{path}: the trial ledger is damaged ({reason}), and another process is at work in it: wait for its end, "
            "then run the same command again, which keeps what reads"
        )
    heal(path, "other trials are done again when needed")


def _begins(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(MAGIC))


def connected(path: Path) -> sqlite3.Connection:
    """A connection to the file, which is created or upgraded first. Raises InputError for a newer version."""
    # Prefect may run a flow's body in another thread than the one that opened the ledger.
    connection = sqlite3.connect(path, WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _prepare(lenient(connection), path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the file to this version: create what is missing, upgrade what is older, refuse what is newer."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise InputError(f"{path}: is of a newer HopBench (version {version}): update, or move it away")
    if version == VERSION:
        return
    connection.execute("PRAGMA journal_mode = WAL")
    upgrades = "".join(_UPGRADES[older] for older in range(version or VERSION, VERSION))  # 0: a new file
    connection.executescript(f"BEGIN IMMEDIATE; {upgrades} {_TABLES} COMMIT")
    sealed(connection, "trials", COLUMNS)
    connection.execute(f"PRAGMA user_version = {VERSION}")
