"""How hoprank learns: the losses and their gradients, the folds, and what is refused."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from scipy.optimize import approx_fprime
from tests.support.graphs import ASKED, WORLD, built_index, plan_of

from hopbench.eval.training.boosting import Boosting, fit_trees
from hopbench.eval.training.examples import TrainingExample, balance, training_examples
from hopbench.eval.training.fitting import RankedLists, fit_logistic, fit_ranking, ranking_loss, score_loss
from hopbench.eval.training.held_out import HeldOut, cross_validated, figures_of, left_out, table_of
from hopbench.eval.training.trainer import NEVER, Trainer, spelled_out
from hopbench.eval.types import Benchmark, BenchmarkQuestion, Gold
from hopbench.retrieval.index import Index
from hopbench.retrieval.strategies.hoprank import HopRank
from hopbench.retrieval.strategies.hoprank.edges import EDGE_FEATURES, KINDS
from hopbench.retrieval.strategies.hoprank.paths import SCORE_FEATURES
from hopbench.retrieval.strategies.hoprank.tree_features import GROUPS, TREE_FEATURES
from hopbench.retrieval.strategies.hoprank.weights import Weights, to_json
from hopbench.retrieval.support.errors import InputError, UnknownNameError

GOLD = (("p01", "p02"), ("p04", "p08"), ("p06", "p10"))


def told(what: str) -> None:
    """Progress that nobody watches."""


def benchmark(name: str) -> Benchmark:
    asked = zip(ASKED, GOLD, strict=False)
    return Benchmark(name, tuple(WORLD), tuple(BenchmarkQuestion(q.id, q.text, gold=gold) for q, gold in asked), "tune")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def group(index: Index) -> list[TrainingExample]:
    return [example for name in ("one", "two") for example in training_examples(benchmark(name), index, HopRank())]


def random_lists(seed: int = 0) -> RankedLists:
    rng = np.random.default_rng(seed)
    gold = np.array([True, False, False, False, True, True, False, False, True, True])  # the last list is all gold
    return RankedLists(rng.normal(size=(10, 3)), gold, np.array([0, 4, 8]), np.array([1.0, 3.0, 1.0]))


def test_the_ranking_loss_by_hand() -> None:
    """Of weights 1, 3 and 1 only the first list has gold and others: z = (1, 0, 0) gives softplus(ln 2 − 1)/5."""
    features = np.array([[1.0], [0.0], [0.0], [1.0], [2.0], [5.0]])
    gold = np.array([True, False, False, False, False, True])
    lists = RankedLists(features, gold, np.array([0, 3, 5]), np.array([1.0, 3.0, 1.0]))

    value, _ = ranking_loss(features, lists, 0.0)(np.ones(1))

    assert math.log1p(math.exp(math.log(2) - 1)) / 5 == pytest.approx(value)


@pytest.mark.parametrize("seed", range(5))
def test_the_ranking_loss_has_this_gradient(seed: int) -> None:
    lists = random_lists(seed)
    loss = ranking_loss(lists.features, lists, 0.0)
    at = np.random.default_rng(seed + 100).normal(size=3)

    assert approx_fprime(at, lambda w: loss(w)[0]).tolist() == pytest.approx(loss(at)[1].tolist(), abs=1e-5)


def test_the_ranking_fit_puts_gold_first_and_ignores_the_scale_of_features() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(60, 2))
    gold = np.zeros(60, bool)
    gold[[int(begin + np.argmax(features[begin : begin + 6, 0])) for begin in range(0, 60, 6)]] = True
    lists = RankedLists(features, gold, np.arange(0, 60, 6), np.ones(10))

    weights = fit_ranking(lists)
    scaled = fit_ranking(RankedLists(features * [1.0, 100.0], gold, lists.start, lists.weight))

    assert weights[0] > 5 * abs(weights[1])
    assert (weights / [1.0, 100.0]).tolist() == pytest.approx(scaled.tolist(), abs=1e-3)
    assert [0.0] == fit_ranking(RankedLists(np.ones((60, 1)), gold, lists.start, lists.weight)).tolist()


def test_the_logistic_fit_gives_the_share_of_labels_where_features_say_nothing() -> None:
    labels = np.array([True, False, False, False])

    weights, bias = fit_logistic(np.ones((4, 2)), labels, np.ones(4))

    assert [0.0, 0.0] == pytest.approx(weights.tolist(), abs=1e-6)
    assert math.log(0.25 / 0.75) == pytest.approx(bias, abs=1e-4)


def test_data_sets_weigh_the_same(group: Sequence[TrainingExample]) -> None:
    worth = balance([*group, *group[:3]])

    assert [1.0, 1.0] == pytest.approx([worth[[0, 1, 2, 6, 7, 8]].sum(), worth[3:6].sum()])


def test_learning_twice_gives_the_same_weights_whatever_was_learned_between(group: Sequence[TrainingExample]) -> None:
    trainer = Trainer(boosting=Boosting(rounds=5, least_rows=3))
    first = trainer.fit(group)
    Trainer(boosting=Boosting(rounds=1, least_rows=3)).fit(group[:3])

    assert 5 == len(first.trees.trees)
    assert to_json(first) == to_json(trainer.fit(group))


def test_what_was_read_before_does_not_change_the_order_of_edges(index: Index) -> None:
    """A fold's passes read other anchors first; sums over edges in another order would end in another last bit."""
    (first, *_), (again, *_) = (list(training_examples(benchmark("one"), index, HopRank())) for _ in range(2))
    first.reached.leaving(np.arange(len(WORLD)))

    (edges, values), (others, same) = (example.reached.leaving(example.gold) for example in (first, again))
    assert len(edges) > 0
    assert (edges.anchor.tolist(), edges.target.tolist()) == (others.anchor.tolist(), others.target.tolist())
    assert values.tolist() == same.tolist()


