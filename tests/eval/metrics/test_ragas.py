"""RAGAS's metrics without LLM: by hand, and against its public call."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support.places import ROOT

from hopbench.eval.metrics import all_metrics, score, summarise
from hopbench.eval.types import Benchmark, BenchmarkQuestion, PassageRanking
from hopbench.retrieval.types import Passage

TEXTS = ["the cat sat on the mat", "the cat sat on a mat", "quarterly results were poor", "zebras graze", "xylophone"]
CORPUS = tuple(Passage(f"p{i}", "", text) for i, text in enumerate(TEXTS))
QUESTIONS = (
    BenchmarkQuestion("q1", "?", "", "x", (), ("p0", "p2")),
    BenchmarkQuestion("q2", "?", "", "x", (), ("p3",)),
    BenchmarkQuestion("q3", "?", "", "x"),
)
BENCHMARK = Benchmark("texts", CORPUS, QUESTIONS)


def context(question_id: str, *ids: str) -> PassageRanking:
    return PassageRanking(question_id, ids, (), ids, " ".join(ids))


RANKINGS = {"q1": context("q1", "p4", "p1", "p2"), "q2": context("q2"), "q3": context("q3", "p0")}


def test_hand_made_values() -> None:
    got = score(BENCHMARK, RANKINGS, ragas=True).loc["q1"]
    assert got["id_based_context_precision"] == 1 / 3  # p2 of p4, p1, p2
    assert got["id_based_context_recall"] == 1 / 2  # p2 of p0, p2
    # p1 differs from gold p0 by 3 edits of 22 letters (similarity .86), p4 from both by more than half:
    # verdicts 0, 1, 1 → average precision (1/2 + 2/3)/2
    assert got["non_llm_context_precision_with_reference"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert got["non_llm_context_recall"] == 1.0  # p1 stands for p0


def test_at_the_threshold_precision_counts_and_recall_does_not() -> None:
    corpus = (Passage("g", "", "ab"), Passage("r", "", "ac"))  # similarity 1 − 1/2
    benchmark = Benchmark("edge", corpus, (BenchmarkQuestion("q", "?", gold=("g",)),))
    got = score(benchmark, {"q": context("q", "r")}, ragas=True).loc["q"]
    assert got["non_llm_context_precision_with_reference"] == pytest.approx(1.0)
    assert got["non_llm_context_recall"] == 0.0


def test_an_empty_context_scores_zero_and_no_gold_does_not_apply() -> None:
    rows = score(BENCHMARK, RANKINGS, ragas=True)[list(all_metrics("ragas"))]
    assert (rows.loc["q2"] == 0).all()
    assert rows.loc["q3"].isna().all()
    assert summarise(score(BENCHMARK, RANKINGS, ragas=True), BENCHMARK)["metrics"]["id_based_context_recall"] == 0.25


def test_values_are_those_of_ragas_public_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGAS_DO_NOT_TRACK", "true")
    from ragas.dataset_schema import SingleTurnSample
    from ragas.metrics._context_precision import IDBasedContextPrecision, NonLLMContextPrecisionWithReference
    from ragas.metrics._context_recall import IDBasedContextRecall, NonLLMContextRecall

    # Making a usage event opens a user id file in the home folder and leaves it open.
    monkeypatch.setattr("ragas.metrics.base.EvaluationEvent", lambda **event: None)
    monkeypatch.setattr("ragas.metrics.base._analytics_batcher.add_evaluation", lambda event: None)
    rng = np.random.default_rng(5)
    texts = ["".join(rng.choice(list("abc "), size=int(rng.integers(3, 30)))) for _ in range(12)]
    corpus = tuple(Passage(f"p{i:02}", f"t{i}", text) for i, text in enumerate(texts))
    questions, rankings = [], {}
    for n in range(25):
        chosen = [f"p{i:02}" for i in rng.permutation(12)]
        questions.append(BenchmarkQuestion(f"q{n}", "?", "", "x", (), tuple(chosen[: 1 + n % 3])))
        rankings[f"q{n}"] = context(f"q{n}", *(f"p{i:02}" for i in rng.permutation(12)[:5]))
    rows = score(Benchmark("random", corpus, tuple(questions)), rankings, ragas=True)
    full = {p.id: f"{p.title}. {p.text}" for p in corpus}
    scorers = (
        IDBasedContextPrecision(),
        IDBasedContextRecall(),
        NonLLMContextPrecisionWithReference(),
        NonLLMContextRecall(),
    )
    assert [s.name for s in scorers] == list(all_metrics("ragas"))

    async def expected(question: BenchmarkQuestion) -> list[float]:
        ids = rankings[question.id].context_ids
        sample = SingleTurnSample(
            retrieved_context_ids=list(ids),
            reference_context_ids=list(question.gold),
            retrieved_contexts=[full[p] for p in ids],
            reference_contexts=[full[p] for p in question.gold],
        )
        return [await scorer.single_turn_ascore(sample) for scorer in scorers]

    public = [asyncio.run(expected(q)) for q in questions]
    assert public == rows[[s.name for s in scorers]].to_numpy().tolist()
    assert 0 < rows["non_llm_context_recall"].mean() < 1  # the random texts fall on both sides of the threshold


def test_it_works_where_an_event_loop_already_runs() -> None:
    async def inside() -> float:
        return float(score(BENCHMARK, RANKINGS, ragas=True).loc["q1", "id_based_context_recall"])

    assert asyncio.run(inside()) == 0.5


def test_ragas_is_imported_only_on_request_and_writes_nothing_home(tmp_path: Path) -> None:
    program = (
        "import sys; from tests_input import *; import hopbench.eval.metrics, hopbench.eval.metrics.scoring\n"
        "hopbench.eval.metrics.score(B, R); assert 'ragas' not in sys.modules\n"
        "hopbench.eval.metrics.score(B, R, ragas=True); assert 'ragas' in sys.modules\n"
    )
    (tmp_path / "tests_input.py").write_text(
        "from hopbench.eval.types import *; from hopbench.retrieval.types import Passage\n"
        "B = Benchmark('b', (Passage('p', 't', 'x'),), (BenchmarkQuestion('q', '?', gold=('p',)),))\n"
        "R = {'q': PassageRanking('q', ('p',), (), ('p',), 'x')}\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}", "HOME": str(home), "XDG_DATA_HOME": str(home)}
    subprocess.run([sys.executable, "-c", program], check=True, env=env, cwd=tmp_path)
    assert not list(home.rglob("*ragas*"))
