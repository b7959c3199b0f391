"""How many functions of our own a traceback from a strategy shows."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.flows.cli.conftest import call, write_benchmark

from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies.baselines import BM25
from hopbench.retrieval.types import Counters, Ranking

if TYPE_CHECKING:
    from hopbench.flows.orchestration.runtime import PrefectRuntime

AT_MOST = 8  # from the command's function to the strategy's `search`, both counted


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_benchmark(tmp_path_factory.mktemp("stack") / "tiny")


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Our own functions on the stack at each call of bm25's `search` with several questions, outermost first."""
    seen: list[list[str]] = []
    search = BM25.search

    def recording(self: BM25, batch: Batch, counters: Counters) -> list[Ranking]:
        frames = [one.frame for one in inspect.stack()[1:]]
        ours = [frame for frame in reversed(frames) if frame.f_globals["__name__"].startswith("hopbench.")]
        names = [frame.f_code.co_name for frame in ours]
        if not batch.alone:  # not those that measure latency
            seen.append([*names[names.index("run_command") :], "search"])
        return search(self, batch, counters)

    monkeypatch.setattr(BM25, "search", recording)
    return seen


def test_a_run_without_prefect_reaches_a_strategy_in_few_calls(
    stacks: list[list[str]], dataset: Path, tmp_path: Path
) -> None:
    given = ("--dataset", dataset, "--strategies", "bm25", "--no-ragas", "--out", tmp_path / "out")
    done = call("run", *given, "--no-prefect", home=tmp_path / "home")
    assert (done.code, done.err) == (0, "")
    assert stacks == [["run_command", "run", "run_flow", "execute", "run", "rank", "search"]]
    assert len(stacks[0]) <= AT_MOST


@pytest.mark.prefect
def test_a_run_on_prefect_reaches_a_strategy_in_few_calls_of_our_own(
    stacks: list[list[str]], dataset: Path, tmp_path: Path, prefect_runtime: PrefectRuntime
) -> None:
    given = ("--dataset", dataset, "--strategies", "bm25", "--no-ragas", "--out", tmp_path / "out")
    done = call("run", *given, home=tmp_path / "home", environment={"PREFECT_API_URL": prefect_runtime.api_url})
    assert (done.code, done.err) == (0, "")
    assert stacks == [["run_command", "run", "run_flow", "hopbench", "execute", "run", "rank", "search"]]
    assert len(stacks[0]) <= AT_MOST
