"""The language-model stages of entity_expansion and dual_level, through their seams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.graphs import ASKED, WORLD, built_index, plan_of
from tests.support.llm_servers.scripted import Body, ScriptedServer

from hopbench.eval.answering.estimate import summary_line
from hopbench.eval.trials.trial import batches, merged, run_trial, run_unit
from hopbench.retrieval.context import Budget
from hopbench.retrieval.index import INDEX_VALUES, Index, Memo, Services
from hopbench.retrieval.llm import LLM, CallLedger, Endpoint, Settings
from hopbench.retrieval.question.model import VERSIONS, QuestionModel
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.dual_level import DualLevel
from hopbench.retrieval.strategies.entity_expansion import EntityExpansion
from hopbench.retrieval.support.errors import IncompleteError
from hopbench.retrieval.types import Question

NAMED = {"director of Ed Wood": ["Ed Wood", "Tim Burton", "Nobody known"], "Johnny Depp": ["Johnny Depp"]}

OFFERED = ["Geffen Company", "Michael Keaton", "Zebra"]  # the graph knows the first two


def says(body: Body) -> str:
    """Entities and keywords by what the question holds; the same synonyms for all; a summary in capitals."""
    prompt, text = (part["content"] for part in body["messages"])
    names = next((found for part, found in NAMED.items() if part in text), [])
    if "other names" in prompt:
        return json.dumps({"names": OFFERED})
    if "keywords" in prompt:
        return json.dumps({"high_level": ["birth", "film makers"] if names else [], "low_level": names})
    return json.dumps({"entities": names}) if "named things" in prompt else text.upper()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(reply=says).running() as running:
        yield running


@pytest.fixture
def llm(server: ScriptedServer, tmp_path: Path) -> Iterator[LLM]:
    ledger = CallLedger()
    with LLM(
        Endpoint("m", server.url), tmp_path / "cache", ledger, Settings(attempts=1, breaker_failures=99)
    ) as opened:
        yield opened
    ledger.close()


@pytest.fixture
def index(llm: LLM, tmp_path: Path) -> Index:
    built = built_index(plan_of(WORLD), tmp_path)
    QuestionModel(llm).install(built)
    return built


def trial(index: Index, strategy: Strategy, questions: list[Question] = ASKED):  # type: ignore[no-untyped-def]
    return run_trial("label", strategy, batches(index, questions), Budget())


def test_the_models_entities_are_seeds_and_what_the_graph_lacks_is_none(index: Index, server: ScriptedServer) -> None:
    outcome = trial(index, EntityExpansion(use_synonyms=False))
    assert ["e:ed wood", "e:tim burton"] == outcome.notes["q1"]["entities"]
    assert ["e:johnny depp"] == outcome.notes["q2"]["entities"]
    assert "fallback" in outcome.notes["q3"]
    # One call a question, each of so many tokens as the server counts: words of both messages, words of the reply.
    assert (5, 5) == (outcome.counters.llm_calls, len(server.requests))
    assert outcome.counters.tokens > 5 * 30


def test_stage_1_asks_for_concepts_and_its_prompt_has_a_version_of_its_own(
    index: Index, server: ScriptedServer
) -> None:
    """Replies to the prompts that have not changed stay valid: they are kept by prompt and version."""
    trial(index, DualLevel())
    trial(index, EntityExpansion(use_synonyms=False))
    purposes = {"keywords": "question-1", "entities": "question-2"}
    model = index.services.question_entities.__self__  # type: ignore[union-attr]
    assert purposes == {purpose: VERSIONS[purpose] for purpose in purposes}
    (prompt,) = {body["messages"][0]["content"] for body in server.requests if "named things" in str(body)} - {
        body["messages"][0]["content"] for body in server.requests if "keywords" in str(body)
    }
    assert "concepts and topics" in prompt
    assert model.name.endswith(" question-2")


def test_a_label_is_charged_what_the_cache_answers_too(index: Index, server: ScriptedServer) -> None:
    first, second = (trial(index, EntityExpansion(use_synonyms=False)) for _ in range(2))
    assert 5 == len(server.requests)
    assert (first.counters.llm_calls, first.counters.tokens) == (second.counters.llm_calls, second.counters.tokens)


def test_synonyms_enter_by_their_cosine_only(index: Index) -> None:
    asked = [Question("q2", "Which river flows past the birthplace of Johnny Depp?")]
    settings = {"min_entities": 20, "use_related": False}
    seed, *offered = index.embedder.embed(["Johnny Depp", *OFFERED[:-1]])
    cosines = [round(float(seed @ vector), 5) for vector in offered]
    between = (max(cosines) + sorted(cosines)[-2]) / 2  # one of the two names that the graph knows passes
    assert 0 < between < 1
    outcome = trial(index, EntityExpansion(**settings, synonym_threshold=between), asked)
    nearest = OFFERED[cosines.index(max(cosines))]
    assert [f"e:{nearest.lower()}"] == outcome.notes["q2"]["synonyms"]
    assert [] == trial(index, EntityExpansion(**settings, synonym_threshold=1.0), asked).notes["q2"]["synonyms"]
    assert 2 == outcome.counters.llm_calls  # stage 1 and one seed of stage 3


def test_keywords_and_summaries_serve_both_levels(index: Index, server: ScriptedServer) -> None:
    outcome = trial(index, DualLevel())
    assert 5 == sum(ranking.failure is None for ranking in outcome.rankings.values())
    prompts = [body["messages"][0]["content"] for body in server.requests]
    assert 5 == sum("keywords" in prompt for prompt in prompts)
    summaries = sum("entities that belong together" in prompt for prompt in prompts)
    assert summaries > 0
    assert 5 + summaries == outcome.counters.llm_calls


def test_an_estimate_counts_the_summaries_that_a_run_has_made(index: Index, server: ScriptedServer) -> None:
    line = summary_line(
        "dual_level", DualLevel(), replace(index, memo=Memo(INDEX_VALUES), services=Services()), ASKED[0]
    )

    assert [] == server.requests
    outcome = trial(index, DualLevel(), ASKED[:1])
    assert outcome.counters.llm_calls - 1 == line.calls > 0  # less the question's keywords
    assert (
        0
        == summary_line(
            "local", DualLevel(mode="local"), replace(index, memo=Memo(INDEX_VALUES), services=Services()), ASKED[0]
        ).calls
    )


def test_each_strategy_is_charged_for_the_summaries_whoever_had_them_made(index: Index, server: ScriptedServer) -> None:
    first, again = (trial(index, DualLevel(mode=mode)).counters for mode in ("global", "hybrid"))
    summaries = sum("entities that belong together" in body["messages"][0]["content"] for body in server.requests)
    assert (5 + summaries, first.tokens) == (first.llm_calls, again.tokens)
    assert first.llm_calls == again.llm_calls


def test_a_trial_pays_for_summaries_once_in_however_many_batches_and_whenever_it_runs(index: Index) -> None:
    whole = trial(index, DualLevel()).counters
    for _ in range(2):  # again on the same index, as a sweep's repeats are
        parts = batches(index, ASKED, 2)
        assert len(parts) > 1
        units = [run_unit("x", DualLevel(), part, Budget()) for part in parts]
        for counters in (run_trial("x", DualLevel(), parts, Budget()).counters, merged(units).counters):
            assert (whole.llm_calls, whole.tokens) == (counters.llm_calls, counters.tokens)


def test_a_question_without_a_usable_reply_is_a_failed_row(index: Index) -> None:
    bad = Question("bad", "Who is fault:schema?")
    outcome = trial(index, EntityExpansion(), [*ASKED, bad])
    failed = {question: ranking.failure for question, ranking in outcome.rankings.items() if ranking.failure}
    assert ["bad"] == list(failed)
    assert failed["bad"].startswith("QuestionFailed: wrong schema")


def test_an_endpoint_that_is_gone_stops_the_run_resumably(index: Index) -> None:
    with pytest.raises(IncompleteError, match="server error"):
        trial(index, EntityExpansion(), [replace(ASKED[0], text="Who is fault:500?")])


def test_a_community_without_a_summary_keeps_its_text_and_is_counted(llm: LLM, tmp_path: Path) -> None:
    renamed = [replace(one, title=one.title.replace("Tim Burton", "Tim fault:empty")) for one in WORLD]
    built = built_index(plan_of(renamed), tmp_path)
    QuestionModel(llm).install(built)
    outcome = trial(built, DualLevel(mode="global"))
    assert outcome.counters.terminations["community without summary"] > 0
    assert all(ranking.failure is None for ranking in outcome.rankings.values())
