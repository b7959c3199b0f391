"""The schema of MLflow's database: our own file is brought up to date, any other database is refused with the remedy.

MLflow itself refuses an older schema, or, where it lacks a whole table, upgrades it without notice or backup.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from hopbench.flows.tracking.payload import redact, secrets
from hopbench.retrieval.llm.endpoint import refusal
from hopbench.retrieval.support.errors import InputError

DATABASES = ("sqlite", "postgresql", "mysql", "mssql")  # what else MLflow opens is a server with a database of its own
DIGITS = 12


def bring_up_to_date(uri: str, own: Path) -> str | None:
    """Upgrade the database at `uri` if its schema is an older MLflow's; returns a message about the upgrade, or None.

    `own` is our own database file; hold its lock. Raises InputError for an older schema anywhere else, for that of a
    newer MLflow, and where the upgrade fails: the file is then unchanged.
    """
    if urlsplit(uri).scheme.partition("+")[0] not in DATABASES or (uri == _uri(own) and not own.exists()):
        return None
    found = _revision(uri)
    newest, known = _revisions(found)
    if found in (None, newest):
        return None
    shown = redact(uri, secrets())
    schemas = f"its schema is {str(found)[:DIGITS]}, that of MLflow {version('mlflow')} is {newest[:DIGITS]}"
    if not known:
        raise InputError(
            f"MLflow's database at {shown} was written by a newer MLflow: {schemas}. Update HopBench, or name another "
            "database with MLFLOW_TRACKING_URI"
        )
    if uri != _uri(own):
        raise InputError(
            f"MLflow's database at {shown} is that of an older MLflow: {schemas}. Others may use it, so it was not "
            f"touched: make a copy of it, then run: mlflow db upgrade {shown}"
        )
    copy = own.with_name(f"{own.name}.before-{newest[:DIGITS]}")
    _upgrade(own, copy)
    return f"MLflow's database was brought up to date ({schemas}); {copy} is a copy of it from before"


def refuse_closed(uri: str) -> None:
    """Raise InputError where MLflow's server is named and nothing listens there: its client would try for minutes."""
    reason = refusal(uri) if uri.startswith(("http://", "https://")) else None
    if reason is not None:
        shown = redact(uri, secrets())
        raise InputError(f"nothing answers at MLFLOW_TRACKING_URI ({shown}): {reason}. Start the server or correct it")


def _uri(database: Path) -> str:
    return f"sqlite:///{database}"


def _revision(uri: str) -> str | None:
    """The revision of the schema at `uri`; None where there is none yet."""
    from alembic.migration import MigrationContext
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    with create_engine(uri, poolclass=NullPool).connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _revisions(found: str | None) -> tuple[str, bool]:
    """The newest revision that the installed MLflow knows, and whether it knows `found`."""
    import mlflow
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(Path(mlflow.__file__).parent / "store" / "db_migrations"))
    return str(script.get_current_head()), any(revision.revision == found for revision in script.walk_revisions())


def _upgrade(database: Path, copy: Path) -> None:
    """Upgrade beside the database, then put it in its place: a kill leaves the old one or the new one."""
    from mlflow.db import upgrade
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    ahead = database.with_name(f"{database.name}.upgrading")
    try:
        for target in (copy, ahead):
            target.unlink(missing_ok=True)
            _copy(database, target)
        upgrade.callback(_uri(ahead))  # `mlflow db upgrade`
        os.replace(ahead, database)
    except (OSError, sqlite3.Error, SQLAlchemyError, MlflowException) as error:
        raise InputError(
            f"{database} is that of an older MLflow and could not be upgraded ({error}). It is as it was: free space "
            "there, or move it away, and a new one is begun"
        ) from error
    finally:
        ahead.unlink(missing_ok=True)


def _copy(database: Path, target: Path) -> None:
    """Copy through SQLite, which also sees what a journal still holds."""
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(target)) as sink:
        source.backup(sink)
