"""The result table that `run` and `nightly` print."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from eval.metrics import all_metrics
from flows.cli.table import _said, _table

LABELS = ("pagerank", "pagerank[restart=0.3]", "hoprank[weights=/tmp/w.json]")
JUDGED = (*all_metrics("answer"), *all_metrics("judge"))


def entry() -> dict[str, Any]:
    scores = dict.fromkeys(JUDGED, 1.0)
    said = {"metrics": {"all_gold@10": 0.5}, "answered": scores, "measured": scores, "by_type": {}}
    return {**said, "coverage": 1.0, "seconds": 0.0, "latency_ms_p50": 1.0}


def shown(rows: object) -> str:
    screen = Console(file=StringIO(), width=160)
    screen.print(rows)
    return screen.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_label_shows_what_was_set() -> None:
    entries = {label: entry() for label in LABELS}
    ranked, said = shown(_table(entries, {})), shown(_said(entries))
    assert set(LABELS) == {line.split()[0] for line in ranked.splitlines()[1:]}
    assert set(LABELS) <= {line.split()[0] for line in said.splitlines()[1:]}


def test_the_baseline_s_label_is_whole() -> None:
    pair = {"baseline": "bm25[k=3]", "effect": None, "verdict": "not distinguishable"}
    assert "all_gold@10 against bm25[k=3]" in shown(_table({"pagerank": entry()}, {"pagerank": pair}))


def test_no_metric_s_name_is_cut() -> None:
    assert "…" not in shown(_said({label: entry() for label in LABELS}))
