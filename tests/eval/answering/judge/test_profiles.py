"""The two profiles: the full one is RAGAS itself, the compact one keeps RAGAS's formulas."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.judging import SAMPLES, scripted_model
from tests.support.llm_servers.scripted import ScriptedServer

from hopbench.eval.answering.estimate import CountingAsker, OneDirection
from hopbench.eval.answering.judge import open_judge
from hopbench.eval.answering.judge.profiles import PROMPTS, CompactJudge, average_precision, most, named
from hopbench.eval.answering.judge.sample import INPUTS, Sample, reference
from hopbench.eval.answering.judge.schedule import JudgementStore, jobs_of
from hopbench.eval.metrics import all_metrics
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.llm import LLM, CallLedger, Endpoint

EMBEDDER = get_embedder("wordllama")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(scripted_model).running() as running:
        yield running


def test_every_judged_metric_has_its_inputs_and_a_compact_prompt() -> None:
    assert tuple(INPUTS) != ()
    assert set(all_metrics("judge")) == set(INPUTS) == set(PROMPTS)
    for name, metric in all_metrics("judge").items():
        needs = {"contexts": "context", "reference": "reference", "response": "reader"}
        assert {needs[one] for one in INPUTS[name] if one in needs} == set(metric.needs) - {"judge"}


def test_the_full_profile_gives_what_ragas_gives_when_called_directly(server: ScriptedServer, tmp_path: Path) -> None:
    """RAGAS by its own wrapper and instructor, on the same samples and the same scripted model."""
    direct = asyncio.run(_directly(server.url))
    with (
        LLM(Endpoint("m", server.url), None, CallLedger()) as llm,
        JudgementStore.open(tmp_path / "j.db") as store,
    ):
        judging = open_judge("full", llm, EMBEDDER, store)
        jobs = jobs_of(SAMPLES, tuple(INPUTS), 1)
        found = judging.judge(jobs)

    ours = {(job.metric, job.sample.question_id): found[judging.key_of(job)] for job in jobs}
    assert [] == [(key, one.failure) for key, one in ours.items() if one.failure is not None]
    assert direct == pytest.approx({key: one.value for key, one in ours.items()})
    assert len({round(value, 6) for value in direct.values()}) > 6  # a constant would agree with anything


@pytest.mark.parametrize("mode", ["think", "fencetext", "mistral", "my-deployment", "no-schema", "no-format"])
def test_a_judge_is_read_like_any_model(server: ScriptedServer, tmp_path: Path, mode: str) -> None:
    """RAGAS's own metric and a compact one over endpoints that think, fence, or refuse parameters."""
    with (
        LLM(Endpoint(mode, server.url), None, CallLedger()) as llm,
        JudgementStore.open(tmp_path / "j.db") as store,
    ):
        for profile in ("full", "compact"):
            judging = open_judge(profile, llm, EMBEDDER, store)
            judgements = judging.judge(jobs_of(SAMPLES, ("context_recall",), 1)).values()
            assert [None, None] == [one.failure for one in judgements]
            assert all(one.value is not None for one in judgements)
    refused = [body for body in server.requests if "max_tokens" in body] if mode == "my-deployment" else []
    assert len(refused) <= 1


async def _directly(url: str) -> dict[tuple[str, str], float]:
    """RAGAS as its documentation has it; the usage counter, which writes a user id into the home folder, is off."""
    import instructor
    import openai
    from ragas.llms import base
    from ragas.metrics import collections

    from hopbench.eval.answering.judge.profiles import ragas_embeddings

    client = openai.AsyncOpenAI(base_url=url, api_key="none")
    patch = pytest.MonkeyPatch()
    patch.setattr(base, "track", lambda _: None)
    patch.setattr(base, "LLMUsageEvent", dict)
    llm = base.InstructorLLM(
        client=instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA), model="m", provider="openai"
    )
    embeddings = ragas_embeddings(EMBEDDER)
    metrics: dict[str, Any] = {
        "context_precision": collections.ContextPrecision(llm=llm),
        "context_recall": collections.ContextRecall(llm=llm),
        "context_entity_recall": collections.ContextEntityRecall(llm=llm),
        "faithfulness": collections.Faithfulness(llm=llm),
        "answer_relevancy": collections.AnswerRelevancy(llm=llm, embeddings=embeddings),
        "factual_correctness": collections.FactualCorrectness(llm=llm),
        "answer_correctness": collections.AnswerCorrectness(llm=llm, embeddings=embeddings),
        "noise_sensitivity": collections.NoiseSensitivity(llm=llm),
    }
    named_by_ragas = {"question": "user_input", "contexts": "retrieved_contexts"}
    found = {}
    for name, metric in metrics.items():
        for sample in SAMPLES:
            inputs = {named_by_ragas.get(key, key): value for key, value in sample.inputs(name).items()}
            if "retrieved_contexts" in inputs:
                inputs["retrieved_contexts"] = list(inputs["retrieved_contexts"])
            found[name, sample.question_id] = float((await metric.ascore(**inputs)).value)
    await client.close()
    patch.undo()
    return found


