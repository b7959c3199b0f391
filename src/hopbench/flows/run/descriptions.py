"""Descriptions of runs for MLflow's pages, in Markdown: what ran, how it came out, and how to run it again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.metrics import rank_key
from hopbench.eval.runs.results import comparisons, results
from hopbench.flows.tracking.names import MAX_RUN_NAME, Tag, run_name

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.flows.settings.options import RunOptions

STAMP = "%Y-%m-%d %H:%M"


def parent_name(what: str, subject: str, begun: float) -> str:
    """`nightly hopworld 2026-11-22 02:00` (UTC): nights of one data set differ in their start."""
    stamp = datetime.fromtimestamp(begun, UTC).strftime(STAMP)
    return f"{run_name(f'{what} {subject}')[: MAX_RUN_NAME - len(stamp) - 1].rstrip()} {stamp}"


def source_tags(command: str) -> dict[str, str]:
    """MLflow's source of a run: the command without its arguments, which are in the description."""
    return {Tag.SOURCE: " ".join(command.split()[:2]), Tag.SOURCE_TYPE: "LOCAL"}


def run_note(evaluation: Evaluation, options: RunOptions, report: Path | None) -> str:
    """A run: its data set, the labels by the primary metric with their verdicts, the report, and the command."""
    plan, entries = evaluation.plan, results(evaluation)["strategies"]
    metric = plan.primary or ""
    verdicts: Mapping[str, Any] = {pair["label"]: pair for pair in comparisons(evaluation)}
    baseline = next((str(pair["baseline"]) for pair in verdicts.values()), "")
    rows = [
        f"| {_plain(label)} | {_number(entries[label]['metrics'].get(metric))} | {_verdict(verdicts.get(label))} |"
        for label in sorted(entries, key=lambda one: rank_key(metric, entries[one]["metrics"].get(metric)))
    ]
    head = [f"| label | {metric} | against {_plain(baseline)} |", "|---|---|---|"] if metric else []
    table = "\n".join([*head, *rows]) if metric else ""
    where = f"Report: `{report}`" if report is not None else ""
    parts = [
        f"{len(entries)} labels on {_plain(plan.benchmark.name)}: {len(plan.benchmark.questions)} questions, "
        f"{len(plan.benchmark.passages)} passages, digest `{plan.benchmark.digest[:12]}`",
        table,
        where,
        f"`{options.command}`",
    ]
    return "\n\n".join(part for part in parts if part)


def label_note(evaluation: Evaluation, label: str, entry: Mapping[str, Any], verdict: Mapping[str, Any] | None) -> str:
    """A label of a run: its kind, the primary metric, and the difference from the baseline."""
    metric = evaluation.plan.primary
    scored = f": {metric} {_number(entry['metrics'].get(metric))}" if metric else ""
    compared = f"; {_verdict(verdict)} against {_plain(str(verdict['baseline']))}" if verdict else ""
    return f"{_plain(label)} ({entry['kind']}) on {_plain(evaluation.plan.benchmark.name)}{scored}{compared}"


def _verdict(pair: Mapping[str, Any] | None) -> str:
    if pair is None:
        return "the baseline"
    return str(pair["verdict"]) + (f" {pair['effect']:+.3f}" if pair["effect"] is not None else "")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _plain(text: str) -> str:
    """`text` as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)
