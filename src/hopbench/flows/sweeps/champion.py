"""A sweep's winner as champion of the benchmark that had no part in choosing it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hopbench.flows.orchestration.events import changed_champion

if TYPE_CHECKING:
    from hopbench.eval.sweep.results import Result
    from hopbench.eval.trials.ledger import Ledger


def crown(
    ledger: Ledger, winner: Result, run_ids: Mapping[str, str], metric: str, sweep: str, *, announced: bool
) -> None:
    """Record the winner in the ledger with its runs in MLflow (trial id → run id), which must be there by now.

    If `announced`, which needs a flow of Prefect, emit an event for each benchmark whose champion changed.
    """
    from hopbench.eval.trials.ledger import Champion

    for name, records in winner.by_dataset.items():
        trial, digest = records[0].trial_id, str(records[0].settings["dataset"])
        known = ledger.champion_of(digest)
        ledger.set_champion(Champion(digest, trial, winner.candidate.label, run_ids[trial], time.time()))
        if announced and (known is None or known.trial_id != trial):
            facts = {"sweep": sweep, "metric": metric, "value": winner.mean(metric)}
            changed_champion(name, digest, winner.candidate.label, known.label if known else None, facts)
