"""The five flows as Prefect flows: what their forms offer and refuse, and flows of one's own that call them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.flows.cli.conftest import write_benchmark
from tests.support.places import ROOT

import hopbench.flows
from hopbench.flows.api.definition import (
    VARIABLES,
    CheckedFlow,
    block_of,
    explain_crash,
    load_secrets,
    refusal,
    refuse_others,
    same_folder,
    unfinished_folder,
)
from hopbench.flows.settings.options import RunOptions
from hopbench.flows.settings.setting import flags_of
from hopbench.retrieval.support.errors import TargetError

if TYPE_CHECKING:
    from hopbench.flows.orchestration.runtime import PrefectRuntime

LABELS = ("all", "all:tuned", "bm25", "hoprank", "pagerank", "graph_expansion:tuned")


def schema(name: str) -> dict[str, Any]:
    """What Prefect's server keeps of a flow's parameters: its form, and what it checks before a run."""
    from prefect.utilities.callables import parameter_schema

    return parameter_schema(getattr(hopbench.flows, name)).model_dump(exclude_unset=True)


def refused(name: str, **parameters: Any) -> bool:
    """Whether Prefect's server refuses these parameters; it asks the same function."""
    from prefect.utilities.schema_tools.validation import is_valid

    return not is_valid(parameters, schema(name))


def test_importing_the_package_loads_no_prefect() -> None:
    code = "import sys, hopbench, hopbench.flows; print('prefect' in sys.modules, sorted(hopbench.flows.FLOWS))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False ['build_graph', 'evaluate', 'nightly', 'sweep', 'train']"


@pytest.mark.parametrize("name", hopbench.flows.FLOWS)
def test_each_flow_is_a_prefect_flow_whose_parameters_are_described(name: str) -> None:
    from prefect import Flow

    flow = getattr(hopbench.flows, name)
    assert isinstance(flow, Flow)
    assert flow.name == name
    assert [] == [one for one, about in schema(name)["properties"].items() if not about.get("description")]
    assert flow.retries == 0


def test_the_form_of_a_night_offers_data_sets_labels_presets_bounds_and_defaults() -> None:
    fields = schema("nightly")["properties"]
    assert fields["dataset"]["anyOf"][0]["enum"] == ["hopworld", "hopworld-tune"]
    assert fields["dataset"]["default"] == "hopworld"
    assert set(LABELS) <= set(fields["strategies"]["items"]["anyOf"][0]["enum"])
    assert fields["strategies"]["default"] == ["all", "all:tuned"]
    assert fields["store"]["enum"] == ["arrays", "kglite", "neo4j"]
    assert fields["similar_top_k"]["anyOf"][0] == {"minimum": 1, "maximum": 1000, "type": "integer"}
    assert fields["latency_factor"]["exclusiveMinimum"] == 1
    assert fields["gleaning"]["maximum"] == 3


def test_a_run_has_the_parameters_of_the_command_line() -> None:
    flags = {name for name, _, _ in flags_of(RunOptions)}
    assert flags - {"no_prefect", "dry_run"} == set(schema("evaluate")["properties"]) - {"out"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"dataset": "hopword"},
        {"strategies": ["vecto"]},
        {"strategies": ["pagerank[restart=.3"]},
        {"limit": 0},
        {"limit": 1.5},
        {"similar_floor": 2},
        {"keep": 0},
        {"latency_factor": 1},
        {"runner": "spark"},
        {"judge_on": "finalists:0"},
        {"changes": ["restart=.3"]},
        {"budget": 0},
    ],
    ids=str,
)
def test_the_server_refuses_nonsense_before_a_run(wrong: dict[str, Any]) -> None:
    assert refused("nightly", **wrong)