def test_trees_lower_the_loss_of_questions_that_they_were_grown_on() -> None:
    """Two features of which only the product tells: no linear score can."""
    rng = np.random.default_rng(2)
    features = rng.normal(size=(400, 2)).round(3)
    product = features[:, 0] * features[:, 1]
    start = np.arange(0, 400, 8)
    gold = np.zeros(400, bool)
    gold[start + product.reshape(50, 8).argmax(axis=1)] = True
    lists = RankedLists(features, gold, start, np.ones(50), np.zeros(400))

    trees = fit_trees(lists, ("a", "b"), Boosting(rounds=60, least_rows=5, columns=1.0, share=1.0))

    loss = score_loss(lists)
    assert loss(trees.value(features))[0] < 0.5 * loss(np.zeros(400))[0]
    half = fit_trees(lists, ("a", "b"), Boosting(rounds=60, least_rows=5, columns=1.0, share=0.5))
    assert (trees.value(features) / 2).tolist() == half.value(features).tolist()


def test_a_lightgbm_that_cannot_be_loaded_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lightgbm.py").write_text("raise OSError('libgomp.so.1: cannot open shared object file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    rng = np.random.default_rng(3)
    lists = RankedLists(rng.normal(size=(400, 2)), np.arange(400) % 8 == 0, np.arange(0, 400, 8), np.ones(50))

    with pytest.raises(InputError, match=r"ended with: OSError: libgomp.*libgomp1.*--rounds 0"):
        fit_trees(lists, ("a", "b"), Boosting())


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise TimeoutError("not within a minute")


def test_the_growing_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    """A killed training would leave it at work for minutes; here it waits for what this process never writes."""
    pid, (reading, writing) = tmp_path / "pid", os.pipe()
    starter = (
        "import os, pathlib, subprocess, sys, time; "
        "command = [sys.executable, '-P', '-m', 'hopbench.eval.training.fitting', str(os.getpid())]; "
        f"p = subprocess.Popen(command, stdin={reading}); "
        f"pathlib.Path({str(pid)!r}).write_text(str(p.pid)); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", starter], pass_fds=[reading])
    try:
        wait_for(lambda: pid.exists() and pid.read_text() != "")
        growing = psutil.Process(int(pid.read_text()))
        wait_for(lambda: growing.num_threads() > 1)
        parent.kill()
        parent.wait()
        wait_for(lambda: not growing.is_running() or growing.status() == psutil.STATUS_ZOMBIE)
    finally:
        parent.kill()
        os.close(reading)
        os.close(writing)


