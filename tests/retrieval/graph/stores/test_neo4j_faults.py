"""A server of the tests' own is killed, starved and locked: what is finished is kept, and messages say what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.cut_line import cut_line
from tests.support.graphs import graph_tables
from tests.support.neo4j_machine import QUICK_JAVA, Machine, ended, found, wait_for, write_benchmark

from hopbench.flows.neo4j_server.jars import neo4j_jars
from hopbench.flows.settings.home import Home
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.stores.neo4j.connection import Connection
from hopbench.retrieval.graph.stores.neo4j.store import Neo4jStore
from hopbench.retrieval.support.errors import StoreError

pytestmark = pytest.mark.neo4j

SIZE = 400
RING = graph_tables(
    {f"c{number}": f"text {number}" for number in range(SIZE)},
    entities=[f"e:{number}" for number in range(SIZE)],
    mentions=[(f"e:{number}", f"c{number}") for number in range(SIZE)],
    related=[(f"e:{number}", f"e:{(number + 1) % SIZE}", 0.5) for number in range(SIZE)],
)
RECORD = {"build_key": "ring"}
HEAVY = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b WITH a * b AS c WHERE c < 0 RETURN c"
GREEDY = "UNWIND range(1, 5000000) AS a RETURN collect(toString(a)) AS all"
LABELS = "bm25,graph_expansion,expansion_queries,entity_expansion,neighborhood,pagerank"


@pytest.fixture(scope="module")
def home(neo4j_connection: Connection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home of its own with the jars of the one where `make neo4j` put them."""
    jars = neo4j_jars(Home.resolve())
    home = Home(tmp_path_factory.mktemp("neo4j-home"))
    home.cache.mkdir(parents=True)
    (home.cache / jars.name).symlink_to(jars)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", QUICK_JAVA)
        yield home


