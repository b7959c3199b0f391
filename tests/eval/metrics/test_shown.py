"""One table says which metrics are shown where: positions without gaps, names that exist, new metrics at the end."""

from __future__ import annotations

from typing import get_args

import pytest

from hopbench.eval.metrics import SHOWN, Metric, View, all_metrics, shown_in, shown_metrics
from hopbench.eval.metrics.registry import Catalogue


@pytest.mark.parametrize("view", get_args(View))
def test_positions_of_a_view_count_from_one(view: View) -> None:
    positions = sorted(SHOWN[name][view] for name in shown_in(view))
    assert list(range(1, len(positions) + 1)) == positions
    assert positions


def test_every_row_is_a_metric_that_is_measured_by_default() -> None:
    assert [] == [name for name in SHOWN if name not in all_metrics()]


def test_a_view_shows_what_was_measured_the_primary_metric_first() -> None:
    measured = ["nDCG@10", "faithfulness", "all_gold@10", "recall@5", "has_answer@10", "title_f1"]
    assert ["all_gold@10", "recall@5", "nDCG@10", "has_answer@10"] == shown_metrics("flow", measured, "all_gold@10")
    assert ["has_answer@10", "recall@5", "nDCG@10"] == shown_metrics(
        "notebook", measured[:1] + measured[3:], "has_answer@10"
    )
    assert ["recall@5", "nDCG@10"] == shown_metrics("mlflow", measured)


def test_metrics_without_a_row_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Catalogue()
    made.defaults |= {name: Metric(name, "", "", ("gold",)) for name in ("mine", "success")}
    made.built_in |= {"success"}  # a new built-in metric needs no row to be shown
    monkeypatch.setattr("hopbench.eval.metrics.shown.catalogue", lambda: made)
    measured = ["mine", "recall@5", "recall@7", "reach@1", "context_recall", "coverage", "success", "answer_em"]
    assert ["recall@5", "mine", "recall@7", "success"] == shown_metrics("report", measured)
