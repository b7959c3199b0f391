"""What the driver's retries leave open: a commit that broke, and a query that needs too much memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from hopbench.retrieval.graph.stores.neo4j.connection import Connection, explanation

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

MEMORY_TRIES = 3
COMMIT_TRIES = 5
T = TypeVar("T")


def committed(transaction: Callable[[], T]) -> T:
    """`transaction`, again where the connection broke while it was committed.

    The driver does not repeat what may have been done already; each of ours may be repeated.
    """
    from neo4j.exceptions import IncompleteCommit

    for _ in range(COMMIT_TRIES - 1):
        with suppress(IncompleteCommit):
            return transaction()
    return transaction()


def stopping(work: Callable[[ManagedTransaction], T], connection: Connection) -> Callable[[ManagedTransaction], T]:
    """`work` that gives up after `MEMORY_TRIES`: the driver would repeat what needs too much memory for a minute."""
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
