"""What each search tries next, how halving drops, and how much of a winner's lead is luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.support.graphs import ASKED, WORLD, built_index, plan_of
from tests.support.sweeps import write_benchmark, write_sweep

from hopbench.eval.sweep.context import sampled
from hopbench.eval.sweep.file import Objective
from hopbench.eval.sweep.plan import SweepPlan, read_sweep
from hopbench.eval.sweep.report import front, responses
from hopbench.eval.sweep.results import Cell, Result, eligible, ranked, selection
from hopbench.eval.sweep.search import search_of
from hopbench.eval.sweep.space import Build, Candidate
from hopbench.eval.trials.ledger import TrialRecord
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.types import Counters

SPACE = {"grid": {"seed_chunks": [1, 3]}, "space": {"restart": {"low": 0.05, "high": 0.5}}}


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    write_benchmark(tmp_path / "tiny")
    return tmp_path


def plan(folder: Path, **content: object) -> SweepPlan:
    return read_sweep(write_sweep(folder, **content))


def result(candidate: Candidate, scores: Sequence[float], costs: Mapping[str, float] | None = None) -> Result:
    """A result with these per-question values of the objective."""
    rows = pd.DataFrame({"all_gold@10": scores, "failure": [None] * len(scores)})
    mean = float(np.mean(scores))
    record = TrialRecord("id", {}, {"all_gold@10": mean, "recall@5": mean}, rows, 0, 1.0, 0.0, 1.0, costs or {})
    return Result(candidate, {Cell("tiny"): record})


def varied(candidates: Sequence[Candidate]) -> list[Mapping[str, object]]:
    return [candidate.varied for candidate in candidates]


def test_one_at_a_time_is_the_start_and_each_other_value_beside_it(tiny: Path) -> None:
    found = plan(tiny, search="ofat", base={"steps": 4}, grid={"restart": [0.15, 0.5], "seed_chunks": [1, 3]})
    start = found.spaces[0].start
    assert [{}, {"restart": 0.5}, {"seed_chunks": 1}] == [
        one for one in varied(found.candidates) if one not in ({"restart": 0.15}, {"seed_chunks": 3})
    ]
    assert start == found.candidates[0].strategy
    assert all(
        sum(a != b for a, b in zip(_values(start), _values(c.strategy), strict=True)) <= 1 for c in found.candidates
    )


def _values(strategy: object) -> list[object]:
    return list(vars(strategy).values())


def test_random_draws_are_seeded_distinct_and_inside_their_ranges(tiny: Path) -> None:
    drawn = plan(tiny, search="random", trials=20, **SPACE)
    assert 20 == len(drawn.candidates) == len({candidate.key for candidate in drawn.candidates})
    assert varied(drawn.candidates) == varied(plan(tiny, search="random", trials=20, **SPACE).candidates)
    assert varied(drawn.candidates) != varied(plan(tiny, search="random", trials=20, seed=1, **SPACE).candidates)
    assert all(0.05 <= float(str(one["restart"])) <= 0.5 for one in varied(drawn.candidates))
    few = plan(tiny, search="random", trials=20, grid={"seed_chunks": [1, 3]})
    assert {1, 3} == {candidate.varied["seed_chunks"] for candidate in few.candidates}  # there are only two


@pytest.mark.parametrize("search", ["random", "bayesian"])
def test_a_real_parameter_takes_values_between_whole_bounds(tiny: Path, search: str) -> None:
    space = {"question_weight": {"low": 0, "high": 1}, "steps": {"low": 2, "high": 9}}
    found = plan(tiny, grid={}, search=search, trials=4, space=space)
    tried = found.candidates or search_of(found, 5).ask().candidates
    weights, steps = ([one.varied[name] for one in tried] for name in space)
    assert all(0 < weight < 1 for weight in weights)  # 0 or 1 exactly would be a rare draw
    assert {int} == {type(one) for one in steps}


STEPS = {
    "restart": {"low": 0.1, "high": 0.9, "step": 0.3},
    "question_weight": {"low": 0, "high": 1, "step": 0.4},
    "steps": {"low": 2, "high": 10, "step": 3},
    "seed_chunks": {"low": 1, "high": 5, "step": 4},
}


@pytest.mark.parametrize("search", ["grid", "random", "bayesian"])
def test_a_range_ends_where_its_steps_end_and_says_so(tiny: Path, search: str) -> None:
    """Optuna 5.0.0 warns of each such range by itself, which fails this test."""
    trials = {} if search == "grid" else {"trials": 40}
    found = plan(tiny, grid={}, search=search, space=STEPS, **trials)
    tried = list(found.candidates)
    learning = search_of(found, 5)
    while search == "bayesian" and (turn := learning.ask()).candidates:
        tried += turn.candidates
        learning.tell([result(one, [float(str(one.varied["restart"]))]) for one in turn.candidates])
    values = {name: {one.varied[name] for one in tried} for name in STEPS}

    assert {0.1, 0.4, 0.7} == values["restart"]
    assert {0, 0.4, 0.8} == values["question_weight"]
    assert {2, 5, 8} == values["steps"]
    assert {1, 5} == values["seed_chunks"]  # the one that its step divides
    assert [
        "pagerank: space.question_weight: steps of 0.4 do not reach 1: values from 0 to 0.8 are tried",
        "pagerank: space.restart: steps of 0.3 do not reach 0.9: values from 0.1 to 0.7 are tried",
        "pagerank: space.steps: steps of 3 do not reach 10: values from 2 to 8 are tried",
    ] == found.spaces[0].short_ranges()


def test_steps_are_searched_as_optuna_searches_them(tiny: Path) -> None:
    optuna = pytest.importorskip("optuna")
    found = plan(tiny, grid={}, search="bayesian", trials=20, space={"restart": {"low": 0.1, "high": 0.9, "step": 0.1}})
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    search = search_of(found, 5)
    while (turn := search.ask()).candidates:
        asked = [study.ask() for _ in turn.candidates]
        values = [round(trial.suggest_float("restart", 0.1, 0.9, step=0.1), 9) for trial in asked]
        assert values == [one.varied["restart"] for one in turn.candidates]
        for trial, value in zip(asked, values, strict=True):
            study.tell(trial, value)
        search.tell([result(one, [value]) for one, value in zip(turn.candidates, values, strict=True)])


def test_a_result_without_a_value_is_nothing_to_learn_from(tiny: Path) -> None:
    search = search_of(plan(tiny, search="bayesian", trials=8, **SPACE), 5)
    for _ in range(2):
        search.tell([result(one, [float("nan")]) for one in search.ask().candidates])


def test_a_conditional_parameter_varies_only_where_it_means_something(tiny: Path) -> None:
    found = plan(
        tiny,
        strategy="graph_expansion",
        grid={"min_similarity": [0.5, 0.6], "use_similar": [True, False]},
        when={"min_similarity": {"use_similar": True}},
    )
    assert [
        {"use_similar": True, "min_similarity": 0.5},
        {"use_similar": True, "min_similarity": 0.6},
        {"use_similar": False},
    ] == varied(found.candidates)


def test_each_combination_of_build_settings_is_a_graph_of_its_own(tiny: Path) -> None:
    found = plan(tiny, build={"similar_top_k": [2, 5], "embedder": ["wordllama", "minilm"]})
    assert 4 * 4 == len(found.candidates)
    assert {Build(embedder, "rules", k) for embedder in ("wordllama", "minilm") for k in (2, 5)} == set(found.builds)


def test_a_bayesian_search_goes_the_same_way_again_and_towards_what_is_better(tiny: Path) -> None:
    todo = plan(tiny, search="bayesian", trials=24, **SPACE)
    ways = []
    for _ in range(2):
        search, tried = search_of(todo, 5), list[Candidate]()
        while (turn := search.ask()).candidates:
            tried += turn.candidates
            search.tell([result(one, [1 - abs(float(str(one.varied["restart"])) - 0.3)]) for one in turn.candidates])
        ways.append(varied(tried))
    assert ways[0] == ways[1]
    assert 24 == len(ways[0])
    away = [abs(float(str(one["restart"])) - 0.3) for one in ways[0]]
    assert np.mean(away[12:]) < np.mean(away[:12])


def test_halving_keeps_the_best_third_for_three_times_the_questions(tiny: Path) -> None:
    todo = plan(tiny, grid={"restart": [0.1, 0.2, 0.3], "seed_chunks": [1, 2, 3]}, halving={"questions": 2})
    search = search_of(todo, 5)
    first = search.ask()
    assert (9, 2) == (len(first.candidates), first.questions)
    search.tell([result(one, [place / 10]) for place, one in enumerate(first.candidates)])
    last = search.ask()
    assert (list(first.candidates[6:]), None) == (last.candidates, last.questions)  # 2·3 ≥ 5: all of them
    search.tell([result(one, [0.5]) for one in last.candidates])
    assert [] == search.ask().candidates


def test_a_larger_round_contains_the_questions_of_the_smaller(tiny: Path) -> None:
    from hopbench.eval.benchmarks import load_benchmark

    benchmark = load_benchmark(tiny / "tiny")
    small, large = ({q.id for q in sampled(benchmark, count, 3, nested=True).questions} for count in (2, 4))
    assert small < large


def test_the_best_of_many_equal_ones_is_not_better_than_they_are(tiny: Path) -> None:
    # 20 configurations that are right on 40 of 100 questions by chance: the truth is .4, the best looks better.
    rng = np.random.default_rng(5)
    todo = plan(tiny, search="random", trials=20, **SPACE)
    results = [result(one, (rng.random(100) < 0.4).astype(float).tolist()) for one in todo.candidates]
    results.sort(key=lambda one: -one.mean("all_gold@10"))
    found = selection(results, "all_gold@10", seed=0)
    assert found is not None
    assert found.shown > 0.46
    assert abs(found.honest - 0.4) < 0.05 < found.shown - 0.4
    assert found.optimism > 0.05
    assert found.low < found.honest < found.high
    assert found == selection(results, "all_gold@10", seed=0)
    assert selection(results[:1], "all_gold@10", seed=0) is None


@pytest.mark.parametrize("seed", range(5))
def test_the_bias_is_the_difference_of_the_two_figures_beside_it(tiny: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    todo = plan(tiny, search="random", trials=6, **SPACE)
    results = [result(one, (rng.random(37) < 0.4).astype(float).tolist()) for one in todo.candidates]
    results.sort(key=lambda one: -one.mean("all_gold@10"))
    found = selection(results, "all_gold@10", seed=seed)
    assert found is not None
    assert f"{found.optimism:+.3f}" == f"{float(f'{found.shown:.3f}') - float(f'{found.honest:.3f}'):+.3f}"


def test_configurations_that_tie_share_their_wins(tiny: Path) -> None:
    # Four of five are equal and better than the fifth: each wins a quarter of the resamples.
    todo = plan(tiny, grid={"restart": [0.1, 0.2, 0.3, 0.4, 0.5]})
    results = [result(one, [1.0, 0.0, 1.0, 1.0]) for one in todo.candidates[:4]]
    found = selection([*results, result(todo.candidates[4], [0.0] * 4)], "all_gold@10", seed=0)
    assert found is not None
    assert found.chosen == pytest.approx(1 / 4, abs=0.01)  # a fifth where only the lost question is drawn, 1 in 256


def test_where_less_is_better_the_lowest_wins(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hopbench.eval.metrics import catalogue, registry

    lower = replace(registry.get_metric("all_gold@10"), higher_is_better=False, worst=1.0)
    monkeypatch.setitem(catalogue().defaults, "all_gold@10", lower)
    todo = plan(tiny, grid={"restart": [0.1, 0.2]})
    scores, cost = ([1.0] * 9, [0.0] * 9), {"context_tokens": 1.0}
    high, low = (result(one, values, cost) for one, values in zip(todo.candidates, scores, strict=True))
    assert [low, high] == ranked([high, low], Objective(), {})
    found = selection([low, high], "all_gold@10", seed=0)
    assert found is not None
    assert (0.0, 0.0, 1.0) == (found.shown, found.honest, found.chosen)
    assert [low] == [place.result for place in front([high, low], "all_gold@10", timed=False) if place.front]


def test_what_breaks_a_constraint_has_no_part_in_the_selection_bias(tiny: Path) -> None:
    first, second, third = plan(tiny, grid={"restart": [0.1, 0.2, 0.3]}).candidates
    dear, cheap = (
        [result(one, score, {"tokens": tokens}) for one, score in pair]
        for pair, tokens in (([(first, [1.0, 1.0])], 9), ([(second, [1.0, 0.0]), (third, [0.0, 0.0])], 1))
    )
    results = ranked([*dear, *cheap], Objective(), {"tokens": 5})
    assert cheap == eligible(results, {"tokens": 5})
    assert results == eligible(results, {"tokens": 0})  # none keeps it: the best by the objective is the winner
    assert cheap == eligible([*cheap, replace(dear[0], dropped_at=1)], {})


def test_a_parameter_that_decides_is_important_and_its_response_shows_how(tiny: Path) -> None:
    todo = plan(tiny, grid={"restart": [0.1, 0.2, 0.3, 0.4], "seed_chunks": [1, 2, 3]})
    rng = np.random.default_rng(0)
    results = [
        result(one, (rng.random(400) < float(str(one.varied["restart"])) * 2).astype(float).tolist())
        for one in todo.candidates
    ]
    restart, chunks = responses(results, "all_gold@10", 0)
    assert ("restart", "seed_chunks") == (restart.parameter, chunks.parameter)
    assert (restart.importance or 0) > 0.9
    assert (chunks.importance or 0) < 0.1
    assert [0.1, 0.2, 0.3, 0.4] == [point.value for point in restart.points]
    for point in restart.points:  # the truth, twice the value, lies in a band about as wide as √(p(1−p)/(3·400))
        assert point.low - 0.02 < 2 * float(point.value) < point.high + 0.02
        assert point.low < point.mean < point.high


def world_index(folder: Path) -> Index:
    return built_index(plan_of(WORLD), folder)


LABELS = ("graph_expansion[min_similarity=0.5]", "graph_expansion[max_depth=2]", "neighborhood[min_strength=0.4]")


@pytest.mark.parametrize("label", LABELS)
def test_a_read_down_to_the_floor_changes_neither_rankings_nor_costs(label: str, tmp_path: Path) -> None:
    strategy = make(label)
    alone = _ranked(world_index(tmp_path / "alone"), label)
    index = world_index(tmp_path / "shared")
    index.floors.update({(strategy.name, name): 0.0 for name in strategy.thresholds})
    assert alone == _ranked(index, label)
    assert alone == _ranked(index, label)  # kept by now


def _ranked(index: Index, label: str) -> tuple[list[object], Counters]:
    counters = Counters()
    rankings = make(label).rank(Batch(index, ASKED), counters)
    counters.stage_seconds.clear()
    return [(ranking.hits, ranking.graph_context) for ranking in rankings], counters
