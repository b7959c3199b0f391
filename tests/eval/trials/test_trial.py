"""A trial: every question gets a row, a failure is one with its reason, chunks become passages within the budget."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from tests.support.graphs import ASKED, WORLD, CountingStore, built_index, plan_of

from hopbench.eval.graph_quality import expansion_factors, reach_columns
from hopbench.eval.runs.evaluate import Plan
from hopbench.eval.trials import trial as module
from hopbench.eval.trials.latency import measure_latency
from hopbench.eval.trials.trial import batches, prepare, run_trial, to_passages
from hopbench.eval.types import Benchmark, BenchmarkQuestion, Gold, PassageRanking
from hopbench.retrieval.context import Budget
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.strategies.base import Strategy, param
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.support.errors import ParameterError, StoreError
from hopbench.retrieval.types import Counters, Hit, Passage, Question, Ranking

DEFAULT = Budget()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


@dataclass(frozen=True, kw_only=True)
class Stumbling(Strategy):
    """Ranks by vector; cannot answer a question whose text contains `word`."""

    name: ClassVar[str] = "stumbling"
    summary: ClassVar[str] = "fails"
    word: str = param("river", "what it stumbles over")
    error: ClassVar[type[Exception]] = ZeroDivisionError

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Fail, or rank."""
        counters.round_trips += 1
        if any(self.word in question.text for question in batch.questions):
            raise self.error("no way over")
        return [Ranking(q.id, [Hit("p01", 1.0)], ["p01"]) for q in batch.questions]

    def initial(self, batch: Batch) -> list[Scored]:
        """The vector ranking."""
        return batch.vector_rankings


class Stopping(Stumbling):
    """Fails in a way that concerns every question."""

    error = StoreError


def test_a_failure_is_a_row_with_its_reason_and_stops_no_other_question(index: Index) -> None:
    outcome = run_trial("stumbling", Stumbling(), [Batch(index, ASKED)], Budget())

    assert [question.id for question in ASKED] == list(outcome.rankings)
    assert 1 == outcome.failures  # q2 asks for a river
    assert PassageRanking("q2", failure="ZeroDivisionError: no way over") == outcome.rankings["q2"]
    assert outcome.rankings["q1"] == run_trial("s", Stumbling(), [Batch(index, ASKED[:1])], Budget()).rankings["q1"]


def test_what_concerns_every_question_stops_the_trial(index: Index) -> None:
    with pytest.raises(StoreError, match="no way over"):
        run_trial("stopping", Stopping(), [Batch(index, ASKED)], Budget())


def test_only_what_a_ranking_cost_is_charged(index: Index) -> None:
    # The batch fails and is not charged; of its five questions alone four are, the fifth failed.
    outcome = run_trial("stumbling", Stumbling(), [Batch(index, ASKED)], Budget())

    assert 4 == outcome.counters.round_trips


def test_a_trial_records_what_made_it(index: Index) -> None:
    outcome = run_trial("graph_expansion[max_depth=2]", make("graph_expansion[max_depth=2]"), [], Budget())

    assert ("graph_expansion[max_depth=2]", "graph_expansion", 2) == (
        outcome.label,
        outcome.strategy,
        outcome.parameters["max_depth"],
    )
    assert make("graph_expansion[max_depth=2]").spec() == outcome.parameters
    assert 0 == outcome.failures


