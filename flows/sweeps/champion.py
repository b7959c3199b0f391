"""Tells Prefect's automations of a sweep's new champion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hopbench.flows.orchestration.events import changed_champion

if TYPE_CHECKING:
    from hopbench.eval.sweep.results import Result
    from hopbench.eval.trials.ledger import Ledger


def announce(ledger: Ledger, winner: Result, metric: str, sweep: str) -> None:
    """Emit an event for each benchmark on which `winner` is not the champion yet; only inside a flow of Prefect."""
    for name, records in winner.by_dataset.items():
        digest = str(records[0].settings["dataset"])
        known = ledger.champion_of(digest)
        if known is None or known.trial_id != records[0].trial_id:
            facts = {"sweep": sweep, "metric": metric, "value": winner.mean(metric)}
            changed_champion(name, digest, winner.candidate.label, known.label if known else None, facts)
