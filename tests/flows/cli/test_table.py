"""The result table that `run` and `nightly` print, and that every table fits its terminal with whole headings."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from hopbench.eval.compare import Comparison, PairResult
from hopbench.eval.metrics import all_metrics
from hopbench.eval.statistics import Interval
from hopbench.flows.cli.compare import _print_pairs, _print_ragas
from hopbench.flows.cli.lists import _print_strategy, describe
from hopbench.flows.cli.output import Grid
from hopbench.flows.cli.run import _best_first, _notes, _said, _table
from hopbench.retrieval.strategies.registry import registry

LABELS = ("pagerank", "pagerank[restart=0.3]", "hoprank[weights=/tmp/w.json]")
JUDGED = (*all_metrics("ragas"), *all_metrics("answer"), *all_metrics("judge"))
PRIMARY = "all_gold@10"
MEASURED = (PRIMARY, "all_gold@5", "recall@5", "nDCG@10", "has_answer")


def entry(kind: str = "documented", in_sample: tuple[str, ...] = (), **metrics: float) -> dict[str, Any]:
    scores = dict.fromkeys(JUDGED, 1.0)
    said = {"metrics": metrics or dict.fromkeys(MEASURED, 0.5), "answered": scores, "measured": scores, "by_type": {}}
    known = {"sets": list(in_sample), "questions": 3} if in_sample else None
    return {**said, "kind": kind, "in_sample": known, "coverage": 1.0, "seconds": 0.0, "latency_ms_p50": 1.0}


def shown(rows: object, width: int = 160) -> str:
    screen = Console(file=StringIO(), width=width)
    screen.print(rows)
    return screen.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def pair(verdict: str = "not distinguishable", effect: float = 0.04, low: float = -0.003) -> dict[str, Any]:
    interval = {"family_low": low, "family_high": 0.083, "ci_low": 0.01, "ci_high": 0.07}
    return {"baseline": "bm25", "effect": effect, "verdict": verdict, **interval}


def test_a_label_shows_what_was_set() -> None:
    entries = {label: entry() for label in LABELS}
    ranked, said = shown(_table(entries, {}, PRIMARY)), shown(_said(entries), width=400)
    assert set(LABELS) == {line.split()[0] for line in ranked.splitlines()[1:]}
    assert set(LABELS) <= {line.split()[0] for line in said.splitlines()[1:]}


def test_the_baseline_s_label_is_whole() -> None:
    against = pair() | {"baseline": "bm25[k=3]", "effect": None}
    assert "against bm25[k=3]" in shown(_table({"pagerank": entry()}, {"pagerank": against}, PRIMARY))


@pytest.mark.parametrize("width", [80, 100, 160])
def test_no_heading_is_cut_and_no_line_is_too_long(width: int) -> None:
    longest = {"expansion_queries:tuned": entry("tuned", ("musique-train100",)), "bm25": entry()}
    text = shown(_table(longest, {"expansion_queries:tuned": pair()}, PRIMARY), width)
    head, *lines = text.splitlines()
    assert {"strategy", "kind", PRIMARY, "against", "bm25"} <= set(head.split())
    assert set(head.split()) <= {*MEASURED, *"strategy kind against bm25 95% interval coverage ms/q p50 ms".split()}
    assert ("95% interval" in head) == (width >= 100)
    assert 2 == len(lines)  # a line each
    assert all(len(line) <= width for line in text.splitlines())
    assert "not distinguishable +0.040" in text
    judged = shown(_said(longest), width)
    assert set(JUDGED) <= set(judged.split())  # below each other where they do not fit beside each other
    assert "…" not in text + judged
    assert "expansion_queries:tuned" in judged  # whole: what does not fit beside it stands below
    assert all(len(line) <= width for line in judged.splitlines())


def test_the_interval_beside_a_verdict_is_the_family_s() -> None:
    text = shown(_table({"pagerank": entry(), "bm25": entry()}, {"pagerank": pair()}, PRIMARY))
    assert "not distinguishable +0.040  [-0.003, +0.083]" in text
    entries = {"pagerank": entry(), "bm25": entry()}
    assert "better +0.040  [>0.000, +0.083]" in shown(_table(entries, {"pagerank": pair("better", low=1e-12)}, PRIMARY))


def test_every_label_carries_its_kind_and_what_was_tuned_here_says_so() -> None:
    entries = {
        "bm25": entry(),
        "pagerank": entry("tuned", ("musique-train100",)),
        "hoprank": entry("learned", ("a", "b")),
        "kg2rag[seed_k=3]": entry("set by hand"),
    }
    text = shown(_table(entries, {}, PRIMARY))
    kinds = {line.split()[0]: " ".join(line.split()[1:]).split(" 0.5")[0] for line in text.splitlines()[1:]}
    expected = {"bm25": "documented", "pagerank": "tuned *", "hoprank": "learned *", "kg2rag[seed_k=3]": "set by hand"}
    assert expected == kinds
    assert [
        "* pagerank: tuned on musique-train100, whose questions are asked here: no evidence for other questions, and "
        "not called the best",
        "* hoprank: learned from a, b, whose questions are asked here: no evidence for other questions, and not called "
        "the best",
    ] == _notes(entries, PRIMARY)


def test_without_gold_and_answers_nothing_is_ranked_and_the_remedy_is_named() -> None:
    shares = {"expansion_queries": 0.333, "bm25": 0.1, "activation": 0.9}
    entries = {label: entry(**{"reach_share@0": share}) for label, share in shares.items()}
    text = shown(_table(entries, {}, None))
    assert list(shares) == [line.split()[0] for line in text.splitlines()[1:]]  # in the order of the run
    assert "reach_share" not in text
    (note,) = _notes(entries, None)
    assert "none is ahead here" in note
    assert "qrels/test.tsv" in note


def test_answers_alone_are_shown_by_their_own_primary_metric() -> None:
    entries = {
        "vector": entry(**{"has_answer@10": 0.2, "has_answer@5": 0.1, "has_answer": 0.1}),
        "pagerank": entry(**{"has_answer@10": 0.6, "has_answer@5": 0.5, "has_answer": 0.4}),
    }
    head, first, _ = shown(_table(_best_first(entries, "has_answer@10"), {}, "has_answer@10")).splitlines()
    assert ["strategy", "kind", "has_answer@10", "has_answer@5", "has_answer"] == head.split()[:5]
    assert "pagerank" == first.split()[0]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_comparison_fits(width: int) -> None:
    interval = Interval(-0.1, 0.1)
    one = PairResult(
        *(
            "expansion_queries:tuned",
            "hybrid",
            100,
            0.05,
            interval,
            interval,
            0.2,
            0.4,
            0.1,
            "not distinguishable",
            True,
        ),
        *(("q1",), ("q2",), 98, {}),
    )
    screen = Console(file=StringIO(), width=width)
    _print_pairs(screen, Comparison(PRIMARY, "hybrid", 0.05, 99, (one,), {}))
    text = screen.file.getvalue()  # type: ignore[attr-defined]
    for word in ("label", "against", "effect", "95% interval", "verdict", "not distinguishable", "-0.100 … +0.100"):
        assert word in text
    assert ("p (Holm)" in text) == (width > 100)
    assert all(len(line) <= width for line in text.splitlines())


def test_the_lists_fit_at_80_columns() -> None:
    for name in registry().names():
        screen = Console(file=StringIO(), width=80)
        _print_strategy(screen, describe(registry().get(name)))
        table = [line for line in screen.file.getvalue().splitlines() if "  parameter" in line]  # type: ignore[attr-defined]
        assert [["parameter", "default", "tuned", "takes", "meaning"]] == [line.split() for line in table]


def test_every_part_of_a_table_says_whose_rows_it_has() -> None:
    grid = Grid("label", "against", "first metric", "second metric", right=["first metric", "second metric"], keys=2)
    grid.add_row("bm25", "pagerank", "-0.1 worse", "+0.1 better")
    grid.add_row("bm25", "hoprank", "-0.2 worse", "+0.2 better")
    assert [[0, 1, 2], [0, 1, 3]] == [list(part) for part in grid.parts(36)]  # 5 + 8 + 12 + 2 gaps of 2 = 29
    assert ["bm25   pagerank    -0.1 worse", "bm25   hoprank     +0.2 better"] == shown(grid, 36).splitlines()[1::5]


def test_a_grid_drops_folds_and_stacks_in_that_order() -> None:
    grid = Grid("name", "wide words", "cost", "more", right=["cost"], drop=["more"])
    grid.add_row("a", "one two three four five", "1", "dropped")
    assert [[0, 1, 2, 3]] == [list(part) for part in grid.parts(80)]
    assert [{0: 4, 1: 23, 2: 4}] == list(grid.parts(36))  # without `more` it fits: 4 + 23 + 4 + 2 gaps of 2 = 35
    assert [{0: 4, 1: 14, 2: 4}] == list(grid.parts(26))  # `wide words` folds, to 14 at the least
    assert [[0, 1], [0, 2]] == [list(part) for part in grid.parts(20)]
    assert ["name  wide words    ", "a     one two three ", "      four five     "] == shown(grid, 20).splitlines()[:3]


def test_what_nobody_has_gold_for_is_not_compared() -> None:
    ids = pd.Index(["q1", "q2"], name="question_id")
    one = pd.DataFrame(
        {"id_based_context_recall": [float("nan")] * 2, "failure": [None] * 2, "type": ["bridge"] * 2}, ids
    )
    screen = Console(file=StringIO(), width=120)
    _print_ragas(screen, {"bm25": one, "pagerank": one}, None, PRIMARY, 0)
    assert "" == screen.file.getvalue()  # type: ignore[attr-defined]
    scored = one.assign(id_based_context_recall=[0.5, 1.0])
    _print_ragas(screen, {"bm25": scored, "pagerank": scored}, None, PRIMARY, 0)
    assert "id_based_context_recall" in screen.file.getvalue()  # type: ignore[attr-defined]
