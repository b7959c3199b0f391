"""Where a Neo4j server is looked for, and what its failures say; no server needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from neo4j.exceptions import (
    ConnectionAcquisitionTimeoutError,
    DriverError,
    IncompleteCommit,
    Neo4jError,
    ServiceUnavailable,
)

from hopbench.retrieval.graph.cypher.neo4j import schema_statements, write_edges
from hopbench.retrieval.graph.stores.neo4j_connection import Connection, committed, explained, explanation
from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore
from hopbench.retrieval.support.errors import HopBenchError, InputError, StoreError

FILE = "# made by make neo4j\nNEO4J_URI=bolt://file:1\nNEO4J_USERNAME='ann'\nNEO4J_PASSWORD=\"a=b\"\n\n"
HERE = Connection(uri="bolt://host:1", username="ann", password="s3cret-word")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "neo4j.env"
    path.write_text(FILE)
    return path


def test_the_file_is_read_where_the_environment_names_no_server(file: Path) -> None:
    found = Connection.resolve({}, file)

    assert ("bolt://file:1", "ann", "a=b", None) == (found.uri, found.username, found.password, found.database)


def test_the_environment_wins_as_a_whole(file: Path) -> None:
    environment = {"NEO4J_URI": "neo4j://env", "NEO4J_PASSWORD": "p", "NEO4J_DATABASE": "d", "NEO4J_TIMEOUT": "2.5"}
    environment["NEO4J_RETRY"] = "7"

    found = Connection.resolve(environment, file)

    assert ("neo4j://env", "neo4j", "p", "d", 2.5, 7.0) == (
        found.uri,
        found.username,
        found.password,
        found.database,
        found.timeout,
        found.retry,
    )


def test_no_server_named_anywhere_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"NEO4J_URI is not set.*NEO4J_PASSWORD.*make neo4j"):
        Connection.resolve({}, tmp_path / "none")
    with pytest.raises(InputError, match="no NEO4J_PASSWORD"):
        Connection.resolve({"NEO4J_URI": "bolt://x"})


@pytest.mark.parametrize("name", ["NEO4J_TIMEOUT", "NEO4J_RETRY"])
@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf", "86401"])
def test_a_time_limit_that_is_none_is_refused(name: str, text: str) -> None:
    with pytest.raises(InputError, match=name):
        Connection.resolve({"NEO4J_URI": "bolt://x", "NEO4J_PASSWORD": "p", name: text})


@pytest.mark.parametrize("uri", ["http://host:7474", "host", "bolt://host:port", "bolt://host?x=1"])
def test_an_address_that_is_none_names_the_variable(uri: str) -> None:
    with pytest.raises(InputError, match="NEO4J_URI"):
        Connection(uri=uri, password="p").driver()


def test_a_server_that_is_not_there_is_told_at_once() -> None:
    store = Neo4jStore(Connection(uri="bolt://127.0.0.1:1", password="p"), "none")

    with pytest.raises(StoreError, match=r"bolt://127\.0\.0\.1:1 does not answer: check NEO4J_URI"):
        store.record()
    store.close()


def server_error(code: str, message: str = "the server's words") -> Neo4jError:
    return Neo4jError._hydrate_neo4j(code=code, message=message)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (server_error("Neo.ClientError.Security.Unauthorized"), InputError, "'ann'.*NEO4J_USERNAME and NEO4J_PASSWORD"),
        (server_error("Neo.ClientError.Database.DatabaseNotFound"), InputError, "NEO4J_DATABASE"),
        (server_error("Neo.ClientError.General.ForbiddenOnReadOnlyDatabase"), StoreError, "read-only.*NEO4J_DATABASE"),
        (server_error("Neo.ClientError.Transaction.TransactionTimedOut"), StoreError, "over 300 s.*NEO4J_TIMEOUT"),
        (server_error("Neo.ClientError.Transaction.LockClientStopped"), StoreError, "300 s at most.*NEO4J_TIMEOUT"),
        (server_error("Neo.TransientError.General.MemoryPoolOutOfMemoryError"), StoreError, "memory.*NEO4J_HEAP"),
        (server_error("Neo.TransientError.Database.DatabaseUnavailable"), StoreError, "the home database"),
        (ServiceUnavailable("gone"), StoreError, "does not answer.*NEO4J_URI.*goes on"),
        (IncompleteCommit("gone"), StoreError, "went away.*NEO4J_URI.*goes on"),
        (ConnectionAcquisitionTimeoutError("busy"), StoreError, "all 16 connections.*NEO4J_URI.*30 s"),
        (server_error("Neo.ClientError.Statement.SyntaxError"), StoreError, "refused a query: .*SyntaxError"),
    ],
)
def test_each_failure_says_what_to_look_at(error: Exception, kind: type[HopBenchError], words: str) -> None:
    with pytest.raises(kind, match=words):
        raise explanation(HERE, error)


def test_no_message_quotes_the_password() -> None:
    assert "s3cret-word" not in repr(HERE)
    for error in (server_error("Neo.ClientError.Security.X", "bad s3cret-word"), DriverError("s3cret-word?")):
        with pytest.raises(HopBenchError) as found, explained(HERE):
            raise error
        assert "s3cret-word" not in str(found.value)
        assert "***" in str(found.value)


def test_a_commit_whose_end_is_unknown_is_repeated_some_times() -> None:
    broken = [IncompleteCommit("gone")] * 4
    assert 7 == committed(lambda: raised(broken.pop()) if broken else 7)

    broken = [IncompleteCommit("gone")] * 5
    with pytest.raises(IncompleteCommit):
        committed(lambda: raised(broken.pop()) if broken else 7)


def raised(error: Exception) -> int:
    raise error


def test_schema_and_writes_can_be_repeated() -> None:
    for name, statement in schema_statements().items():
        assert f" {name} IF NOT EXISTS FOR " in statement
    assert (
        "UNWIND $rows AS row MATCH (a:Entity {namespace: $namespace, id: row.source}), "
        "(b:Chunk {namespace: $namespace, id: row.target}) "
        "USING INDEX SEEK a:Entity(namespace, id) USING INDEX SEEK b:Chunk(namespace, id) "
        "MERGE (a)-[r:MENTIONED_IN]->(b) SET r += row.properties"
    ) == write_edges("MENTIONED_IN")