def test_where_nothing_can_be_split_no_tree_grows(group: Sequence[TrainingExample]) -> None:
    assert () == Trainer().fit(group).trees.trees  # fewer rows than two leaves need
    assert () == Trainer(boosting=Boosting(rounds=0)).fit(group).trees.trees
    same = RankedLists(np.ones((400, 2)), np.arange(400) % 8 == 0, np.arange(0, 400, 8), np.ones(50), np.zeros(400))
    assert () == fit_trees(same, ("a", "b"), Boosting()).trees


@pytest.mark.parametrize("seed", range(3))
def test_the_curvature_is_that_of_the_slope(seed: int) -> None:
    """Of one question with one gold passage the loss is softplus(logsumexp − z): its second derivatives by hand."""
    gold = np.array([True, False, False])
    loss = score_loss(RankedLists(np.zeros((3, 1)), gold, np.array([0]), np.ones(1)))
    at = np.random.default_rng(seed).normal(size=3)

    for place in range(3):
        step = np.eye(3)[place] * 1e-5
        bend = (loss(at + step)[1][place] - loss(at - step)[1][place]) / 2e-5
        assert bend == pytest.approx(loss(at)[2][place], abs=1e-6)


def test_what_is_left_out_weighs_nothing(group: Sequence[TrainingExample]) -> None:
    weights = Trainer(without=frozenset({"coverage", "gain", "shared"})).fit(group)

    left = [SCORE_FEATURES.index(name) for name in ("coverage", "path_shared", "log_path_shared")]
    assert [0.0] * 3 == [weights.passes[-1][place] for place in left]
    assert NEVER == weights.edges[KINDS.index("shared")][-1]
    assert 0.0 == weights.edges[0][4]  # gain
    with pytest.raises(UnknownNameError, match=r"kind of edge of hoprank 'covrage'.*'coverage'"):
        Trainer(without=frozenset({"covrage"}))


def test_groups_name_what_only_trees_see_each_feature_once() -> None:
    names = [name for group in GROUPS.values() for name in group]

    assert len(set(names)) == len(names)
    others = {*SCORE_FEATURES, *(f"best_{name}" for name in EDGE_FEATURES)}
    assert set(TREE_FEATURES) - others == set(names)
    assert spelled_out({"pairs", "gain"}) == {*GROUPS["pairs"], "gain"}


def test_what_trees_may_not_see_splits_none_of_them(group: Sequence[TrainingExample]) -> None:
    settings = {"boosting": Boosting(rounds=5, least_rows=3), "without": frozenset({"standing"})}
    grown = Trainer(**settings).fit(group)

    seen = {TREE_FEATURES[feature] for tree in grown.trees.trees for feature in tree.feature}
    assert seen
    assert seen.isdisjoint(GROUPS["standing"])


def test_every_question_is_tested_once_a_setting(group: Sequence[TrainingExample]) -> None:
    held = cross_validated(Trainer(), group, 3, told)
    folds, sets = list(figures_of(held)), list(figures_of(left_out(Trainer(), group, told)))

    assert [("cross-validated", "one", 3), ("cross-validated", "two", 3)] == [
        (one.setting, one.dataset, one.questions) for one in folds if one.setting == "cross-validated"
    ]
    assert [("left out", "one"), ("left out", "two")] == [(one.setting, one.dataset) for one in sets]
    assert all(
        0.0 <= one.recall_interval[0] <= one.recall_at_5 <= one.recall_interval[1] <= 1.0 for one in folds + sets
    )
    assert [] == left_out(Trainer(), group[:3], told)


def test_gold_sets_are_learned_together_and_what_the_corpus_lacks_is_left_aside(index: Index) -> None:
    golds = Gold.any_of([["p01", "gone"], ["p02"]]), Gold(["gone"])
    asked = tuple(BenchmarkQuestion(f"q{n}", ASKED[n].text, gold=gold) for n, gold in enumerate(golds))

    (example,) = training_examples(Benchmark("sets", tuple(WORLD), asked, "tune"), index, HopRank())

    assert ["p01", "p02"] == [example.passages[row] for row in example.gold]
    held = HeldOut("cross-validated", "trees", example, ["p02", "p03"])
    assert 1.0 == held.recall(1)
    rows = table_of([held])
    assert [("p01", 0), ("gone", 0), ("p02", 1)] == list(zip(rows["passage"], rows["rank"], strict=True))


