"""How `--dry-run` prints an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hopbench.flows.cli.printing.output import add_row, console, table

if TYPE_CHECKING:
    from hopbench.flows.run.estimate import Estimate, Priced

NUMBERS = ("calls", "tokens in", "tokens out", "USD", "minutes")


ASSUMED = "An estimate from a few questions; replies cached by earlier runs cost nothing."


def print_estimate(estimate: Estimate, assumed: str = ASSUMED) -> None:
    """A line per label and purpose, the sum, and the figures' basis."""
    screen = console()
    rows = table("strategy", "purpose", *NUMBERS, right=NUMBERS)
    for line in estimate.lines:
        add_row(rows, line.line.label, line.line.purpose, *_cells([line], line.usd))
    add_row(rows, "all", "", *_cells(estimate.lines, estimate.usd))
    screen.print(rows)
    for role, speed in estimate.speeds.items():
        basis = f"as {speed.calls} earlier calls took" if speed.calls else "assumed, for want of earlier calls"
        name = estimate.endpoints[role].name
        screen.print(f"{role} {name}: {speed.seconds:.3g} s a written token, {basis}", markup=False, soft_wrap=True)
    for warning in estimate.warnings:
        screen.print(f"warning: {warning}", markup=False, style="yellow", soft_wrap=True)
    screen.print(f"{assumed} No model was called.", soft_wrap=True)


def _cells(lines: Sequence[Priced], usd: float | None) -> list[str]:
    sums = [sum(getattr(line.line, name) for line in lines) for name in ("calls", "tokens_in", "tokens_out")]
    price = "not known" if usd is None else f"{usd:.4f}"
    return [*(f"{value:,.0f}" for value in sums), price, f"{sum(one.seconds for one in lines) / 60:.1f}"]
