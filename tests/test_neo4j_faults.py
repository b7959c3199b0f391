"""A server of the tests' own is killed, starved and locked: what is finished is kept, and messages say what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from flows.home import Home
from flows.neo4j_server.jars import neo4j_jars
from flows.neo4j_server.server import Neo4jServer, start
from retrieval.errors import InputError, StoreError
from retrieval.graph import cypher
from retrieval.graph.fingerprint import export, fingerprint
from retrieval.graph.neo4j_connection import Connection
from retrieval.graph.neo4j_store import Neo4jStore
from tests.graphs import graph_tables

pytestmark = pytest.mark.neo4j

SIZE = 4000
RING = graph_tables(
    {f"c{number}": f"text {number}" for number in range(SIZE)},
    entities=[f"e:{number}" for number in range(SIZE)],
    mentions=[(f"e:{number}", f"c{number}") for number in range(SIZE)],
    related=[(f"e:{number}", f"e:{(number + 1) % SIZE}", 0.5) for number in range(SIZE)],
)
RECORD = {"build_key": "ring"}
HEAVY = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b WITH a * b AS c WHERE c < 0 RETURN c"
GREEDY = "UNWIND range(1, 5000000) AS a RETURN collect(toString(a)) AS all"


@dataclass
class Machine:
    """The server as it stands now, and how to reach it."""

    home: Home
    server: Neo4jServer

    def connection(self, **changes: object) -> Connection:
        values = {"uri": self.server.uri, "password": self.server.password, **changes}
        return Connection(**values)  # type: ignore[arg-type]

    def store(self, namespace: str = "ring", **changes: object) -> Neo4jStore:
        return Neo4jStore(self.connection(**changes), namespace)

    def restart(self, **settings: str) -> None:
        self.server.kill()
        self.server = self.server.restarted(self.home, **settings)


@pytest.fixture(scope="module")
def home(neo4j_connection: Connection, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home of its own with the jars of the one where `make neo4j` put them."""
    jars = neo4j_jars(Home.resolve())
    home = Home(tmp_path_factory.mktemp("neo4j-home"))
    home.cache.mkdir(parents=True)
    (home.cache / jars.name).symlink_to(jars)
    return home


@pytest.fixture(scope="module")
def machine(home: Home) -> Iterator[Machine]:
    machine = Machine(home, start(home, os.getpid()))
    store = machine.store()
    store.write(RING, RECORD)
    store.close()
    yield machine
    machine.server.stop()
    assert not machine.server.folder.exists()


def test_a_wrong_password_names_both_variables_and_not_itself(machine: Machine) -> None:
    with pytest.raises(InputError, match="NEO4J_USERNAME and NEO4J_PASSWORD") as found:
        machine.store(password="not-the-one").record()

    assert "not-the-one" not in str(found.value)


def test_a_wrong_database_names_its_variable(machine: Machine) -> None:
    with pytest.raises(InputError, match="no database 'nowhere': check NEO4J_DATABASE"):
        machine.store(database="nowhere").record()


def test_an_exhausted_pool_says_so(machine: Machine) -> None:
    store = machine.store(pool=1, acquisition=0.2, retry=0.5)
    with store._session() as session, session.begin_transaction() as held:
        held.run("RETURN 1").consume()
        with pytest.raises(StoreError, match="all 1 connections"):
            store.record()
    assert RECORD == store.record()
    store.close()


def test_a_slow_query_is_cut_off(machine: Machine) -> None:
    store = machine.store(timeout=0.5)
    begun = time.monotonic()

    with pytest.raises(StoreError, match=r"over 0\.5 s.*NEO4J_TIMEOUT"):
        store.read(HEAVY)

    assert time.monotonic() - begun < 20
    assert RECORD == store.record()
    store.close()


