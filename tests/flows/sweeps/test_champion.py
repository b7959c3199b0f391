"""A sweep's new champion as an event."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support.prefect_events import recorded_events

from hopbench.eval.trials.ledger import Champion, Ledger
from hopbench.flows.sweeps.champion import announce


def winner(trial: str) -> Any:
    """As much of a result as the event reads."""
    record = SimpleNamespace(trial_id=trial, settings={"dataset": "d" * 64})
    candidate = SimpleNamespace(label="pagerank[restart=0.3]")
    return SimpleNamespace(by_dataset={"other": [record]}, candidate=candidate, mean=lambda _: 0.75)


def test_only_a_changed_champion_is_an_event(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger, recorded_events() as sent:
        announce(ledger, winner("first"), "all_gold@10", "sweep-1")
        ledger.set_champion(Champion("d" * 64, "first", "pagerank[restart=0.3]", "run", 1.0))
        announce(ledger, winner("first"), "all_gold@10", "sweep-2")  # the same sweep, run again
        announce(ledger, winner("second"), "all_gold@10", "sweep-3")
        found = [(one.resource.id, one.payload["sweep"], one.payload["before"], one.payload["value"]) for one in sent()]
    where = "hopbench.benchmark.other"
    assert found == [(where, "sweep-1", None, 0.75), (where, "sweep-3", "pagerank[restart=0.3]", 0.75)]
