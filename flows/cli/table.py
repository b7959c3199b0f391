"""The result table that `run` and `nightly` print."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eval.metrics import all_metrics
from eval.results import comparisons, results
from flows.cli.output import add_row

if TYPE_CHECKING:
    from flows.evaluate import Finished

SHOWN = ("all_gold@10", "all_gold@5", "recall@5", "nDCG@10", "has_answer")
PIPED_WIDTH = 160
LABEL_WIDTH = 32


def print_finished(finished: Finished, out: Path) -> None:
    """The leaderboard with coverage, costs and verdicts, then where the files are."""
    console = Console(width=None if Console().is_terminal else PIPED_WIDTH)
    evaluation = finished.evaluation
    entries = results(evaluation)
    benchmark = entries["benchmark"]
    console.print(
        f"{benchmark['name']} · {benchmark['questions']} questions · {benchmark['passages']} passages · "
        f"graph {entries['graph']['fingerprint'][:12]}",
        markup=False,
        highlight=False,
    )
    console.print(_table(entries["strategies"], {pair["label"]: pair for pair in comparisons(evaluation)}))
    if evaluation.read.answers or evaluation.read.judged is not None:
        console.print(_said(entries["strategies"]))
    for warning in finished.warnings:
        console.print(f"warning: {warning}", markup=False, style="yellow")
    console.print(f"report  {out / 'report.html'}", markup=False, highlight=False, soft_wrap=True)


def _table(strategies: dict[str, dict[str, object]], verdicts: dict[str, dict[str, object]]) -> Table:
    baseline = next((str(pair["baseline"]) for pair in verdicts.values()), "")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("strategy", no_wrap=True)
    for name in (*SHOWN, "coverage", "ms/q", "p50 ms"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(Text(f"all_gold@10 against {baseline or 'a baseline'}"), no_wrap=True)
    order = sorted(strategies, key=lambda label: (-(_metric(strategies[label], "all_gold@10") or 0.0), label))
    for label in order:
        entry = strategies[label]
        means = [_number(_metric(entry, name, None)) for name in SHOWN]
        questions = _questions(entry)
        speed = 1000 * float(entry["seconds"]) / questions if questions else 0.0  # type: ignore[arg-type]
        costs = f"{float(entry['coverage']):.0%}", f"{speed:.2f}", _number(entry["latency_ms_p50"], 1)  # type: ignore[arg-type]
        add_row(table, fill(label, LABEL_WIDTH), *means, *costs, _verdict(verdicts.get(label), label == baseline))
    return table


def _said(strategies: dict[str, Any]) -> Table:
    """Answers and judgements: the mean of the scores there are, and their share where it is not all."""
    names = [*all_metrics("answer"), *all_metrics("judge")]
    shown = [name for name in names if any(name in entry["measured"] for entry in strategies.values())]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("answers, judged", no_wrap=True)
    for name in shown:
        table.add_column(name, justify="right", overflow="fold")
    for label, entry in strategies.items():
        cells = [_scored(entry["answered"].get(name), entry["measured"].get(name)) for name in shown]
        add_row(table, fill(label, LABEL_WIDTH), *cells)
    return table


def _scored(mean: float | None, share: float | None) -> str:
    return _number(mean) + (f" ({share:.0%})" if share is not None and share < 1 else "")


def _metric(entry: dict[str, object], name: str, absent: float | None = 0.0) -> float | None:
    metrics = entry["metrics"]
    assert isinstance(metrics, dict)
    return metrics.get(name, absent)


def _questions(entry: dict[str, object]) -> int:
    groups = entry["by_type"]
    assert isinstance(groups, dict)
    return sum(group["questions"] for group in groups.values())


def _number(value: object, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if isinstance(value, float) else "–"


def _verdict(pair: dict[str, object] | None, is_baseline: bool) -> str:
    if pair is None:
        return "the baseline" if is_baseline else "–"
    if pair["effect"] is None:
        return str(pair["verdict"])
    change = f"{pair['effect']:+.3f}"
    interval = f" [{pair['ci_low']:+.3f}, {pair['ci_high']:+.3f}]" if pair["ci_low"] is not None else ""
    return f"{pair['verdict']} {change}{interval}"