def server_command(home: Home, *words: str) -> str:
    """What `make neo4j` and `make neo4j-stop` run."""
    line = [sys.executable, "-m", "hopbench.flows.neo4j_server", *words]
    environment = {**os.environ, "HOPBENCH_HOME": str(home.root)}
    return subprocess.run(line, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.mark.soak  # a server of its own, which ends with its parent
def test_a_home_has_one_server_whose_secrets_are_the_owners_and_which_ends_with_its_parent(home: Home) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    assert "answers at" in server_command(home, "start", str(parent.pid))
    assert "is running at" in server_command(home, "start", str(parent.pid))
    (folder,) = home.scratch.glob("neo4j-*")
    assert 0o600 == home.neo4j_env.stat().st_mode & 0o777
    store = Neo4jStore(Connection.resolve({}, home.neo4j_env), "none")
    assert store.record() is None
    store.close()

    parent.kill()
    parent.wait()

    deadline = time.monotonic() + 60
    while folder.exists():
        assert time.monotonic() < deadline, "the server outlives its parent"
        time.sleep(0.05)
    assert not home.neo4j_env.exists()
    assert "was not running" in server_command(home, "stop")


@pytest.fixture(scope="module")
def machine(home: Home) -> Iterator[Machine]:
    machine = Machine.start(home)
    store = machine.store()
    store.write(RING, RECORD)
    store.close()
    yield machine
    assert "is stopped" in server_command(home, "stop")
    machine.server.process and machine.server.process.wait()
    assert not machine.server.folder.exists()
    assert not home.neo4j_env.exists()


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_benchmark(tmp_path_factory.mktemp("benchmarks") / "words", 300)


def run(benchmark: str, out: Path, *words: str) -> list[str]:
    start = ["run", "--no-prefect", "--no-ragas", "--dataset", benchmark, "--out", str(out), "--strategies", LABELS]
    return [*start, *(words or ("--store", "neo4j"))]


@pytest.fixture(scope="module")
def undisturbed(machine: Machine, benchmark: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run on the embedded store."""
    out = tmp_path_factory.mktemp("undisturbed")
    assert (0, "") == machine.said(*run(benchmark, out, "--store", "kglite"))
    return out


def trials(out: Path) -> int:
    return len(list((out / ".unfinished").glob("*.trial")))


def building(store: Neo4jStore) -> bool:
    query = "MATCH (b:Building) MATCH (c:Chunk {namespace: b.namespace}) RETURN count(c) AS written"
    return bool(store.read(query)[0]["written"])


def test_a_run_whose_server_is_away_while_it_writes_goes_on(
    machine: Machine, benchmark: str, undisturbed: Path, tmp_path: Path
) -> None:
    """The line to it is cut and mended: a client sees the same of a server that is killed and starts again."""
    watch = machine.store()
    watch.record()
    with cut_line(machine.server.port) as line:
        running = machine.command(*run(benchmark, tmp_path), NEO4J_URI=f"bolt://127.0.0.1:{line.port}")
        wait_for(lambda: building(watch), running)
        line.cut()
        assert building(watch)
        time.sleep(0.5)  # it meets refused connections meanwhile
        assert not trials(tmp_path)
        line.mend()
        assert (0, "") == ended(running)
    watch.close()
    assert found(undisturbed) == found(tmp_path)  # the fingerprint too, which is read back: nothing lost or doubled


@pytest.mark.soak  # a server that starts again takes as long as all other tests here
@pytest.mark.parametrize("reading", [False, True])
def test_a_run_whose_server_is_killed_while_it_writes_and_while_it_reads_goes_on(
    reading: bool, machine: Machine, benchmark: str, undisturbed: Path, tmp_path: Path
) -> None:
    watch = machine.store()
    watch.record()
    running = machine.command(*run(benchmark, tmp_path))
    wait_for(lambda: building(watch), running)
    restarts = machine.restarting()
    if reading:
        restarts.join()
        wait_for(lambda: trials(tmp_path) > 1, running)
        restarts = machine.restarting()
    assert trials(tmp_path) < len(LABELS.split(","))
    assert not (tmp_path / "results.json").exists()

    assert (0, "") == ended(running)

    restarts.join()
    watch.close()
    assert found(undisturbed) == found(tmp_path)  # the fingerprint too, which is read back: nothing lost or doubled


@pytest.mark.parametrize("killed", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_run_whose_server_stays_away_stops_and_goes_on_later(
    killed: bool, machine: Machine, benchmark: str, undisturbed: Path, tmp_path: Path
) -> None:
    """The line to it is cut, or the server is killed: a client sees the same."""
    with cut_line(machine.server.port) as line:
        uri = {"NEO4J_URI": f"bolt://127.0.0.1:{line.port}"}
        running = machine.command(*run(benchmark, tmp_path), NEO4J_RETRY="1", **uri)
        wait_for(lambda: trials(tmp_path) > 1, running)
        (machine.server.kill if killed else line.cut)()

        code, errors = ended(running)

        assert (4, True) == (code, "check NEO4J_URI and that it runs" in errors), errors
        assert "the same command goes on" in errors
        assert machine.server.password not in errors
        kept = trials(tmp_path)
        assert 1 < kept < len(LABELS.split(","))

        (machine.restart if killed else line.mend)()
        assert (0, "") == machine.said(*run(benchmark, tmp_path), **uri)
    assert found(undisturbed) == found(tmp_path)


def test_a_run_may_search_by_the_vector_index_and_says_so(
    machine: Machine, benchmark: str, undisturbed: Path, tmp_path: Path
) -> None:
    assert (0, "") == machine.said(*run(benchmark, tmp_path, "--store", "neo4j", "--neo4j-vector-index"))

    exact, native = found(undisturbed), found(tmp_path)
    assert ("exact", "neo4j vector index") == (exact["search"], native["search"])
    assert exact["strategies"]["bm25"] == native["strategies"]["bm25"]
    assert exact["strategies"].keys() == native["strategies"].keys()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("NEO4J_PASSWORD", "not-the-one", "NEO4J_USERNAME and NEO4J_PASSWORD"),
        ("NEO4J_DATABASE", "nowhere", "no database 'nowhere': check NEO4J_DATABASE"),
        ("NEO4J_URI", "http://localhost:7474", "NEO4J_URI 'http://localhost:7474' is no address"),
    ],
)
def test_a_wrong_setting_is_bad_input_that_names_its_variable(
    machine: Machine, benchmark: str, name: str, value: str, words: str
) -> None:
    build = ("graph", "build", "--no-prefect", "--dataset", benchmark, "--store", "neo4j")

    code, errors = machine.said(*build, **{name: value})

    assert (2, True) == (code, words in errors), errors
    assert "not-the-one" not in errors


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


def test_a_build_that_is_cut_off_goes_on_later(machine: Machine, tmp_path: Path) -> None:
    other = write_benchmark(tmp_path / "other", 350)
    build = ("graph", "build", "--no-prefect", "--dataset", other, "--store", "neo4j")

    code, errors = machine.said(*build, NEO4J_TIMEOUT="0.03")

    assert (4, True) == (code, "over 0.03 s for a query: raise NEO4J_TIMEOUT" in errors), errors
    assert (0, "") == machine.said(*build)


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


@pytest.mark.soak  # a server of its own, started with little memory
def test_a_locked_and_starved_server_says_so_and_can_still_be_read(
    machine: Machine, benchmark: str, undisturbed: Path, tmp_path: Path
) -> None:
    machine.restart(**{"server.databases.default_to_read_only": "true", "dbms.memory.transaction.total.max": "10m"})
    store = machine.store()
    begun = time.monotonic()
    with pytest.raises(StoreError, match=r"too little memory.*dbms\.memory\.transaction\.total\.max") as starved:
        store.read(GREEDY)
    assert 4 == starved.value.exit_code
    assert time.monotonic() - begun < 20  # not the minute that the driver would try again
    assert RECORD == store.record()
    store.close()

    other = write_benchmark(tmp_path / "other", 30)
    code, errors = machine.said("graph", "build", "--no-prefect", "--dataset", other, "--store", "neo4j")
    assert (4, True) == (code, "read-only mode" in errors), errors

    # A graph is read through a mapping (of every name to itself) where nothing can be written.
    (namespace,) = (path.stem for path in machine.home.graphs.glob("words-*.kgl"))
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(yaml.safe_dump({"namespace": {"property": "namespace", "value": namespace}}))
    out = tmp_path / "mapped"
    assert (0, "") == machine.said(*run(benchmark, out, "--store", "neo4j", "--mapping", str(mapping)))
    ours, theirs = (found(folder)["strategies"] for folder in (undisturbed, out))
    assert {label: entry["metrics"] for label, entry in ours.items()} == {
        label: entry["metrics"] for label, entry in theirs.items()
    }
