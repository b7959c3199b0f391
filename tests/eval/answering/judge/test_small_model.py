"""Answers and judgements by a real model on a real server: every reply is valid structured output.

The model has 135 million parameters: what it says is worth nothing, and its agreement with anybody is no evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.llm_servers.small_model import MODEL

from hopbench.eval.answering.answers import answer_all
from hopbench.eval.answering.judge import open_judge
from hopbench.eval.answering.judge.outcome import judge_labels
from hopbench.eval.answering.judge.sample import Limits, Sample, make_sample
from hopbench.eval.answering.judge.schedule import JudgementStore
from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.types import Benchmark, PassageRanking
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.llm import LLM, CallLedger, Endpoint, Settings

METRICS = ("context_recall", "context_precision", "faithfulness")
# As short as a model that rarely ends by itself needs it; greedy, so that a failure can be seen again.
LIMITS = Limits(max_tokens=2048, temperature=0.0, items=3, chars=120)


@pytest.fixture(scope="module")
def two() -> Benchmark:
    """The two questions of hopworld with the shortest pairs of gold passages, which the model reads for seconds."""
    whole = load_benchmark("hopworld")
    length = {passage.id: len(passage.text) for passage in whole.passages}
    pairs = [question for question in whole.questions if len(question.gold) == 2]
    pairs.sort(key=lambda question: sum(length[gold] for gold in question.gold))
    return Benchmark(whole.name, whole.passages, tuple(pairs[:2]))


def rankings(benchmark: Benchmark) -> dict[str, PassageRanking]:
    """The gold passages as context: two a question."""
    texts = {passage.id: f"{passage.title}. {passage.text}" for passage in benchmark.passages}
    found = {}
    for question in benchmark.questions:
        parts = tuple(texts[gold] for gold in question.gold)
        ids = tuple(question.gold)
        found[question.id] = PassageRanking(question.id, ids, (), ids, "\n\n".join(parts), context_parts=parts)
    return found


def judge(benchmark: Benchmark, url: str, folder: Path, metrics: Sequence[str], profiles: Sequence[str]) -> None:
    """Answer and judge: nothing fails, every score is one, and every reply was valid output at the first attempt."""
    ranked = rankings(benchmark)
    count = len(benchmark.questions)
    settings = Settings(timeout=240, concurrency=1, max_concurrency=1)
    ledger = CallLedger()
    with (
        LLM(Endpoint(MODEL, url), folder, ledger, settings) as llm,
        JudgementStore.open(folder / "j.db") as store,
    ):
        answers = answer_all(llm, benchmark, ranked)
        assert [None] * count == [one.failure for one in answers.values()]
        samples: list[Sample] = [make_sample(q, ranked[q.id], answers[q.id]) for q in benchmark.questions]
        assert all(sample.response and len(sample.contexts) == 2 for sample in samples)
        for profile in profiles:
            judging = open_judge(profile, llm, get_embedder("wordllama"), store, LIMITS)
            judged = judge_labels(judging, {"gold": samples}, {"gold": metrics}, 1)
            assert [] == judged.table["failure"].dropna().tolist()
            assert judged.table["value"].between(0, 1).all()
            assert count * len(metrics) == len(judged.table)
    totals = ledger.totals()
    assert {"answer", *(f"judge:{metric}" for metric in metrics)} == set(totals)
    for one in totals.values():  # a reply that was no valid output would have been asked for again, or failed
        assert (0, one.calls - one.cached) == (one.failed, one.attempts)


def test_an_answer_and_the_shortest_judgement(two: Benchmark, small_model_url: str, tmp_path: Path) -> None:
    """`make soak` has the others: they take minutes."""
    one = replace(two, questions=two.questions[:1])
    judge(one, small_model_url, tmp_path, METRICS[:1], ["compact"])


@pytest.mark.soak
def test_answers_and_three_metrics_in_both_profiles(two: Benchmark, small_model_url: str, tmp_path: Path) -> None:
    judge(two, small_model_url, tmp_path, METRICS, ["full", "compact"])
