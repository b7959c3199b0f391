"""`--runner threads|processes|dask[=ADDRESS]`: a run's trials × question batches on Prefect's task runners.

Each unit is stored as it comes back, and results are merged in the order of the questions, so they are the same on
every runner. Latency is measured afterwards, one call at a time, in this process.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hopbench.eval.trials.trial import Unit, UnitOutcome, merged, shared_seconds
from hopbench.flows.orchestration.task_pool import TaskPool, drop_context, share_context
from hopbench.flows.run.worker import RunContext, RunJob, code_here
from hopbench.flows.settings.options import RunOptions

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Plan
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.eval.trials.unfinished import Unfinished
    from hopbench.flows.settings.home import Home
    from hopbench.retrieval.graph.construction.builder import Steps


@dataclass(frozen=True)
class ScaledOut:
    """Ranks on the runner that the options name: the parallel form of the loop in `RunSession.execute`."""

    options: RunOptions
    home: Home

    def __call__(self, plan: Plan, kept: Unfinished, steps: Steps) -> tuple[dict[str, TrialOutcome], float]:
        """Every label's trial, and the seconds of the work that their batches shared."""
        from hopbench.eval.runs.evaluate import measured

        whole = {label: done for label in plan.strategies if (done := kept.get(plan.key_of(label))) is not None}
        missing = [label for label in plan.strategies if label not in whole]
        parts = len(plan.parts)
        units = [Unit(part, label) for part in range(parts) for label in missing]
        found = self._all(plan, kept, units) if units else {}
        for label in missing:
            outcome = merged([found[Unit(part, label)] for part in range(parts)])
            whole[label] = steps(f"latency {label}", lambda: measured(plan, label, outcome))  # noqa: B023 - called at once
            kept.put(plan.key_of(label), whole[label])
        return {label: whole[label] for label in plan.strategies}, shared_seconds(found)

    def _all(self, plan: Plan, kept: Unfinished, units: Sequence[Unit]) -> dict[Unit, UnitOutcome]:
        names = {unit: f"{plan.key_of(unit.label)}-{unit.part}of{len(plan.parts)}" for unit in units}
        result = {unit: done for unit in units if (done := kept.get_unit(names[unit])) is not None}
        job = RunJob(
            secrets.token_hex(8),
            self.options.absolute(),
            self.home.root,
            plan.index.store.namespace,
            str(plan.record["build_key"]),
            code_here(plan.strategies.values()),
        )
        share_context(job.token, RunContext(plan.benchmark, plan.index, self.options))

        def keep(unit: Unit, done: UnitOutcome) -> None:
            result[unit] = done
            kept.put_unit(names[unit], done)

        try:
            pool = TaskPool(self.options.runner, self.options.workers, self.home)
            pool.run(job, [unit for unit in units if unit not in result], keep)
        finally:
            drop_context(job.token)
        return result