SAID: dict[str, Any] = {
    "context_precision": {"useful": [1, 0]},
    "context_recall": {"statements": [{"statement": "a", "supported": 1}, {"statement": "b", "supported": 0}]},
    "context_entity_recall": {"entities": ["Torvik", "the Lindholm Bridge", "Oslo"]},
    "faithfulness": {"statements": [{"statement": "a", "supported": 1}]},
    "factual_correctness": {
        "given": [{"statement": "a", "supported": 1}, {"statement": "b", "supported": 0}],
        "reference": [{"statement": "a", "supported": 1}],
    },
    "noise_sensitivity": {
        "useful": [1],
        "statements": [
            {"statement": "a", "correct": 0, "passages": [1]},  # wrong, from a useful passage: misled
            {"statement": "b", "correct": 0, "passages": [2]},  # wrong, from a useless one
            {"statement": "c", "correct": 1, "passages": [1]},
        ],
    },
}
SCORES = {
    "context_precision": 1.0,  # (1/1) / 1
    "context_recall": 0.5,
    "context_entity_recall": 2 / 3,  # Oslo stands in no passage; case and article do not matter
    "faithfulness": 1.0,
    "factual_correctness": 0.67,  # TP 1, FP 1, FN 0: 2/(2 + 1), rounded as RAGAS does
    "noise_sensitivity": 1 / 3,
}


@pytest.mark.parametrize("metric", SCORES)
def test_the_compact_profile_scores_by_ragas_formulas(metric: str) -> None:
    async def asker(prompt: str, wanted: Any) -> Any:
        return wanted.model_validate(SAID[metric])

    found = asyncio.run(CompactJudge(asker, OneDirection()).score(metric, SAMPLES[0]))

    assert SCORES[metric] == pytest.approx(found)


def test_answer_correctness_weighs_claims_and_similarity() -> None:
    async def asker(prompt: str, wanted: Any) -> Any:
        return wanted.model_validate(SAID["factual_correctness"])

    found = asyncio.run(CompactJudge(asker, OneDirection()).score("answer_correctness", SAMPLES[0]))

    assert 0.75 * 2 / 3 + 0.25 * 1.0 == pytest.approx(found)


def test_a_noncommittal_answer_is_not_relevant() -> None:
    async def asker(prompt: str, wanted: Any) -> Any:
        return wanted.model_validate({"question": "Where?", "noncommittal": 1})

    assert 0.0 == asyncio.run(CompactJudge(asker, EMBEDDER).score("answer_relevancy", SAMPLES[0]))


@pytest.mark.parametrize(
    ("useful", "expected"), [([1, 0, 1], (1 + 2 / 3) / 2), ([0, 0], 0.0), ([0, 1], 1 / 2), ([1, 1], 1.0)]
)
def test_average_precision(useful: list[int], expected: float) -> None:
    assert expected == pytest.approx(average_precision(useful))


def test_a_reference_without_names_has_no_entity_recall() -> None:
    assert np.isnan(named([], ["text"]))


def test_compact_prompts_of_a_sample_share_their_beginning() -> None:
    """The passages and the question stand first, word for word: a server's prefix cache serves the later metrics."""
    reading = ["context_precision", "context_recall", "faithfulness", "noise_sensitivity"]
    texts = [PROMPTS[metric].text(SAMPLES[0]) for metric in reading]
    shared = "Passages:\n[1] Lindholm bridge."

    assert all(text.startswith(shared) for text in texts)
    assert all(f"\n\nQuestion: {SAMPLES[0].question}\n\n" in text for text in texts)


def test_the_compact_profile_reads_far_less_than_the_full_one() -> None:
    """Calls and prompt tokens of both on the same samples, counted on a stand-in: no model's agreement is claimed."""
    full, compact = (_counted(profile) for profile in ("full", "compact"))

    assert full.calls / compact.calls > 3
    assert full.tokens_in / compact.tokens_in > 6


def _counted(profile: str) -> CountingAsker:
    from hopbench.eval.answering.judge.profiles import FullJudge

    asker = CountingAsker()
    scorer: Any = (FullJudge if profile == "full" else CompactJudge)(asker, OneDirection())

    async def score() -> None:
        for sample in SAMPLES:
            for metric in INPUTS:
                await scorer.score(metric, sample)

    asyncio.run(score())
    return asker


@pytest.mark.parametrize(("words", "expected"), [(0, 3), (15, 3), (16, 6), (60, 12), (1000, 24)])
def test_lists_are_as_long_as_the_text_can_need(words: int, expected: int) -> None:
    assert expected == most(" ".join(["word"] * words))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Paris", "Where? Paris."),
        ("yes.", "Where? yes."),
        (None, None),
        ("It is the long way round by the harbour.", "It is the long way round by the harbour."),
    ],
)
def test_the_reference_is_a_statement(answer: str | None, expected: str | None) -> None:
    assert expected == reference(BenchmarkQuestion("q", "Where?", answer=answer))


def test_the_version_of_a_prompt_changes_with_its_text_and_schema() -> None:
    from dataclasses import replace

    prompt = PROMPTS["faithfulness"]

    assert prompt.version == replace(prompt).version
    assert len({prompt.version, replace(prompt, task="x").version, PROMPTS["noise_sensitivity"].version}) == 3
    other = replace(prompt, output=PROMPTS["noise_sensitivity"].output)
    assert prompt.version != other.version


def test_a_sample_says_what_it_lacks() -> None:
    bare = Sample("q", "Where?")

    assert {"contexts", "response", "reference"} == {bare.missing(metric) for metric in INPUTS}
    assert json.dumps(bare.inputs("faithfulness")) == '{"question": "Where?", "contexts": [], "response": null}'