def test_questions_with_the_same_gold_are_also_kept_apart(index: Index) -> None:
    """The first two of four share p02: tested on the one, nothing is learned from the other."""
    gold = (GOLD[0], ("p02",), GOLD[1], GOLD[2])
    asked = tuple(BenchmarkQuestion(f"q{place}", ASKED[place % 3].text, gold=gold[place]) for place in range(len(gold)))
    examples = list(training_examples(Benchmark("same", tuple(WORLD), asked, "tune"), index, HopRank()))
    learned: list[set[str]] = []

    class Watched(Trainer):
        def fit(self, group: Sequence[TrainingExample]) -> Weights:
            learned.append({example.question.id for example in group})
            return super().fit(group)

    figures = list(figures_of(cross_validated(Watched(), examples, 4, told)))

    assert ["cross-validated", "cross-validated apart"] == [one.setting for one in figures]
    assert [3, 3, 3, 3] == [len(each) for each in learned[:4]]
    assert [{"q2", "q3"}, {"q2", "q3"}] == [each for each in learned[4:] if len(each) == 2]
    assert 2 == sum(len(each) == 3 for each in learned[4:])


def test_a_fold_that_shares_gold_with_all_others_is_not_tested_apart(index: Index) -> None:
    """Three questions of one passage: apart from each there is none to learn from. So are those of another set."""
    asked = tuple(BenchmarkQuestion(f"q{place}", ASKED[place].text, gold=("p02",)) for place in range(3))
    sets = [Benchmark(name, tuple(WORLD), asked, "tune") for name in ("one", "two")]
    examples = [example for each in sets for example in training_examples(each, index, HopRank())]

    assert {"cross-validated"} == {one.setting for one in cross_validated(Trainer(), examples[:3], 3, told)}
    assert {"cross-validated"} == {one.setting for one in cross_validated(Trainer(), examples, 6, told)}


def test_held_out_questions_are_kept_with_the_ranks_of_their_gold(group: Sequence[TrainingExample]) -> None:
    """The first question's gold is p01 and p02, which mention each other's names; p03 comes before, p02 nowhere."""
    held = HeldOut("left out", "trees", group[0], ["p03", "p01"])
    table = table_of([held])

    assert [("p01", 2), ("p02", 0)] == list(zip(table["passage"], table["rank"], strict=True))
    assert [WORLD[0].title, WORLD[1].title] == table["title"].tolist()
    assert [True, True] == table["linked"].tolist()
    (figures,) = figures_of([held])
    assert (0.5, 0.0, 1) == (figures.recall_at_5, figures.all_gold_at_10, figures.questions)


def test_no_gold_is_nothing_to_learn_from(index: Index) -> None:
    bare = Benchmark("bare", tuple(WORLD), (BenchmarkQuestion("q", "Who?"),))

    with pytest.raises(InputError, match="bare has no question with gold"):
        list(training_examples(bare, index, HopRank()))


@pytest.mark.benchmarks
def test_the_shipped_weights_find_the_evidence_of_a_real_set(benchmarks_dir: Path, tmp_path: Path) -> None:
    """In sample: guards the weights file and the features it was made for, it measures nothing."""
    from hopbench.eval.benchmarks import load_benchmark
    from hopbench.retrieval.embedding.cache import EmbeddingCache
    from hopbench.retrieval.embedding.factory import get_embedder
    from hopbench.retrieval.strategies.hoprank.weights import shipped

    whole = load_benchmark(str(benchmarks_dir / "musique-train100"))
    asked = whole.questions[:25]
    kept = {*(passage.id for passage in whole.passages[:500]), *(gold for one in asked for gold in one.gold)}
    real = replace(whole, questions=asked, passages=tuple(one for one in whole.passages if one.id in kept))
    embedder = get_embedder("wordllama", EmbeddingCache(tmp_path / "cache"))
    index = built_index(plan_of(real.passages, embedder=embedder), tmp_path)
    examples = list(training_examples(real, index, HopRank()))
    rankings = [Trainer().rankings(example, shipped())["trees"] for example in examples]

    found = zip(examples, rankings, strict=True)
    complete = [set(example.question.gold) <= set(ranking[:10]) for example, ranking in found]
    assert sum(complete) >= 0.8 * len(complete)
