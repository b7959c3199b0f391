"""A sweep's best configurations as an artifact of its flow run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.flows.orchestration.artifacts import artifact_key, leave, table
from hopbench.flows.orchestration.pages import link_in
from hopbench.flows.settings.home import Home

if TYPE_CHECKING:
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.results import Result

SHOWN = 10


def leave_best(plan: SweepPlan, results: list[Result], reported: Result | None, report: Path, home: Home) -> None:
    """Leave the best configurations with a link to the report; only inside a flow."""
    objective = plan.content.objective
    metrics = list(dict.fromkeys((objective.metric, objective.also)))
    rows: list[dict[str, Any]] = [
        {
            "strategy": result.candidate.strategy.name,
            "varied": ", ".join(f"{name}={value}" for name, value in result.candidate.varied.items()) or "–",
            **{name: result.mean(name) for name in metrics},
            "dropped after": "–" if result.dropped_at is None else f"{result.dropped_at} questions",
        }
        for result in results[:SHOWN]
    ]
    lines = [f"# {plan.file.stem}", f"{len(results)} configurations on {', '.join(map(_name, plan.datasets))}"]
    if reported is not None:
        on = f"{objective.metric} {reported.mean(objective.metric):.3f}"
        lines.append(f"The best on {_name(str(plan.report_on))}, on which it was not chosen: {on}")
    content = "\n\n".join([*lines, link_in(home, report), table(rows)])
    leave(content + "\n", artifact_key("sweep", plan.file.stem), "The best configurations")


def _name(dataset: str) -> str:
    return Path(dataset).name
