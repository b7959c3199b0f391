"""The connection to a Neo4j server, and its failures as errors a user can act on.

Retries are the driver's own: a managed transaction that fails for a transient reason (a lost connection, a server that
restarts, a deadlock) is retried after 0.05 s · 2^attempt, for at most `RETRY_SECONDS`. The driver does not retry a
commit whose connection broke (`committed`), and retries out-of-memory errors for too long (`stopping`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from hopbench.retrieval.support.errors import HopBenchError, InputError, StoreError

if TYPE_CHECKING:
    from neo4j import Driver, ManagedTransaction

RETRY_SECONDS = 60.0
FIRST_DELAY = 0.05
SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
SETUP_HINT = "Set NEO4J_URI, NEO4J_USERNAME and NEO4J_PASSWORD, or start a server of your own: make neo4j"
RESUME_HINT = "What is finished is kept: the same command goes on."


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A server, a user and a database (None: the user's home database).

    In seconds: `timeout` limits a query, `retry` the time for which transient failures are retried.
    """

    uri: str
    username: str = "neo4j"
    password: str = field(default="", repr=False)
    database: str | None = None
    timeout: float = 300.0
    pool: int = 16
    acquisition: float = 30.0
    retry: float = RETRY_SECONDS

    @classmethod
    def resolve(cls, environment: Mapping[str, str], file: Path | None = None) -> Connection:
        """Read the variables NEO4J_… listed in docs/neo4j.md; without NEO4J_URI, from `file`.

        Raises InputError if neither names a server.
        """
        values, origin = environment, "the environment"
        if not environment.get("NEO4J_URI"):
            if file is None or not file.is_file():
                raise InputError(f"--store neo4j: NEO4J_URI is not set. {SETUP_HINT}")
            pairs = (line.partition("=") for line in file.read_text(encoding="utf-8").splitlines() if line[:1] != "#")
            own = {name.strip(): value.strip().strip("'\"") for name, _, value in pairs}
            values, origin = {**environment, **own}, str(file)
        if not values.get("NEO4J_URI") or not values.get("NEO4J_PASSWORD"):
            raise InputError(f"--store neo4j: {origin} has no NEO4J_URI or no NEO4J_PASSWORD. {SETUP_HINT}")
        return cls(
            uri=values["NEO4J_URI"],
            username=values.get("NEO4J_USERNAME") or "neo4j",
            password=values["NEO4J_PASSWORD"],
            database=values.get("NEO4J_DATABASE") or None,
            timeout=_seconds(values, "NEO4J_TIMEOUT", 300.0),
            retry=_seconds(values, "NEO4J_RETRY", RETRY_SECONDS),
        )

    def driver(self) -> Driver:
        """Create a driver with its pool; nothing is sent yet."""
        from neo4j import GraphDatabase
        from neo4j.exceptions import ConfigurationError

        # Without a handler Python prints the driver's log of each broken connection, which is retried anyway.
        logging.getLogger("neo4j").addHandler(logging.NullHandler())
        cause: Exception | None = None
        try:
            scheme, _ = urlsplit(self.uri).scheme, urlsplit(self.uri).port  # the driver reads the port on connecting
            if scheme in SCHEMES:
                return GraphDatabase.driver(
                    self.uri,
                    auth=(self.username, self.password),
                    max_connection_pool_size=self.pool,
                    connection_acquisition_timeout=self.acquisition,
                    connection_timeout=10.0,
                    initial_retry_delay=FIRST_DELAY,
                    retry_delay_multiplier=2.0,
                    max_transaction_retry_time=self.retry,
                    notifications_min_severity="OFF",
                    telemetry_disabled=True,
                    user_agent="hopbench",
                )
            reason = f"its scheme is {scheme!r}; known: {', '.join(SCHEMES)}"
        except (ConfigurationError, ValueError) as error:
            reason, cause = str(error), error
        raise InputError(
            f"NEO4J_URI {self.uri!r} is no address of a Neo4j server ({reason}). Write bolt://HOST:PORT or "
            "neo4j+s://HOST; credentials go to NEO4J_USERNAME and NEO4J_PASSWORD"
        ) from cause


def _seconds(values: Mapping[str, str], name: str, default: float) -> float:
    text = values.get(name)
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 86_400:
        raise InputError(f"{name} {text!r} is no time limit: seconds, above 0 and at most 86400")
    return seconds


