"""The tables of a growth study as Markdown, and their place in a document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hopbench.eval.files import refuse_unwritable, write_atomically
from hopbench.retrieval.support.errors import InputError
from tools.costs.growth import STEPS, Found, Step
from tools.costs.label_cost import Cost
from tools.costs.shared_cost import SharedCost

BEGIN, END = "<!-- costs -->", "<!-- end of costs -->"


def markdown(found: Sequence[Found]) -> str:
    """A table of steps (processor time, peak memory), one of labels (a question's milliseconds and edges), by size.

    Milliseconds of a batch are processor time, with those on the clock in brackets; where several processes shared it,
    those on the clock follow. Those of a question asked alone are the median on the clock, with the 95th percentile in
    brackets.
    """
    sizes = sorted({one.passages for one in found})
    steps = {(one.name, one.passages): one for one in found if isinstance(one, Step)}
    costs = {(one.label, one.passages): one for one in found if isinstance(one, Cost)}
    lines = [_row(["step", *(f"{size:,}: CPU | memory" for size in sizes)]), _rule(1 + 2 * len(sizes))]
    for name in STEPS:
        cells = [_step(steps.get((name, size))) for size in sizes]
        lines.append(_row([name, *cells]))
    beside = {(one.label, one.passages): one for one in found if isinstance(one, SharedCost)}
    shared = next((f" | in {one.processes} processes" for one in beside.values()), "")
    labels = list(dict.fromkeys(label for label, _ in costs))
    lines += ["", _row(["label", *(f"{size:,}: ms{shared} | alone | edges" for size in sizes), "once", "failed"])]
    lines.append(_rule(3 + (4 if shared else 3) * len(sizes)))
    for label in labels:
        own = [costs.get((label, size)) for size in sizes]
        cells = [_cost(costs.get((label, size)), beside.get((label, size)), bool(shared)) for size in sizes]
        known = [one for one in own if one]
        failed = sum(one.failures for one in known)
        failed += sum(one.failures for one in beside.values() if one.label == label)
        once = max(one.once_seconds for one in known)
        lines.append(_row([f"`{label}`", *cells, f"{once:.1f} s", str(failed)]))
    return "\n".join(lines)


def check_document(document: Path) -> tuple[str, str]:
    """What stands before and after the tables; raises InputError where there is no place, or it cannot be written."""
    try:
        whole = document.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--table {document}: {error}: name a Markdown file") from error
    before, begin, rest = whole.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"--table {document}: it lacks the lines {BEGIN} and {END}, between which the table goes")
    refuse_unwritable(document)
    return before, after


def write_table(document: Path, text: str) -> None:
    """Put the tables between the marks of a document; raises InputError where it lacks them."""
    before, after = check_document(document)
    write_atomically(document, f"{before}{BEGIN}\n\n{text}\n\n{END}{after}".encode())


def _step(step: Step | None) -> str:
    if step is None:
        return "– | –"
    return f"{'≥ ' if step.resumed else ''}{step.cpu:,.1f} s | {step.peak / 1e9:.2f} GB"


def _cost(cost: Cost | None, beside: SharedCost | None, shared: bool) -> str:
    in_several = [f"{beside.ms:.2f}" if beside else "–"] if shared else []
    if cost is None:
        return " | ".join(["–", *in_several, "–", "–"])
    alone = f"{cost.alone:.1f} ({cost.alone_p95:.1f})" if cost.alone else "–"
    clock = f" ({cost.clock_ms:.2f})" if cost.clock_ms else ""
    return " | ".join([f"{cost.ms:.2f}{clock}", *in_several, alone, f"{cost.edges:,.0f}"])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(columns: int) -> str:
    return f"|{'---|' * columns}"
