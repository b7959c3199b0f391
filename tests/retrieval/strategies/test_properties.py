"""What every registered strategy promises, on random corpora; one registered later is tested without a change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.graphs import ASKED, WORLD, built_index, corpora, plan_of, question_lists
from tests.support.places import ROOT

from hopbench.eval.trials.trial import run_trial
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.context import Budget
from hopbench.retrieval.graph.stores.contents import export, fingerprint
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.base import FILL_TO, KEEP
from hopbench.retrieval.strategies.registry import make, registry
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import Counters, Passage, Question, Ranking

NAMES = registry().names()
# Strategies whose source says that expansion never removes what the initial search found (SPEC section 3).
ADDITIVE = [name for name in ("vector", "bm25", "hybrid", "graph_expansion", "neighborhood") if name in NAMES]
EACH = pytest.mark.parametrize("name", NAMES)


def index_of(passages: Sequence[Passage]) -> Index:
    with tempfile.TemporaryDirectory() as folder:
        return built_index(plan_of(passages), Path(folder))


@cache
def world() -> Index:
    return index_of(WORLD)


def ranked(name: str, index: Index, questions: Sequence[Question], label: str = "") -> list[Ranking]:
    return make(name + label).rank(Batch(index, questions), Counters())


def plain(rankings: Sequence[Ranking]) -> list[object]:
    """Everything a ranking says, comparable: ids, scores, origins, components, paths, seeds, failure."""
    return [(r.question_id, [repr(hit) for hit in r.hits], list(r.seeds), r.graph_context, r.failure) for r in rankings]


def check(rankings: Sequence[Ranking], index: Index, questions: Sequence[Question]) -> None:
    known = set(index.row_of)
    assert [question.id for question in questions] == [ranking.question_id for ranking in rankings]
    for ranking in rankings:
        assert ranking.failure is None
        ids = [hit.chunk_id for hit in ranking.hits]
        assert len(ids) == len(set(ids))
        assert set(ids) <= known
        assert set(ranking.seeds) <= known
        assert all(np.isfinite(hit.score) for hit in ranking.hits)
        assert {hit.origin for hit in ranking.hits} <= {"seed", "graph", "fill"}
        for first, second in pairwise(ranking.hits):
            assert (-first.score, first.chunk_id) < (-second.score, second.chunk_id), "no total order"
        for hit in ranking.hits:
            assert not hit.path or hit.path[-1].target == hit.chunk_id
            assert not hit.path or hit.origin != "fill"
            for first, second in pairwise(hit.path):  # one route after another, each to its end
                assert first.target in (second.source, hit.chunk_id)


@settings(max_examples=15)
@given(passages=corpora(), questions=question_lists())
def test_random_corpora_are_ranked_soundly_and_alike_alone_and_in_a_batch(
    passages: list[Passage], questions: list[Question]
) -> None:
    index = index_of(passages)
    for name in NAMES:
        together = ranked(name, index, questions)
        check(together, index, questions)
        assert plain(together) == [row for one in questions for row in plain(ranked(name, index, [one]))], name


@EACH
def test_the_world_is_ranked_soundly(name: str) -> None:
    rankings = ranked(name, world(), ASKED)

    check(rankings, world(), ASKED)
    for ranking, initial in zip(rankings, make(name).initial(Batch(world(), ASKED)), strict=True):
        assert {chunk for chunk, _ in initial} <= {hit.chunk_id for hit in ranking.hits}  # 12 chunks: all are filled in


@EACH
def test_without_fill_nothing_is_filled_in(name: str) -> None:
    for ranking in ranked(name, world(), ASKED, "[fill=false]"):
        assert all(hit.origin != "fill" for hit in ranking.hits)


@settings(max_examples=8)
@given(passages=corpora(low=2), questions=question_lists(), data=st.data())
def test_the_order_of_the_corpus_changes_nothing(
    passages: list[Passage], questions: list[Question], data: st.DataObject
) -> None:
    given_order, other_order = index_of(passages), index_of(data.draw(st.permutations(passages)))
    for name in NAMES:
        assert plain(ranked(name, given_order, questions)) == plain(ranked(name, other_order, questions)), name


@EACH
def test_measuring_alone_ranks_as_in_a_batch(name: str) -> None:
    together = plain(ranked(name, world(), ASKED))

    alone = [make(name).rank(Batch(world(), [question], alone=True), Counters()) for question in ASKED]
    assert together == [row for rankings in alone for row in plain(rankings)]


@EACH
def test_no_question_is_no_ranking(name: str) -> None:
    assert [] == ranked(name, world(), [])


@pytest.mark.parametrize(
    "passages",
    [
        [Passage("a", "", "no name at all"), Passage("b", "", "nor here")],
        [Passage("a", "", "")],
        [Passage("a", "Only One", "Only One is alone.")],
        [Passage(f"{n}", "", "the same text") for n in range(30)],
    ],
    ids=["no entity", "empty text", "one passage", "all equal"],
)
def test_poor_corpora_are_ranked_too(passages: list[Passage]) -> None:
    index = index_of(passages)

    for name in NAMES:
        check(ranked(name, index, ASKED), index, ASKED)


@pytest.mark.parametrize("text", ["", " ", "?!", "the of", "x" * 5000, "a\"b\\c'd `$e` {f}", "日本 🎉", "\x00"])
def test_any_question_gets_an_answer(text: str) -> None:
    for name in NAMES:
        check(ranked(name, world(), [Question("q", text)]), world(), [Question("q", text)])


@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize("place", ["world", "many"])
def test_additive_strategies_never_drop_what_the_initial_search_found(name: str, place: str) -> None:
    strategy = make(f"{name}[fill=false]")
    batch = Batch(world() if place == "world" else many(), ASKED)

    for ranking, initial in zip(strategy.rank(batch, Counters()), strategy.initial(batch), strict=True):
        assert {chunk for chunk, _ in initial[:10]} == set(ranking.seeds)
        assert set(ranking.seeds) <= {hit.chunk_id for hit in ranking.hits}


def benchmark(questions: Sequence[BenchmarkQuestion]) -> Benchmark:
    return Benchmark("world", tuple(WORLD), tuple(questions))


@EACH
def test_gold_changes_no_ranking(name: str) -> None:
    """A strategy sees a question's id and text; whatever the benchmark knows beside it must not matter."""
    bare = benchmark([BenchmarkQuestion(q.id, q.text) for q in ASKED])
    leaking = {"evidences": [["Ed Wood", "director", "Tim Burton"]], "context_ids": ["p02"], "answer": "Burbank"}
    known = [
        BenchmarkQuestion(q.id, q.text, "bridge", "Burbank", ("B",), ("p02", "p03"), metadata=leaking) for q in ASKED
    ]

    def rankings(one: Benchmark) -> object:
        trial = run_trial(name, make(name), [Batch(world(), [q.question for q in one.questions])], Budget())
        return trial.rankings, {question: list(map(repr, hits)) for question, hits in trial.hits.items()}

    assert {"id", "text"} == set(Question.__dataclass_fields__)
    assert rankings(bare) == rankings(benchmark(known))