def test_several_tasks_share_a_store(machine: Machine) -> None:
    store = machine.store()
    found: list[int] = []

    def task(number: int) -> None:
        for _ in range(5):
            (record,) = store.read(cypher.ENTITY_CHUNKS, ids=[f"e:{number}"])
            found.extend([number] * (record["target"] == [f"c{number}"]))

    tasks = [threading.Thread(target=task, args=(number,)) for number in range(8)]
    for each in tasks:
        each.start()
    for each in tasks:
        each.join()

    assert [number for number in range(8) for _ in range(5)] == sorted(found)
    store.close()


def test_reads_go_on_after_the_server_was_killed_and_restarted(machine: Machine) -> None:
    store = machine.store()
    assert SIZE == len(store.read(cypher.export_nodes("Chunk")))
    restarting = threading.Thread(target=machine.restart)
    restarting.start()
    while machine.server.running():
        time.sleep(0.01)

    rows = store.read(cypher.export_nodes("Chunk"))  # the server is down at this moment

    restarting.join()
    assert SIZE == len(rows)
    store.close()


def test_a_write_goes_on_after_the_server_was_killed_and_nothing_is_lost_or_doubled(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = machine.store("killed")
    whole, calls = Neo4jStore._run, iter(range(1000))

    def killing(self: Neo4jStore, query: str, **parameters: object) -> list[dict[str, object]]:
        if "MERGE (a)-[r:RELATED_TO]" in query and next(calls) == 0:
            threading.Thread(target=machine.restart).start()
        return whole(self, query, **parameters)  # type: ignore[return-value]

    monkeypatch.setattr(Neo4jStore, "_run", killing)
    store.write(RING, RECORD)

    assert RECORD == store.record()
    assert fingerprint(RING) == fingerprint(export(store))
    store.close()


def test_a_server_that_stays_away_is_a_store_error(machine: Machine) -> None:
    store = machine.store(retry=1.0)
    assert RECORD == store.record()
    machine.server.kill()

    with pytest.raises(StoreError, match=r"NEO4J_URI.*the same command goes on") as found:
        store.record()

    assert 4 == found.value.exit_code
    machine.server = machine.server.restarted(machine.home)
    assert RECORD == store.record()
    store.close()


def test_a_locked_and_starved_server_says_so(machine: Machine) -> None:
    machine.restart(**{"server.databases.default_to_read_only": "true", "db.memory.transaction.max": "2m"})
    store = machine.store()

    with pytest.raises(StoreError, match=r"read-only mode.*NEO4J_DATABASE"):
        replace_graph(store)
    begun = time.monotonic()
    with pytest.raises(StoreError, match="too little memory"):
        store.read(GREEDY)

    assert time.monotonic() - begun < 20  # not the minute that the driver would try again
    assert RECORD == store.record()
    store.close()


def replace_graph(store: Neo4jStore) -> None:
    store.write(graph_tables({"a": "x"}), {"build_key": "new"})


def test_a_server_ends_with_the_process_it_was_started_for(home: Home) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    told = home.root / "told"
    told.touch()
    server = start(home, parent.pid, [told])
    assert server.running()

    parent.kill()
    parent.wait()

    assert server.process is not None
    server.process.wait(60)
    assert not server.running()
    assert not server.folder.exists()
    assert not told.exists()


def test_a_home_has_one_server_whose_secrets_are_the_owners(home: Home) -> None:
    environment = {**os.environ, "HOPBENCH_HOME": str(home.root)}
    before = sorted(home.scratch.glob("neo4j-*"))

    def command(*words: str) -> str:
        line = [sys.executable, "-m", "flows.neo4j_server", *words]
        return subprocess.run(line, env=environment, check=True, capture_output=True, text=True).stdout

    assert "answers at" in command("start", str(os.getpid()))
    try:
        assert "is running at" in command("start", str(os.getpid()))
        assert 0o600 == home.neo4j_env.stat().st_mode & 0o777
        store = Neo4jStore(Connection.resolve({}, home.neo4j_env), "none")
        assert store.record() is None
        store.close()
    finally:
        assert "is stopped" in command("stop")
    assert "was not running" in command("stop")
    assert not home.neo4j_env.exists()
    assert before == sorted(home.scratch.glob("neo4j-*"))