def test_batches_cover_every_question_once(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [5] == [len(part.questions) for part in batches(index, ASKED)]
    monkeypatch.setattr(module, "BATCH_SIZE", 2)
    parts = batches(index, ASKED)

    assert (
        [2, 2, 1]
        == [len(part.questions) for part in parts]
        == [len(part.questions) for part in batches(index, ASKED, 9)]
    )
    assert [1] * 5 == [len(part.questions) for part in batches(index, ASKED, 1)]
    assert ASKED == [question for part in parts for question in part.questions]
    assert [] == batches(index, [])
    assert prepare(parts) >= 0


def test_how_questions_are_batched_changes_no_ranking(index: Index) -> None:
    whole = run_trial("hybrid", make("hybrid"), [Batch(index, ASKED)], Budget())
    parts = run_trial("hybrid", make("hybrid"), [Batch(index, [q]) for q in ASKED], Budget())

    assert whole.rankings == parts.rankings


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Passage p is split into p#0, p#1, p#2; passage r is whole."""
    passages = [Passage("p", "", "One two three. Four five six. Seven eight nine."), Passage("r", "", "ten")]
    return built_index(plan_of(passages, max_tokens=4), tmp_path_factory.mktemp("split"))


def to(index: Index, ranked: Sequence[str], budget: Budget = DEFAULT, **more: object) -> PassageRanking:
    hits = [Hit(chunk, 1.0 - rank / 10) for rank, chunk in enumerate(ranked)]
    return to_passages(Ranking("q", hits, **more), index, budget)  # type: ignore[arg-type]


def test_a_passage_ranks_where_its_first_chunk_does(split: Index) -> None:
    found = to(split, ["p#2", "r", "p#0", "p#1"], seeds=["p#1", "p#2", "r"])

    assert (("p", "r"), (1.0, 0.9)) == (found.ranked_ids, found.scores)
    assert ("p", "r") == found.seeds
    assert ("p", "r") == found.context_ids
    assert "Seven eight nine.\n\nten\n\nOne two three.\n\nFour five six." == found.context


def test_the_context_is_the_budget_s_chunks_not_passages(split: Index) -> None:
    found = to(split, ["p#2", "p#0", "r"], Budget(chunks=2))

    assert (("p",), "Seven eight nine.\n\nOne two three.") == (found.context_ids, found.context)
    assert ("p", "r") == found.ranked_ids


def test_a_graph_block_takes_its_part_of_the_budget(split: Index) -> None:
    # "##", " a", what joins the parts (2 reserved), "Seven", " eight"
    found = to(split, ["p#2", "r"], Budget(tokens=6), graph_context="## a")

    assert ("## a\n\nSeven eight", ("p",)) == (found.context, found.context_ids)


def test_an_empty_ranking_is_no_failure(split: Index) -> None:
    assert PassageRanking("q") == to(split, [])


def test_a_failed_ranking_keeps_only_its_reason(split: Index) -> None:
    assert PassageRanking("q", failure="why") == to(split, ["r"], failure="why")


def test_latency_is_measured_on_seeded_questions_one_a_call_sharing_nothing(tmp_path: Path) -> None:
    index = built_index(plan_of(WORLD), tmp_path)
    questions = [Question(f"q{n}", ASKED[n % 5].text) for n in range(60)]

    taken = measure_latency(make("graph_expansion"), index, questions, seed=3)

    assert 50 == len(taken)
    assert list(taken) == list(measure_latency(make("vector"), index, questions, seed=3))
    assert list(taken) != list(measure_latency(make("vector"), index, questions, seed=4))
    assert all(milliseconds > 0 for milliseconds in taken.values())
    assert isinstance(index.store, CountingStore)
    assert 51 == len(index.store.queries)  # once to warm up, then each: no read is kept


@pytest.mark.parametrize(("explained", "read"), [(False, 0), (True, 20 * 2)])
def test_an_explained_call_reads_what_the_first_hits_are_made_of(
    explained: bool, read: int, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Lazy(Mapping[str, float]):
        def __getitem__(self, key: str) -> float:
            asked.append(key)
            return 1.0

        def __iter__(self) -> Iterator[str]:
            return iter(["bm25"])

        def __len__(self) -> int:
            return 1

    hits = [Hit(f"p{number}", 1.0, components=Lazy()) for number in range(30)]
    monkeypatch.setattr(Stumbling, "rank", lambda *_: [Ranking("q1", hits)])
    measure_latency(Stumbling(), index, [ASKED[0]], explained=explained)

    assert read == len(asked)  # once to warm up


def test_a_failing_question_has_a_latency_too(index: Index) -> None:
    assert {"q2"} == set(measure_latency(Stumbling(), index, [ASKED[1]]))


def benchmark(*gold: tuple[str, ...]) -> Benchmark:
    questions = [BenchmarkQuestion(q.id, q.text, gold=ids) for q, ids in zip(ASKED, gold, strict=False)]
    return Benchmark("world", tuple(WORLD), tuple(questions))


def test_reach_counts_the_steps_of_the_graph_from_the_seeds(index: Index) -> None:
    """p01 -(Tim Burton)- p02 -(Burbank)- p03: one entity step each; p11 names nothing and is linked by no entity."""
    outcome = run_trial("s", Stumbling(word="?!"), [Batch(index, ASKED[:3])], Budget())
    known = benchmark(("p01", "p02"), ("p03",), ("p11",))

    found = reach_columns({"s": outcome}, known, replace(expansion_factors(index), similar=None))["s"]

    assert [1.0, 1.0, 0.0] == found["reach@2"].tolist()
    assert found["reach_share@2"].between(0, 1).all()


def test_reach_takes_any_gold_set_and_never_what_the_corpus_lacks(index: Index) -> None:
    outcome = run_trial("s", Stumbling(word="?!"), [Batch(index, ASKED[:4])], Budget())
    golds = Gold.any_of([["p11"], ["p01", "p02"]]), Gold.any_of([["p11"], ["p03", "gone"]]), Gold(["gone"]), Gold()
    known = benchmark(*golds)

    found = reach_columns({"s": outcome}, known, replace(expansion_factors(index), similar=None))["s"]

    assert [1.0, 0.0, 0.0] == found["reach@2"].tolist()[:3]
    assert np.isnan(found["reach@2"].tolist()[3])
    assert found["reach_share@2"].between(0, 1).all()


def test_reach_of_a_failed_question_is_unknown(index: Index) -> None:
    outcome = run_trial("s", Stumbling(), [Batch(index, ASKED[:2])], Budget())

    found = reach_columns({"s": outcome}, benchmark(("p01",), ("p02",)), expansion_factors(index))["s"]

    assert [False, True] == np.isnan(found["reach@2"]).tolist()


def test_reach_over_a_split_passage_goes_through_all_its_chunks(split: Index) -> None:
    questions = (BenchmarkQuestion("q", "?", gold=("p",)),)
    known = Benchmark("b", (Passage("p", "", ""), Passage("r", "", "")), questions)
    outcome = run_trial("s", Stumbling(), [], Budget())
    outcome.rankings["q"] = PassageRanking("q", seeds=("p",))

    found = reach_columns({"s": outcome}, known, expansion_factors(split))["s"]

    assert [1.0] == found["reach@1"].tolist()


@pytest.mark.parametrize(
    ("label", "refused"),
    [
        ("graph_expansion[min_similarity=.2]", True),
        ("graph_expansion[min_similarity=.3]", False),
        ("graph_expansion[min_similarity=.2,use_similar=false]", False),
        ("vector", False),
    ],
)
def test_a_threshold_below_the_graph_s_floor_is_refused(index: Index, label: str, refused: bool) -> None:
    """The graph has no SIMILAR_TO edge below its floor: a lower threshold would promise edges that are not there."""
    record = index.store.record()
    assert record is not None
    with (
        pytest.raises(ParameterError, match=r"min_similarity = 0\.2 is below the floor.*0\.3")
        if refused
        else nullcontext()
    ):
        Plan(benchmark(), index, record, {label: make(label)})


def test_what_is_done_once_is_told_apart_from_the_time_of_the_questions(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    class Reading(Stumbling):
        def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
            def read() -> int:
                now[0] += 60
                return 1

            names = batch.index.memo.get("names", read)
            now[0] += names
            return [Ranking(question.id, [Hit("p01", 1.0)], ["p01"]) for question in batch.questions]

    parts = batches(Index(index.chunks, index.vectors, index.store, index.embedder), ASKED, 1)
    first, second = (run_trial(label, Reading(), parts, DEFAULT) for label in ("first", "second"))

    assert (60, 0) == (first.once_seconds, second.once_seconds)
    assert (len(ASKED), len(ASKED)) == (first.seconds, second.seconds)