@cache
def long_world() -> Index:
    return index_of([replace(one, text=one.text + " and so on" * 130) for one in WORLD])  # over 390 tokens each


@EACH
def test_the_budget_is_the_same_for_all(name: str) -> None:
    trial = run_trial(name, make(name), [Batch(long_world(), ASKED)], Budget())

    for ranking in trial.rankings.values():
        assert len(ranking.context_ids) <= 4  # four passages of 390 tokens are more than 1,500
        assert count_tokens(ranking.context) <= 1500
        assert set(ranking.context_ids) <= set(ranking.ranked_ids)


@cache
def many() -> Index:
    return index_of([Passage(f"{n:03}", f"Name {n}", f"Ed Wood and river {n % 7}") for n in range(130)])


@EACH
def test_at_most_a_hundred_hits_are_kept(name: str) -> None:
    (ranking,) = ranked(name, many(), [Question("q", "Which river is Ed Wood's?")])

    assert FILL_TO <= len(ranking.hits) <= KEEP


def digest_of_everything(folder: Path) -> dict[str, object]:
    """The graph and each strategy's rankings and counts, as text."""
    index = built_index(plan_of(WORLD), folder)
    found: dict[str, object] = {"fingerprint": fingerprint(export(index.store)), "key": plan_of(WORLD).build_key}
    for name in NAMES:
        counters = Counters()
        rankings = make(name).rank(Batch(index, ASKED), counters)
        notes = [repr(sorted(ranking.notes.items())) for ranking in rankings]
        costs = [counters.round_trips, counters.rows, counters.edges_touched, sorted(counters.terminations.items())]
        found[name] = repr([plain(rankings), notes, costs])
    return found


def test_the_seed_of_python_s_hashes_changes_nothing(tmp_path: Path) -> None:
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    code = (
        "import json, pathlib, sys; "
        "from tests.retrieval.strategies.test_properties import digest_of_everything as digest; "
        "print(json.dumps(digest(pathlib.Path(sys.argv[1]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "there")],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )

    here, there = digest_of_everything(tmp_path / "here"), json.loads(done.stdout)

    assert {"fingerprint", "key", *NAMES} == set(here) == set(there)
    for part, expected in here.items():
        assert expected == there[part], part
