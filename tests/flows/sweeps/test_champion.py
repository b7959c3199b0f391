"""A sweep's new champion as an event."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.prefect_events import recorded_events

from hopbench.eval.trials.ledger import Ledger
from hopbench.flows.sweeps.flow import crown


def winner(trial: str) -> Any:
    """As much of a result as the event reads."""
    record = SimpleNamespace(trial_id=trial, settings={"dataset": "d" * 64})
    candidate = SimpleNamespace(label="pagerank[restart=0.3]")
    return SimpleNamespace(by_dataset={"other": [record]}, candidate=candidate, mean=lambda _: 0.75)


def test_only_a_changed_champion_is_an_event(tmp_path: Path) -> None:
    runs = {"first": "run 1", "second": "run 2"}
    with Ledger.open(tmp_path / "ledger.db") as ledger, recorded_events() as sent:
        for number, trial in enumerate(("first", "first", "second"), start=1):  # the second: run again
            crown(ledger, winner(trial), runs, "all_gold@10", f"sweep-{number}", announced=True)
            champion = ledger.champion_of("d" * 64)
            assert champion is not None
            assert (trial, runs[trial]) == (champion.trial_id, champion.run_id)
        found = [(one.resource.id, one.payload["sweep"], one.payload["before"], one.payload["value"]) for one in sent()]
    where = "hopbench.benchmark.other"
    assert found == [(where, "sweep-1", None, 0.75), (where, "sweep-3", "pagerank[restart=0.3]", 0.75)]


def test_a_champion_that_mlflow_does_not_have_is_neither_recorded_nor_announced(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger, recorded_events() as sent:
        with pytest.raises(KeyError):
            crown(ledger, winner("first"), {}, "all_gold@10", "sweep-1", announced=True)
        assert ledger.champion_of("d" * 64) is None
        assert [] == list(sent())