@pytest.mark.parametrize(
    "right",
    [
        {"dataset": "/data/mine"},
        {"dataset": "hotpotqa/hotpot_qa:distractor"},
        {"strategies": ["pagerank[restart=.3,hops=2]", "bm25:tuned+mine[depth=20]"]},
        {"changes": ["pagerank.restart=.3"]},
        {"runner": "dask=10.0.0.1:8786"},
        {"judge_on": "finalists:3"},
        {"limit": None, "keep": 7, "budget": 2.5},
    ],
    ids=str,
)
def test_the_server_accepts_what_the_command_line_does(right: dict[str, Any]) -> None:
    assert not refused("nightly", **right)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (
            {"datasett": "x", "dataset": "hopworld"},
            "parameter datasett (sent: 'x') is unknown, did you mean dataset?",
        ),
        (
            {"limit": 0, "dataset": "hopworld"},
            "parameter limit=0: Input should be greater than or equal to 1 (Only the first N questions "
            "(the whole corpus stays). At least 1)",
        ),
        (
            {"keep": "many", "dataset": "hopworld"},
            "parameter keep='many': Input should be a valid integer, unable to parse string as an integer (",
        ),
        ({"limit": 0, "seedd": 1}, "greater than or equal to 1 (Only the first N questions"),
        ({"xyzzy": "s" * 1000}, "sss') is unknown, there are dataset, store, "),
    ],
    ids=["unknown", "bound", "type", "two", "long"],
)
def test_what_does_not_fit_a_parameter_is_refused_by_name_value_limit_and_remedy(
    sent: dict[str, Any], reason: str
) -> None:
    flow = hopbench.flows.nightly
    assert isinstance(flow, CheckedFlow)
    message = str(refusal(flow.name, flow.described, sent))
    assert len(message) < 1000
    assert message.startswith("nightly did not run: parameter ")
    assert reason in message
    assert message.endswith(". Correct the parameters and start it again")


def test_a_parameter_that_has_to_be_given_is_named() -> None:
    flow = hopbench.flows.evaluate.with_options(name="mine")
    assert isinstance(flow, CheckedFlow)
    assert "mine did not run: parameter dataset is missing: " in str(refusal(flow.name, flow.described, {}))
    assert refusal(flow.name, flow.described, {"dataset": "hopworld", "limit": 3}) is None


@pytest.mark.prefect
def test_what_was_sent_through_the_api_and_fits_no_parameter_fails_the_run(prefect_runtime: PrefectRuntime) -> None:
    """Unknown names are refused by the server, or, where its schema is open, explained by the process that ran it."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectHTTPStatusError
    from prefect.flow_engine import run_flow
    from prefect.states import Crashed
    from prefect.types.entrypoint import EntrypointType

    flow: Any = hopbench.flows.evaluate
    with prefect_runtime.flow_settings(), get_client(sync_client=True) as client:
        deployment = flow.to_deployment("closed", entrypoint_type=EntrypointType.MODULE_PATH)
        refuse_others(deployment)
        made, sent = deployment.apply(), {"dataset": "hopworld", "datasett": "x"}
        with pytest.raises(PrefectHTTPStatusError, match=r"409.*'datasett' was unexpected"):
            client.create_flow_run_from_deployment(made, parameters=sent)
        unknown = client.create_flow_run(flow, parameters=sent)
        explain_crash(flow=flow, flow_run=unknown, state=Crashed())
        state = client.read_flow_run(unknown.id).state
        assert state is not None
        assert (state.name, "parameter datasett (sent: 'x') is unknown" in str(state.message)) == ("Failed", True)

        wrong = client.create_flow_run(flow, parameters={"dataset": "hopworld", "limit": 0})
        ended: Any = run_flow(flow, flow_run=wrong, return_type="state")
        assert ended.is_failed()
        assert "InputError: evaluate did not run: parameter limit=0: " in ended.message


def test_a_sweeps_form_is_that_of_a_sweep_file() -> None:
    fields = schema("sweep")["properties"]
    assert "grid" in fields["file"]["anyOf"][0]["enum"]
    assert fields["search"]["enum"] == ["grid", "random", "ofat", "bayesian"]
    assert fields["repeats"]["maximum"] == 100
    assert not refused("sweep", file="grid", questions=30, seed=3)
    assert refused("sweep", file="grid", search="guess")
    assert refused("sweep", file="grid", questions=0)
    assert refused("train", datasets=["hopworld-tune"], passes=5)


def test_no_flow_takes_a_secret_as_a_parameter() -> None:
    names = {name for flow in hopbench.flows.FLOWS for name in schema(flow)["properties"]}
    assert set() == {name for name in names if any(word in name for word in ("key", "password", "webhook", "secret"))}
    assert "neo4j-password" in map(block_of, VARIABLES)


def test_the_same_parameters_have_the_same_folder_and_a_finished_run_is_left_alone(tmp_path: Path) -> None:
    first = same_folder(tmp_path, "a/b c", {"seed": 1, "out": None})
    assert first == same_folder(tmp_path, "a/b c", {"out": "x", "seed": 1})
    assert first != same_folder(tmp_path, "a/b c", {"seed": 2})
    assert first.parent == tmp_path
    assert first.name.startswith("a-b-c-")
    first.mkdir()
    assert unfinished_folder(tmp_path, "a/b c", {"seed": 1}, "report.html") == first
    (first / "report.html").touch()
    assert unfinished_folder(tmp_path, "a/b c", {"seed": 1}, "report.html") == first.with_name(f"{first.name}-2")


@pytest.mark.parametrize(("url", "expected"), [(None, (300, False)), ("http://127.0.0.1:4200/api", (20, True))])
def test_a_server_that_prefect_starts_for_a_flow_may_take_its_time_and_sends_nothing_home(
    url: str | None, expected: tuple[int, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prefect's own 20 s pass on a machine with other work; a server that is there needs none."""
    from prefect import Flow
    from prefect.settings import PREFECT_API_URL, temporary_settings
    from prefect.settings import PREFECT_SERVER_ANALYTICS_ENABLED as ANALYTICS
    from prefect.settings import PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS as PATIENCE

    monkeypatch.setattr(Flow, "__call__", lambda _, **sent: ((PATIENCE.value(), ANALYTICS.value()), sent))
    flow: Any = hopbench.flows.evaluate
    changed = {PREFECT_API_URL: url, PATIENCE: 20, ANALYTICS: True}
    with temporary_settings(changed, restore_defaults=() if url else {PREFECT_API_URL}):
        assert (expected, {"dataset": "hopworld"}) == flow(dataset="hopworld")


@pytest.mark.prefect
def test_a_key_comes_from_a_secret_block_and_stands_nowhere_in_the_clear(
    prefect_runtime: PrefectRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect import flow
    from prefect.blocks.system import Secret

    monkeypatch.delenv("JUDGE_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "of the environment")

    @flow
    def mine() -> list[str]:
        return load_secrets()

    with prefect_runtime.flow_settings():
        for name in ("judge-api-key", "openai-api-key"):
            Secret(value="sk-T0PSECRET").save(name, overwrite=True)
        assert mine() == ["JUDGE_API_KEY"]
    assert os.environ["JUDGE_API_KEY"] == "sk-T0PSECRET"
    assert os.environ["OPENAI_API_KEY"] == "of the environment"
    home = Path(os.environ["PREFECT_HOME"]).parent
    kept = [file for file in home.rglob("*") if file.is_file() and b"sk-T0PSECRET" in file.read_bytes()]
    assert [] == kept


@pytest.mark.prefect
def test_a_flow_of_ones_own_calls_ours_with_states_retries_and_a_mapped_sweep(
    prefect_runtime: PrefectRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect import flow, task

    monkeypatch.setenv("HOPBENCH_HOME", str(tmp_path / "home"))
    tiny = str(write_benchmark(tmp_path / "tiny"))
    plain = {"dataset": tiny, "strategies": "bm25,vector", "ragas": False}
    attempts: list[str] = []

    @task
    def swept(seed: int) -> Any:
        entry = {"strategy": "pagerank", "grid": {"restart": [0.1, 0.3]}}
        return hopbench.flows.sweep(datasets=[tiny], strategy=[entry], seed=seed, questions=2, ragas=False)

    @flow(retries=1)
    def mine() -> dict[str, Any]:
        attempts.append("mine")
        graph = hopbench.flows.build_graph(dataset=tiny)
        if len(attempts) == 1:
            raise OSError("the share is away for a moment")
        run = hopbench.flows.evaluate(**plain)
        missed = hopbench.flows.evaluate(**plain, targets=["bm25 recall@5>=2"], return_state=True)
        night = hopbench.flows.nightly(**plain, return_state=True)
        return {"graph": graph, "run": run, "missed": missed, "night": night, "sweeps": swept.map([0, 1]).result()}

    with prefect_runtime.flow_settings():
        found = mine()

    assert attempts == ["mine", "mine"]
    assert found["graph"].record["nodes"]["Chunk"] == 12
    assert set(found["run"].leaderboard().index) == {"bm25", "vector"}
    assert found["missed"].is_failed()
    assert isinstance(found["missed"].result(raise_on_failure=False), TargetError)
    assert found["night"].is_completed()
    assert found["night"].result().outcome == "baseline"
    assert [2, 2] == [len(one.trials()) for one in found["sweeps"]]
    assert 2 == len({one.folder for one in found["sweeps"]})
