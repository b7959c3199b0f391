"""A tiny corpus, opened through the Python API in a home of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.flows.cli.conftest import SERVERS, write_benchmark

import hopbench


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the tiny benchmark; HOPBENCH_HOME is an empty folder meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for name in SERVERS:
            patch.delenv(name, raising=False)
        patch.setenv("HOPBENCH_HOME", str(tmp_path_factory.mktemp("api-home")))
        yield write_benchmark(tmp_path_factory.mktemp("api") / "tiny")


@pytest.fixture(scope="module")
def corpus(tiny: Path) -> hopbench.Corpus:
    """The tiny benchmark, opened."""
    return hopbench.open(tiny)
