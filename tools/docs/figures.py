"""Write the figures of docs/strategies.md and docs/hoprank.md: tables from finished runs.

    python -m tools.docs.figures docs/strategies.md RUN_DIR [RUN_DIR ...]

replaces the text between `<!-- figures -->` and `<!-- /figures -->`; on a page about one label, `<!-- figures
against LABEL -->` is replaced by all other labels against it, `<!-- figures of LABEL by question -->` by
the questions it misses. The tables need a run of `--strategies all,all:tuned`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from hopbench.eval.compare import PairResult, best_baseline, compare
from hopbench.eval.files import write_atomically
from hopbench.eval.metrics import PRIMARY
from hopbench.eval.metrics.scoring import GroupMeans
from hopbench.eval.runs.files import FinishedRun
from hopbench.eval.statistics import limit, mean_ci
from hopbench.retrieval.strategies.label import HOP_FREE, WITHOUT_SOURCE
from hopbench.retrieval.strategies.registry import preset, registry
from hopbench.retrieval.support.errors import InputError
from tools.docs.pages import as_markdown, read_page, run_command

if TYPE_CHECKING:
    import pandas as pd

_RECALL = "recall@5"
_BLOCK = re.compile(
    r"(<!-- figures(?: against (?P<against>\S+)| of (?P<of>\S+) by question)? -->\n).*?(<!-- /figures -->)", re.DOTALL
)
_HEAD = (
    "strategy",
    "documented: recall@5 / all_gold@10",
    "tuned (hoprank: learned)",
    "tuned against the best hop-free",
    "MDE",
    "tuned against documented",
    "ms/q",
)


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


def best_of(name: str) -> str:
    """The label of a strategy at its best: `NAME:tuned` where there is a second preset, else its plain label."""
    return f"{name}:tuned" if name not in WITHOUT_SOURCE and preset(name) else name


def figure_table(run: FinishedRun) -> str:
    """One run as Markdown: the hop-free baselines first, then the graph strategies, documented and tuned."""
    baseline, rows = (
        best_baseline({label: entry["metrics"] for label, entry in run.results["strategies"].items()}),
        rows_by_label(run),
    )
    graph = [name for name in registry().names() if name not in HOP_FREE and best_of(name) in rows]
    if baseline is None or not graph:
        raise InputError(f"{run.name}: the run lacks hop-free or tuned labels: run all,all:tuned")
    family = compare({label: rows[label] for label in (baseline, *map(best_of, graph))}, baseline)
    against = {pair.label: pair for pair in family.pairs}
    lines = [
        (f"`{name}`", _scores(run, name), _tuned(run, name), "", "", "", _milliseconds(run, name))
        for name in HOP_FREE
        if name in run.labels
    ]
    for name in graph:
        best = best_of(name)
        pair, change = against[best], _change(run, name, best)
        mde = f"{pair.minimum_detectable:.3f}" if pair.minimum_detectable is not None else "–"
        documented = _scores(run, name) if best != name else "–"
        cells = (documented, _scores(run, best), _words(pair), mde, change, _milliseconds(run, best))
        lines.append((f"`{name}`", *cells))
    return f"{heading(run)}; best hop-free: `{baseline}`.\n\n" + as_markdown(_HEAD, lines)


def _tuned(run: FinishedRun, name: str) -> str:
    return _scores(run, best) if (best := best_of(name)) != name and best in run.labels else ""


def _change(run: FinishedRun, name: str, best: str) -> str:
    if best == name or name not in run.labels:
        return "–"
    (pair,) = compare({name: run.rows(name), best: run.rows(best)}, name).pairs
    return _words(pair)


def _scores(run: FinishedRun, label: str) -> str:
    """recall@5 / all_gold@10, a dash for a label that was not run."""
    if label not in run.labels:
        return "–"
    metrics = run.results["strategies"][label]["metrics"]
    return f"{metrics['recall@5']:.3f} / {metrics[PRIMARY]:.3f}"


def _milliseconds(run: FinishedRun, label: str) -> str:
    """A question's share of the batch; a dash where it is not known."""
    seconds = run.results["strategies"][label]["seconds"]
    return "–" if seconds is None else f"{1000 * seconds / run.results['benchmark']['questions']:.1f}"


def _words(pair: PairResult) -> str:
    if pair.difference is None or pair.ci_family is None:
        return "no common question"
    return f"{pair.verdict} {pair.difference:+.3f} [{limit(pair.ci_family.low)}, {limit(pair.ci_family.high)}]"


def written(text: str, folders: Sequence[Path]) -> str:
    """The page with its blocks of figures written anew."""
    runs = [FinishedRun.read(folder) for folder in folders]
    return _BLOCK.sub(lambda block: f"{block[1]}{_tables(block, runs)}{block[4]}", text)


def _tables(block: re.Match[str], runs: list[FinishedRun]) -> str:
    if block["of"]:
        return table_of_kinds(runs, block["of"])
    return "\n".join(table_against(run, block["against"]) if block["against"] else figure_table(run) for run in runs)


def main() -> None:
    """Rewrite the page that is named."""
    parser = argparse.ArgumentParser(description="Write the figures of a page.")
    parser.add_argument("page", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    given = parser.parse_args()
    write_atomically(given.page, written(read_page(given.page), given.runs).encode())


if __name__ == "__main__":
    run_command(main)
