"""A server that is away, slow or asked wrongly: what is finished is kept, and messages say what to do."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cut_line import cut_line
from tests.support.neo4j_machine import RECORD, Client, building, ended, found, run, stopped_early, trials, wait_for

from hopbench.flows.settings.home import Home
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.support.errors import StoreError

pytestmark = pytest.mark.neo4j

HEAVY = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b WITH a * b AS c WHERE c < 0 RETURN c"


@pytest.fixture(scope="module")
def client(neo4j_connection: Connection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with Client(Home(tmp_path_factory.mktemp("neo4j-home")), neo4j_connection).with_ring() as client:
        yield client


@pytest.fixture(scope="module")
def benchmark(client: Client, tmp_path_factory: pytest.TempPathFactory) -> str:
    return client.benchmark(tmp_path_factory.mktemp("benchmarks"), 300)


@pytest.fixture(scope="module")
def undisturbed(client: Client, benchmark: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run on the embedded store."""
    return client.undisturbed(benchmark, tmp_path_factory.mktemp("undisturbed"))


def test_a_run_whose_server_is_away_while_it_writes_goes_on(
    client: Client, benchmark: str, undisturbed: Path, tmp_path: Path
) -> None:
    """The line to it is cut and mended: a client sees the same of a server that is killed and starts again."""
    watch = client.store()
    watch.record()
    with cut_line(client.port) as line:
        running = client.command(*run(benchmark, tmp_path), NEO4J_URI=f"bolt://127.0.0.1:{line.port}")
        wait_for(lambda: building(client, watch), running)
        line.cut()
        assert building(client, watch)
        time.sleep(0.5)  # it meets refused connections meanwhile
        assert not trials(tmp_path)
        line.mend()
        assert (0, "") == ended(running)
    watch.close()
    assert found(undisturbed) == found(tmp_path)  # the fingerprint too, which is read back: nothing lost or doubled


def test_a_run_whose_server_stays_away_stops_and_goes_on_later(
    client: Client, benchmark: str, undisturbed: Path, tmp_path: Path
) -> None:
    """The line to it is cut: a client sees the same of a server that was killed."""
    with cut_line(client.port) as line:
        uri = {"NEO4J_URI": f"bolt://127.0.0.1:{line.port}"}
        running = client.command(*run(benchmark, tmp_path), NEO4J_RETRY="1", **uri)
        wait_for(lambda: trials(tmp_path) > 1, running)
        line.cut()

        stopped_early(client, running, tmp_path)

        line.mend()
        assert (0, "") == client.said(*run(benchmark, tmp_path), **uri)
    assert found(undisturbed) == found(tmp_path)


def test_a_run_may_search_by_the_vector_index_and_says_so(
    client: Client, benchmark: str, undisturbed: Path, tmp_path: Path
) -> None:
    assert (0, "") == client.said(*run(benchmark, tmp_path, "--store", "neo4j", "--neo4j-vector-index"))

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
    client: Client, benchmark: str, name: str, value: str, words: str
) -> None:
    build = ("graph", "build", "--no-prefect", "--dataset", benchmark, "--store", "neo4j")

    code, errors = client.said(*build, **{name: value})

    assert (2, True) == (code, words in errors), errors
    assert "not-the-one" not in errors


def test_an_exhausted_pool_says_so(client: Client) -> None:
    store = client.store(pool=1, acquisition=0.2, retry=0.5)
    with store._session() as session, session.begin_transaction() as held:
        held.run("RETURN 1").consume()
        with pytest.raises(StoreError, match="all 1 connections"):
            store.record()
    assert RECORD == store.record()
    store.close()


def test_a_slow_query_is_cut_off(client: Client) -> None:
    store = client.store(timeout=0.5)
    begun = time.monotonic()

    with pytest.raises(StoreError, match=r"over 0\.5 s.*NEO4J_TIMEOUT"):
        store.read(HEAVY)

    assert time.monotonic() - begun < 20
    assert RECORD == store.record()
    store.close()


def test_a_build_that_is_cut_off_goes_on_later(client: Client, tmp_path: Path) -> None:
    other = client.benchmark(tmp_path, 350)
    build = ("graph", "build", "--no-prefect", "--dataset", other, "--store", "neo4j")

    code, errors = client.said(*build, NEO4J_TIMEOUT="0.03")

    assert (4, True) == (code, "0.03 s" in errors and "raise NEO4J_TIMEOUT" in errors), errors
    assert (0, "") == client.said(*build)


def test_several_tasks_share_a_store(client: Client) -> None:
    store = client.store()
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