@contextmanager
def explained(connection: Connection) -> Iterator[None]:
    """Replace the driver's errors with one sentence that names the variable and the remedy."""
    from neo4j.exceptions import DriverError, Neo4jError

    try:
        yield
    except (DriverError, Neo4jError) as error:
        raise explanation(connection, error) from error


def explanation(connection: Connection, error: Exception) -> HopBenchError:
    """The error to raise instead of the driver's; it never quotes the password."""
    from neo4j.exceptions import Neo4jError

    code = str(getattr(error, "code", None) or type(error).__name__)
    message = " ".join(str(error.message if isinstance(error, Neo4jError) else error).split())[:300]
    if connection.password:
        message = message.replace(connection.password, "***")
    where = f"Neo4j at {connection.uri}"
    for marks, kind, text in _MEANINGS:
        if any(mark in code for mark in marks.split()):
            names = {"where": where, "c": connection, "database": connection.database or "the home database"}
            return kind(f"{text.format(**names)} ({message})")
    return StoreError(f"{where} refused a query: {code}: {message}")


# Parts of the server's codes and of the driver's classes → error and message. The first match is taken.
_MEANINGS: tuple[tuple[str, type[HopBenchError], str], ...] = (
    (
        "Security AuthError",
        InputError,
        "{where} does not let user {c.username!r} in: check NEO4J_USERNAME and NEO4J_PASSWORD",
    ),
    ("DatabaseNotFound", InputError, "{where} has no database {database!r}: check NEO4J_DATABASE"),
    (
        "ReadOnly",
        StoreError,
        "{where} holds {database} in read-only mode, so no graph can be written there: let the server write (its "
        "settings server.databases.read_only and server.databases.default_to_read_only) or name another database in "
        f"NEO4J_DATABASE. {RESUME_HINT}",
    ),
    (
        "TransactionTimedOut",
        StoreError,
        f"{{where}} needed over {{c.timeout:g}} s for a query: raise NEO4J_TIMEOUT (seconds). {RESUME_HINT}",
    ),
    (
        "LockClientStopped",  # a time limit reached while waiting for a lock
        StoreError,
        "{where} ended a query that waited for another one's locks, after {c.timeout:g} s at most: raise NEO4J_TIMEOUT "
        f"(seconds), or let what else writes there end first. {RESUME_HINT}",
    ),
    (
        "OutOfMemory",
        StoreError,
        "{where} has too little memory for a query: raise its settings server.memory.heap.max_size and "
        f"dbms.memory.transaction.total.max (in docker-compose NEO4J_HEAP of .env). {RESUME_HINT}",
    ),
    (
        "ConnectionAcquisitionTimeout",
        StoreError,
        "all {c.pool} connections to {where} (NEO4J_URI) were busy for {c.acquisition:g} s: run fewer tasks at a time. "
        + RESUME_HINT,
    ),
    ("ServiceUnavailable", StoreError, f"{{where}} does not answer: check NEO4J_URI and that it runs. {RESUME_HINT}"),
    (
        "SessionExpired IncompleteCommit",
        StoreError,
        f"{{where}} went away: check NEO4J_URI and that it runs. {RESUME_HINT}",
    ),
    ("DatabaseUnavailable", StoreError, f"{{where}} does not serve {{database}} now: see its log. {RESUME_HINT}"),
    ("ConfigurationError", InputError, "NEO4J_URI {c.uri!r} cannot be used"),
)


MEMORY_TRIES = 3
COMMIT_TRIES = 5
T = TypeVar("T")


def committed(transaction: Callable[[], T]) -> T:
    """Run `transaction`, and retry it if the connection broke during the commit.

    The driver does not retry a commit that may have succeeded; all of HopBench's transactions are idempotent.
    """
    from neo4j.exceptions import IncompleteCommit

    for _ in range(COMMIT_TRIES - 1):
        with suppress(IncompleteCommit):
            return transaction()
    return transaction()


def stopping(work: Callable[[ManagedTransaction], T], connection: Connection) -> Callable[[ManagedTransaction], T]:
    """Make `work` give up after `MEMORY_TRIES`: the driver would retry out-of-memory errors for a minute."""
    from neo4j.exceptions import TransientError

    tries = 0

    def once(tx: ManagedTransaction) -> T:
        nonlocal tries
        try:
            return work(tx)
        except TransientError as error:
            tries += "OutOfMemory" in str(error.code)
            if tries == MEMORY_TRIES:
                raise explanation(connection, error) from error
            raise

    return once
