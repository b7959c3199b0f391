"""Keeps the figures of docs/strategies.md and docs/hoprank.md true: tables written from finished runs.

    python -m tools.docs.figures docs/strategies.md RUN_DIR [RUN_DIR ...]

replaces the text between `<!-- figures -->` and `<!-- /figures -->`; on a page about one label, `<!-- figures
against LABEL -->` is replaced by all other labels against it, `<!-- figures of LABEL by question -->` by
the questions it misses. The tables need a run of `--strategies all,all:tuned`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from hopbench.eval.compare import PairResult, best_baseline, compare, limit
from hopbench.eval.files import write_atomically
from hopbench.eval.metrics import PRIMARY
from hopbench.eval.runs.finished import FinishedRun
from hopbench.retrieval.strategies.label import HOP_FREE, WITHOUT_SOURCE
from hopbench.retrieval.strategies.registry import preset, registry
from hopbench.retrieval.support.errors import InputError
from tools.docs.figures_against import as_markdown, heading, rows_by_label, table_against, table_of_kinds
from tools.docs.places import read_page, run

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
        (f"`{name}`", _scores(run, name), "", "", "", "", _milliseconds(run, name))
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
    run(main)
