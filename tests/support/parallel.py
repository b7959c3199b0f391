"""Tests on several processes (pytest-xdist): who runs what, one Prefect server for all, and tests that run alone."""

from __future__ import annotations

import fcntl
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from hopbench.flows.orchestration.runtime import START_SECONDS, PrefectRuntime
from hopbench.flows.settings.home import Home

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

# Files that share a fixture which is dear or cannot be had twice run on one worker, one after the other.
_FINISHED_RUN = ("compare", "doctor", "doors", "explain", "foreign", "lists", "overview", "recommend", "train")
TOGETHER = {
    **{f"tests/flows/cli/test_{name}.py": "the command line's finished run" for name in _FINISHED_RUN},
    "tests/eval/answering/judge/test_small_model.py": "the small model",
    "tests/retrieval/graph/extract/test_small_model.py": "the small model",
    "tests/flows/cli/test_graph_list.py": "Neo4j",
    "tests/retrieval/graph/stores/test_neo4j_faults.py": "Neo4j",
    "tests/retrieval/graph/stores/test_stores.py": "Neo4j",
    **{
        f"tests/retrieval/graph/stores/test_neo4j_{name}.py": "Neo4j"
        for name in ("mapping", "pairs", "plans", "rankings", "store")
    },
}
# Begun first, longest first, so that no worker is left with a long file at the end. A new file need not stand here.
LONGEST = (
    "tests/retrieval/graph/stores/test_neo4j_rankings.py",
    "tests/flows/cli/test_explain.py",
    "tests/flows/cli/test_ragas.py",
    "tests/flows/cli/test_judge.py",
    "tests/flows/run/test_end_to_end.py",
    "tests/flows/sweeps/test_sweep.py",
    "tests/test_same_numbers.py",
    "tests/flows/tracking/test_tracking.py",
    "tests/flows/run/test_scale_out.py",
    "tests/flows/sweeps/test_worker.py",
    "tests/flows/api/test_docs.py",
    "tests/flows/nights/test_flow.py",
    "tests/eval/answering/judge/test_small_model.py",
    "tests/eval/report/",
    "tests/retrieval/llm/test_gate.py",
    "tests/flows/sweeps/test_models.py",
    "tests/flows/nights/test_serve.py",
    "tests/flows/orchestration/test_runtime.py",
    "tests/flows/sweeps/test_sharing.py",
    "tests/retrieval/embedding/test_models.py",
    "tests/retrieval/strategies/test_properties.py",
    "tests/retrieval/strategies/test_kg2rag_properties.py",
    "tests/retrieval/strategies/test_neighborhood_properties.py",
    "tests/retrieval/strategies/test_dual_level_properties.py",
    "tests/retrieval/strategies/test_activation.py",
    "tests/retrieval/embedding/test_cache.py",
    "tests/tools/hopworld/test_shipped.py",
    "tests/test_extending.py",
)


def together(nodeid: str) -> str:
    """What runs on one worker: a file, or the files of one entry of TOGETHER."""
    file = nodeid.partition("::")[0]
    return next((group for start, group in TOGETHER.items() if file.startswith(start)), file)


def begin_with_the_longest(items: list[pytest.Item]) -> None:
    """Sort the collected tests; groups stay whole and keep their own order."""
    place = {together(file): number for number, file in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(together(item.nodeid), len(place)))


def without_soak(items: list[pytest.Item], asked: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests to run, and those marked `soak` that are left out, unless the expression of -m names the mark."""
    long = [item for item in items if item.get_closest_marker("soak") and "soak" not in asked]
    return [item for item in items if item not in long], long


@dataclass(frozen=True)
class OnePrefectServer:
    """Prefect's server of the process that hands out the tests; it ends with that process however that ends."""

    home: Home
    runtime: PrefectRuntime

    @classmethod
    def start(cls, folder: Path) -> Self:
        """Start it and return at once. The environment of this process, which workers inherit, stays as it was."""
        home = Home(folder)
        with plain_prefect_environment(home):
            return cls(home, PrefectRuntime(home))

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Tell a worker where the server is."""
        node.workerinput["prefect"] = (str(self.home.root), self.runtime.api_url)

    def pytest_unconfigure(self) -> None:
        self.runtime.stop()


class SharedPrefect(PrefectRuntime):
    """The workers' view of that server: one that was given, but as quick as one's own, without heartbeats."""

    def flow_settings(self) -> AbstractContextManager[object]:
        from prefect.settings import PREFECT_API_URL, PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

        return temporary_settings({PREFECT_API_URL: self.api_url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None})


@contextmanager
def plain_prefect_environment(home: Home) -> Iterator[None]:
    """Prefect's own variables without those of the caller; everything is as before afterwards."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        del os.environ[name]
    os.environ.update(home.environment(os.environ))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def wait_for_server(url: str) -> None:
    """Block until the API at `url` answers."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            assert time.monotonic() < deadline, f"the tests' Prefect server at {url} did not answer in time"
            time.sleep(0.1)


def wait_while_it_runs(process: int) -> None:
    """Block until the process of that id has ended, whether or not its parent has asked for its exit code yet."""
    stat = Path(f"/proc/{process}/stat")
    while process and stat.exists() and stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX":
        time.sleep(0.1)


@contextmanager
def beside_others(folder: Path, alone: bool) -> Iterator[None]:
    """Hold the room of all workers: shared by most tests, for itself by a test that must run `alone`.

    Whoever waits for the room to empty keeps the gate, through which all others must pass.
    """
    with (folder / "gate.lock").open("w") as gate, (folder / "room.lock").open("w") as room:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield
