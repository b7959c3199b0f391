"""The identity of a trial: what changes it, and which code it names."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.support.graphs import WORLD, built_index, plan_of

from hopbench.eval.runs.evaluate import Plan
from hopbench.eval.sweep.context import TrialContext
from hopbench.eval.trials import key
from hopbench.eval.trials.key import TrialKey
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.index import Index
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.types import Passage

SETTINGS = {"strategy": "pagerank", "parameters": {"restart": 0.15}, "questions": ["q1", "q2"], "seed": 0}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


def benchmark() -> Benchmark:
    questions = (BenchmarkQuestion("q1", "Who?"), BenchmarkQuestion("q2", "Where?"))
    return Benchmark("world", (Passage("p01", "", "text"),), questions)


def test_an_id_is_the_beginning_of_the_digest_of_its_settings_sorted_by_name() -> None:
    text = '{"parameters": {"restart": 0.15}, "questions": ["q1", "q2"], "seed": 0, "strategy": "pagerank"}'
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert (digest, digest[:16]) == (TrialKey(SETTINGS).digest, TrialKey(SETTINGS).id)
    assert TrialKey(SETTINGS).id == TrialKey(dict(reversed(SETTINGS.items()))).id


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"questions": ["q1"]}, {"parameters": {"restart": 0.3}}, {"code": "2"}]
)
def test_an_id_tells_every_setting(change: dict[str, object]) -> None:
    assert TrialKey(SETTINGS).id != TrialKey({**SETTINGS, **change}).id


def test_a_variation_is_part_of_a_key_only_where_it_is_not_the_default(index: Index) -> None:
    context = TrialContext(benchmark(), "digest", index, "fingerprint")
    settings = context.key(make("pagerank")).settings
    assert not {"latency", "ragas", "repeat", "batch", "model", "reader", "judge", "plugins"} & set(settings)
    measured = TrialContext(benchmark(), "digest", index, "fingerprint", latency=True, repeat=1)
    assert {**settings, "latency": True, "repeat": 1} == measured.key(make("pagerank")).settings


def test_a_run_and_a_sweep_name_a_trial_by_the_same_settings(index: Index) -> None:
    world, strategy = benchmark(), make("pagerank")
    run = Plan(world, index, {"fingerprint": "fingerprint"}, {"mine": strategy})
    trial = TrialContext(world, world.digest, index, "fingerprint").key(strategy)
    assert TrialKey({**trial.settings, "label": "mine"}).digest == run.key_of("mine")


def test_strategies_questions_and_graphs_make_different_trials(index: Index) -> None:
    context = TrialContext(benchmark(), "digest", index, "fingerprint")
    other = TrialContext(benchmark(), "digest", index, "another")
    ids = {context.trial_id(make("pagerank")), context.trial_id(make("bm25")), other.trial_id(make("bm25"))}
    assert 3 == len(ids)


def test_weights_decide_the_code_of_a_result_but_not_of_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "retrieval" / "weights.json"
    for file in (tmp_path / "eval" / "trials" / "trial.py", weights.with_name("code.py")):
        file.parent.mkdir(parents=True)
        file.write_text("1", encoding="utf-8")
    monkeypatch.setattr(key, "_ROOT", tmp_path)

    def versions(learned: str) -> tuple[str, str]:
        weights.write_text(learned, encoding="utf-8")
        key.source_digests.cache_clear()
        key.code_version.cache_clear()
        return key.code_version(), key.code_version(weights=False)

    (first, trained), (second, again) = versions("{}"), versions("[]")
    key.source_digests.cache_clear()
    key.code_version.cache_clear()

    assert (True, trained) == (first != second, again)
