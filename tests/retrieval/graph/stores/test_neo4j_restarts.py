"""A server of the tests' own is killed, starved and locked: what is finished is kept, and messages say what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.neo4j_machine import (
    LABELS,
    RECORD,
    Machine,
    building,
    ended,
    found,
    run,
    stopped_early,
    trials,
    wait_for,
    write_benchmark,
)
from tools.neo4j_server.server import neo4j_jars

from hopbench.flows.settings.home import Home
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore
from hopbench.retrieval.support.errors import StoreError

pytestmark = [pytest.mark.neo4j, pytest.mark.soak]  # a server that starts takes as long as all tests of the shared one

GREEDY = "UNWIND range(1, 5000000) AS a RETURN collect(toString(a)) AS all"
# The servers live for seconds: what the second compiler would gain later, its work at the start would cost twice.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


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
    line = [sys.executable, "-m", "tools.neo4j_server", *words]
    environment = {**os.environ, "HOPBENCH_HOME": str(home.root)}
    return subprocess.run(line, env=environment, check=True, capture_output=True, text=True).stdout


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
    machine = Machine(home)
    with machine.with_ring():
        yield machine
    assert "is stopped" in server_command(home, "stop")
    machine.own.process and machine.own.process.wait()
    assert not machine.own.folder.exists()
    assert not home.neo4j_env.exists()


@pytest.fixture(scope="module")
def benchmark(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> str:
    return machine.benchmark(tmp_path_factory.mktemp("benchmarks"), 300)


@pytest.fixture(scope="module")
def undisturbed(machine: Machine, benchmark: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run on the embedded store."""
    return machine.undisturbed(benchmark, tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize("reading", [False, True])
def test_a_run_whose_server_is_killed_while_it_writes_and_while_it_reads_goes_on(
    reading: bool, machine: Machine, benchmark: str, undisturbed: Path, tmp_path: Path
) -> None:
    machine.drop(f"words-{machine.mark}")
    watch = machine.store()
    watch.record()
    running = machine.command(*run(benchmark, tmp_path))
    wait_for(lambda: building(machine, watch), running)
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


def test_a_run_whose_server_is_killed_for_good_stops_and_goes_on_later(
    machine: Machine, benchmark: str, undisturbed: Path, tmp_path: Path
) -> None:
    running = machine.command(*run(benchmark, tmp_path), NEO4J_RETRY="1")
    wait_for(lambda: trials(tmp_path) > 1, running)
    machine.kill()

    stopped_early(machine, running, tmp_path)

    machine.restart()
    assert (0, "") == machine.said(*run(benchmark, tmp_path))
    assert found(undisturbed) == found(tmp_path)


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
