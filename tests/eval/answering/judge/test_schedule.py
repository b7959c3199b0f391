"""The judge's scheduler: nothing lost, nothing silently zero, nobody else's scores, nothing asked twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.judging import SAMPLES, Body, scripted_model
from tests.support.llm_servers.scripted import ScriptedServer

from hopbench.eval.answering.judge import open_judge
from hopbench.eval.answering.judge.outcome import NO_ANSWER, judge_labels
from hopbench.eval.answering.judge.profiles import PROMPTS
from hopbench.eval.answering.judge.sample import INPUTS, LIMITS, Sample
from hopbench.eval.answering.judge.schedule import Job, JudgementStore, Judging, jobs_of
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.llm import LLM, BudgetReached, CallLedger, Endpoint, Settings

EMBEDDER = get_embedder("wordllama")
FAITHFUL = ("faithfulness", "context_recall", "context_precision")


@contextmanager
def judge_at(
    server: ScriptedServer,
    folder: Path,
    *,
    model: str = "m",
    profile: str = "compact",
    budget: float | None = None,
    temperature: float = 0.01,
) -> Iterator[Judging]:
    """A judge whose replies and judgements are kept in `folder`."""
    settings = Settings(timeout=2, attempts=3)
    with (
        LLM(Endpoint(model, server.url), folder / "replies", CallLedger(None, budget), settings) as llm,
        JudgementStore.open(folder / "judgements.db") as store,
    ):
        yield open_judge(profile, llm, EMBEDDER, store, replace(LIMITS[profile], temperature=temperature))


def many(count: int, text: str = "") -> list[Sample]:
    return [
        replace(SAMPLES[0], question_id=f"q{n}", question=f"Question {n}?", response=f"Answer {n}. {text}")
        for n in range(count)
    ]


@pytest.mark.parametrize("profile", ["compact", "full"])
def test_what_is_judged_is_not_asked_again(profile: str, tmp_path: Path) -> None:
    jobs = jobs_of(SAMPLES, FAITHFUL, 2)
    with ScriptedServer(scripted_model).running() as server:
        with judge_at(server, tmp_path, profile=profile) as first:
            found = first.judge(jobs)
        asked = len(server.requests)
        with judge_at(server, tmp_path, profile=profile) as again:
            kept = again.judge(jobs)
    assert found == kept
    assert asked == len(server.requests)
    assert (len(jobs), 0) == (first.made, again.made)
    assert len(jobs) == again.reused


def test_each_judgement_is_on_disk_when_it_is_told(tmp_path: Path) -> None:
    jobs = jobs_of(SAMPLES, FAITHFUL, 1)
    with ScriptedServer(scripted_model).running() as server, judge_at(server, tmp_path) as judging:
        keys = {(job.metric, job.sample.question_id): judging.key_of(job) for job in jobs}
        seen = []
        with JudgementStore.open(tmp_path / "judgements.db") as reader:  # as another process reads it
            judging.judge(jobs, lambda one: seen.append((one, reader.get(keys[one.metric, one.question_id]))))
    assert len(jobs) == len(seen)
    assert all(told == kept for told, kept in seen)


@pytest.mark.parametrize("changed", ["model", "endpoint", "temperature", "prompt", "schema", "profile"])
def test_the_cache_of_judge_a_never_answers_judge_b(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = jobs_of(SAMPLES, ["faithfulness"], 1)
    with ScriptedServer(scripted_model).running() as server, ScriptedServer(scripted_model).running() as elsewhere:
        with judge_at(server, tmp_path) as a:
            a.judge(jobs)
        before = len(server.requests)
        prompt = PROMPTS["faithfulness"]
        if changed == "prompt":
            monkeypatch.setitem(PROMPTS, "faithfulness", replace(prompt, task=prompt.task + " "))
        elif changed == "schema":
            monkeypatch.setitem(PROMPTS, "faithfulness", replace(prompt, output=PROMPTS["noise_sensitivity"].output))
        second = elsewhere if changed == "endpoint" else server
        with judge_at(
            second,
            tmp_path,
            model="other" if changed == "model" else "m",
            profile="full" if changed == "profile" else "compact",
            temperature=0.7 if changed == "temperature" else 0.01,
        ) as b:
            b.judge(jobs)
        asked = len(second.requests) - (0 if changed == "endpoint" else before)
    assert len(SAMPLES) == b.made
    assert asked >= len(SAMPLES)


def test_a_temperature_reaches_the_model(tmp_path: Path) -> None:
    with ScriptedServer(scripted_model).running() as server, judge_at(server, tmp_path) as judging:
        judging.judge(jobs_of(SAMPLES, ["faithfulness"], 1))
    assert {LIMITS["compact"].temperature} == {body["temperature"] for body in server.requests}


def test_every_failure_is_a_row_with_its_reason_and_tried_again_by_the_next_run(tmp_path: Path) -> None:
    """A message with "fault:NAME" always meets that fault."""
    faults = {
        "500": "server error",
        "truncated": "truncated",
        "schema": "wrong schema",
        "empty": "empty choice",
        "disconnect": "disconnected",
        "hang": "timeout",
    }
    samples = [replace(SAMPLES[0], question_id=name, response=f"fault:{name}") for name in faults]
    settings = Settings(timeout=0.5, attempts=1)
    with (
        ScriptedServer(scripted_model).running() as server,
        LLM(Endpoint("m", server.url), tmp_path, CallLedger(), settings) as llm,
        JudgementStore.open(tmp_path / "j.db") as store,
    ):
        judging = open_judge("compact", llm, EMBEDDER, store)
        labels = {"a": [*many(4), *samples]}
        judged = judge_labels(judging, labels, {"a": ["faithfulness"]}, 1)
        server.reply, asked = (lambda _: '{"statements": [{"statement": "a", "supported": 1}]}'), len(server.requests)
        again = judge_labels(judging, labels, {"a": ["faithfulness"]}, 1)
    reasons = judged.table["failure"].dropna()
    assert len(samples) == len(reasons)
    assert Counter(faults.values()) == Counter(reason.partition(":")[0] for reason in reasons)
    assert judged.table.loc[reasons.index, "value"].isna().all()
    summary = judged.summary("a")["faithfulness"]
    assert (10, 0.4) == (summary["questions"], summary["coverage"])
    assert len(samples) == sum(summary["failures"].values())
    assert all("faithfulness: " in told for told in judged.failures("a"))
    assert len(server.requests) > asked  # the failed ones were asked again, the others not
    assert len(again.table) == 10


def test_a_fifth_of_faults_loses_nothing_and_zeroes_nothing(tmp_path: Path) -> None:
    faults = {"truncated": 0.05, "500": 0.05, "empty": 0.05, "disconnect": 0.05}
    right = '{"statements": [{"statement": "a", "supported": 1}]}'
    with ScriptedServer(lambda _: right, faults=faults).running() as server, judge_at(server, tmp_path) as judging:
        judged = judge_labels(judging, {"a": many(60)}, {"a": ["faithfulness"]}, 1)
    assert 60 == len(judged.table)
    scored = judged.table["failure"].isna()
    assert scored.sum() >= 55
    assert {1.0} == set(judged.table.loc[scored, "value"])  # a fault never becomes a 0
    assert judged.table.loc[~scored, "value"].isna().all()


def test_equal_samples_of_two_labels_are_judged_once(tmp_path: Path) -> None:
    with ScriptedServer(scripted_model).running() as server, judge_at(server, tmp_path) as judging:
        judged = judge_labels(judging, {"a": SAMPLES, "b": SAMPLES}, dict.fromkeys("ab", FAITHFUL), 1)
    assert len(FAITHFUL) * len(SAMPLES) == judging.made == len(server.requests)
    assert judged.columns("a").equals(judged.columns("b"))


def test_repeats_tell_the_spread_of_the_judge(tmp_path: Path) -> None:
    said = iter([1, 0, 1, 1])

    def wavering(_: Body) -> str:
        return json.dumps({"statements": [{"statement": "a", "supported": next(said)}]})

    with ScriptedServer(wavering).running() as server, judge_at(server, tmp_path) as judging:
        judging.workers = 1
        judged = judge_labels(judging, {"a": SAMPLES}, {"a": ["faithfulness"]}, 2)
    values = judged.table.set_index(["question_id", "repeat"])["value"].unstack().to_numpy().tolist()
    assert sorted([[1.0, 0.0], [1.0, 1.0]]) == sorted(sorted(row, reverse=True) for row in values)
    # Variances of the repeats: of (1, 0) it is .5, of (1, 1) 0; pooled .25, the spread .5.
    assert 0.5 == judged.summary("a")["faithfulness"]["judge_sd"]
    assert {0.5, 1.0} == set(judged.columns("a")["faithfulness"])


def test_what_cannot_be_judged_says_so(tmp_path: Path) -> None:
    bare = replace(SAMPLES[0], question_id="bare", contexts=())
    silent = replace(SAMPLES[0], question_id="silent", response=None)
    ungraded = replace(SAMPLES[0], question_id="ungraded", reference=None)
    with ScriptedServer(scripted_model).running() as server, judge_at(server, tmp_path) as judging:
        judged = judge_labels(judging, {"a": [bare, silent, ungraded]}, {"a": list(INPUTS)}, 1)
    table = judged.table.set_index(["question_id", "metric"])
    assert 0.0 == table.loc[("bare", "context_recall"), "value"]  # no context recalls nothing
    assert 1.0 == table.loc[("bare", "noise_sensitivity"), "value"]  # the worst there
    assert NO_ANSWER == table.loc[("silent", "faithfulness"), "failure"]
    assert ("ungraded", "context_recall") not in table.index  # without gold it does not apply


def test_the_budget_stops_cleanly_and_the_next_run_goes_on(tmp_path: Path) -> None:
    jobs = jobs_of(many(30), ["faithfulness"], 1)
    right = '{"statements": [{"statement": "a", "supported": 1}]}'
    with ScriptedServer(lambda _: right).running() as server:
        with judge_at(server, tmp_path, model="gpt-4o", budget=0.025) as capped:
            capped.workers = 1  # each call in flight sets aside what it may cost at most, here two cents
            with pytest.raises(BudgetReached) as stop:
                capped.judge(jobs)
        finished = capped.made
        assert finished > 0
        assert len(server.requests) == finished
        with judge_at(server, tmp_path, model="gpt-4o") as rich:
            assert len(jobs) == len(rich.judge(jobs))
    assert finished == rich.reused
    assert len(jobs) == len(server.requests)  # none was asked twice
    assert 4 == stop.value.exit_code
    assert "--budget" in str(stop.value)


@pytest.mark.parametrize(
    ("profile", "order"),
    [("full", lambda job: job.metric), ("compact", lambda job: job.sample.question_id)],
)
def test_the_order_serves_the_servers_prefix_cache(profile: str, order: Callable[[Job], str], tmp_path: Path) -> None:
    jobs = jobs_of(many(5), FAITHFUL, 1)
    with ScriptedServer(scripted_model).running() as server, judge_at(server, tmp_path, profile=profile) as judging:
        todo = {judging.key_of(job): job for job in jobs}
        groups = [order(todo[key]) for unit in judging._units(todo) for key in unit]
    changes = sum(before != after for before, after in pairwise(groups))
    assert len(jobs) == len(groups)
    assert len(set(groups)) - 1 == changes  # every group in one piece
