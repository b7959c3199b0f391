"""`hopbench metrics`: what can be measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbench.flows.cli.flags.declare import OUTPUT, option
from hopbench.flows.cli.printing.output import add_row, console, print_json, table

if TYPE_CHECKING:
    from hopbench.eval.metrics import Metric


def metrics_command(
    as_json: Annotated[bool, option(OUTPUT, "--json", help="Print JSON for machines.")] = False,
) -> None:
    """List the metrics, and the families that take a cut-off of one's own (--metric NAME@k)."""
    from hopbench.eval.metrics import all_metrics, catalogue

    described = {name: _described(metric) for name, metric in all_metrics().items()}
    if as_json:
        print_json(described)
    else:
        rows = table("metric", "needs", "better", "meaning", "plug-in", fold=("meaning",))
        for name, entry in described.items():
            add_row(rows, name, ", ".join(entry["needs"]), entry["better"], entry["meaning"], entry["plugin"])
        screen = console()
        screen.print(rows)
        families = (f"{family.name}@1..{family.largest}" for family in catalogue().families.values())
        screen.print(f"With a cut-off of your own, by --metric: {', '.join(families)}", markup=False)
    for reason in catalogue().registry.broken.values():
        typer.echo(f"warning: {reason}", err=True)


def _described(metric: Metric) -> dict[str, Any]:
    from hopbench.eval.metrics import catalogue

    return {
        "meaning": metric.meaning,
        "needs": list(metric.needs),
        "better": "higher" if metric.higher_is_better else "lower",
        "source": metric.citation,
        "plugin": ", ".join(code.name for code in catalogue().code_of(metric.name)),
    }
