"""Reacts to a nightly regression: a flow of your own, started by Prefect with the facts of the night.

    export PREFECT_API_URL=http://127.0.0.1:4200/api     # the server of `hopbench serve`, or any other
    python examples/prefect/after_regression.py          # keeps running; the automation is in Prefect's pages

`hopbench serve` runs the nights; whenever one of them finds a regression, Prefect runs this flow. Here it logs what
happened; put in its place what your team needs: a ticket, a message, a rollback.
"""

from __future__ import annotations

from typing import Any

from prefect import flow, get_run_logger
from prefect.events import DeploymentEventTrigger

REGRESSION = DeploymentEventTrigger(
    name="HopBench found a regression",
    expect={"hopbench.nightly.regression"},
    # Of one benchmark alone: {"prefect.resource.id": "hopbench.benchmark.hopworld"}.
    match={"prefect.resource.id": "hopbench.benchmark.*"},
    parameters={
        "night": {
            "__prefect_kind": "json",
            "value": {"__prefect_kind": "jinja", "template": "{{ event.payload | tojson }}"},
        }
    },
)


@flow(name="after-regression")
def after_regression(night: dict[str, Any]) -> str:
    """Log the night's verdict; `night` is the payload of the event (docs/nightly.md)."""
    get_run_logger().warning("%s\nreport: %s", night["text"], night["report_url"] or night["report"])
    return f"{night['benchmark']}: {', '.join(night['regressions'])}"


if __name__ == "__main__":
    after_regression.serve("after-regression", triggers=[REGRESSION])
