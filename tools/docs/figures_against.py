"""One label against all others of a run, and what it misses by kind of question: tables for its own page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from hopbench.eval.compare import PairResult, compare, limit, mean_ci
from hopbench.eval.metrics import PRIMARY
from hopbench.eval.metrics.scoring import GroupMeans
from hopbench.eval.runs.finished import FinishedRun
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_RECALL = "recall@5"


def as_markdown(head: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table; what cells hold cannot end them."""
    rows = (head, ("---",) * len(head), *lines)
    return "\n".join(f"| {' | '.join(map(in_a_line, row))} |" for row in rows) + "\n"


def in_a_line(text: str) -> str:
    """Text of users as a part of a line, or of a table's cell: without breaks, bars and comments."""
    return " ".join(text.split()).replace("|", "\\|").replace("<!--", "&lt;!--")


def heading(run: FinishedRun) -> str:
    """The benchmark with its size, to stand above a table."""
    benchmark = run.results["benchmark"]
    return f"**{run.name}**, {benchmark['questions']} questions, {benchmark['passages']:,} passages"


def rows_by_label(run: FinishedRun) -> Mapping[str, pd.DataFrame]:
    """Each label's rows of questions.parquet, by question id."""
    return {label: run.rows(label) for label in run.labels}


def table_against(run: FinishedRun, label: str) -> str:
    """Every label's recall@5 and all_gold@10 with 95% intervals, best first, and how far it is from `label`.

    All labels are one family for Holm's correction, on all_gold@10.
    """
    rows = rows_by_label(run)
    if label not in rows or len(rows) < 2:
        raise InputError(f"{run.name}: the run lacks {label} or others to compare it with: run all,all:tuned")
    pairs = {pair.label: pair for pair in compare(rows, label).pairs}
    head = ("strategy", _RECALL, PRIMARY, f"{PRIMARY} against {label}", "verdict")
    metrics = {name: run.results["strategies"][name]["metrics"] for name in rows}
    best = sorted(metrics, key=lambda name: (name != label, -metrics[name][PRIMARY], name))
    lines = [
        (f"`{name}`", _mean(rows[name], _RECALL), _mean(rows[name], PRIMARY), *_difference(pairs.get(name)))
        for name in best
    ]
    return f"{heading(run)}, {_model(run)}{_weights(run, label)}\n\n{as_markdown(head, lines)}"


def table_of_kinds(runs: list[FinishedRun], label: str) -> str:
    """How many questions of each type, and of each number of gold passages, `label` does not answer within ten."""
    lines = []
    for run in runs:
        summary = run.results["strategies"].get(label)
        if summary is None:
            raise InputError(f"{run.name}: the run lacks {label}: name runs of it")
        lines += [(f"{run.name} ({_model(run)})", kind, *_missed(part)) for kind, part in summary["by_type"].items()]
        lines += [
            (f"{run.name} ({_model(run)})", f"{count} gold", *_missed(part))
            for count, part in summary["by_gold"].items()
        ]
    return as_markdown(("data set", "questions", "asked", f"missed by {PRIMARY}", PRIMARY, _RECALL), lines)


def _missed(part: GroupMeans) -> tuple[str, ...]:
    count = part["questions"]
    return str(count), str(count - round(count * part[PRIMARY])), f"{part[PRIMARY]:.3f}", f"{part[_RECALL]:.3f}"


def _mean(rows: pd.DataFrame, metric: str) -> str:
    """A mean over all questions, a failure counting 0, with its interval."""
    values = rows[metric].fillna(0.0).to_numpy(dtype=float)
    interval = mean_ci(values)
    return f"{values.mean():.3f}" + (f" [{interval.low:.3f}, {interval.high:.3f}]" if interval else "")


def _difference(pair: PairResult | None) -> tuple[str, str]:
    if pair is None:
        return "", ""
    if pair.difference is None or pair.ci_family is None:
        return "no common question", ""
    return f"{pair.difference:+.3f} [{limit(pair.ci_family.low)}, {limit(pair.ci_family.high)}]", pair.verdict


def _model(run: FinishedRun) -> str:
    return str(run.results["embedder"]).partition(":")[0]


def _weights(run: FinishedRun, label: str) -> str:
    """Says so where a label's weights are others than the shipped ones."""
    file = str(run.results["strategies"][label]["params"].get("weights", ""))
    return f"; {label} with the weights of {PurePath(file).name}" if file else ""
