"""Events that Prefect's automations can react to: what a night found, and a new champion.

The resource is the benchmark, `hopbench.benchmark.NAME`; the labels concerned are related resources,
`hopbench.label.LABEL` in the role `label`. Prefect adds the flow run that emits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

CHAMPION_CHANGED = "hopbench.champion.changed"
NIGHTLY = "hopbench.nightly."
"""And the outcome: baseline, good, regression or incomplete."""


def resource_name(text: str) -> str:
    """`text` as a part of a resource's id or of an artifact's key: lower case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def emit(event: str, benchmark: str, digest: str, payload: Mapping[str, Any], labels: Sequence[str] = ()) -> None:
    """Queue an event about a benchmark for Prefect's API; returns at once. `labels` are those that it is about."""
    from prefect.events import emit_event

    emit_event(
        event,
        resource={
            "prefect.resource.id": f"hopbench.benchmark.{resource_name(benchmark)}",
            "prefect.resource.name": benchmark,
            "hopbench.benchmark.digest": digest,
        },
        related=[
            {
                "prefect.resource.id": f"hopbench.label.{resource_name(label)}",
                "prefect.resource.role": "label",
                "prefect.resource.name": label,
            }
            for label in dict.fromkeys(labels)
        ],
        payload={"benchmark": benchmark, **payload},
    )


def changed_champion(benchmark: str, digest: str, label: str, before: str | None, facts: Mapping[str, Any]) -> None:
    """Emit that `label` takes the place of the champion `before` of a benchmark; `facts` say where it was measured."""
    emit(CHAMPION_CHANGED, benchmark, digest, {"label": label, "before": before, **facts}, [label])
