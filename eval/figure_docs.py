"""Keeps the figures of docs/strategies.md true: tables written from finished runs.

    python -m eval.figure_docs docs/strategies.md RUN_DIR [RUN_DIR ...]

replaces what stands between `<!-- figures -->` and `<!-- /figures -->`. A run of `--strategies all,all:tuned` has what
the tables need.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.compare import HOP_FREE, PairResult, best_baseline, compare
from eval.files import write_atomically
from eval.metrics import PRIMARY
from retrieval.errors import InputError
from retrieval.strategies.registry import WITHOUT_SOURCE, preset, registry

if TYPE_CHECKING:
    import pandas as pd

_BLOCK = re.compile(r"(<!-- figures -->\n).*?(<!-- /figures -->)", re.DOTALL)
_HEAD = (
    "strategy",
    "documented: recall@5 / all_gold@10",
    "tuned",
    "tuned against the best hop-free",
    "MDE",
    "tuned against documented",
    "ms/q",
)


@dataclass(frozen=True)
class _Run:
    results: Mapping[str, Any]
    rows: Mapping[str, pd.DataFrame]

    @classmethod
    def read(cls, folder: Path) -> _Run:
        import pandas as pd

        file = folder / "results.json"
        if not file.is_file():
            raise InputError(f"{file} is not there: name folders that `hopbench run --out` wrote")
        table = pd.read_parquet(folder / "questions.parquet").set_index("question_id")
        rows = {str(label): part for label, part in table.groupby("strategy")}
        return cls(json.loads(file.read_text(encoding="utf-8")), rows)

    def scores(self, label: str) -> str:
        """recall@5 / all_gold@10, a dash for a label that was not run."""
        if label not in self.rows:
            return "–"
        metrics = self.results["strategies"][label]["metrics"]
        return f"{metrics['recall@5']:.3f} / {metrics[PRIMARY]:.3f}"

    def milliseconds(self, label: str) -> str:
        """A question's share of the batch."""
        return f"{1000 * self.results['strategies'][label]['seconds'] / self.results['benchmark']['questions']:.1f}"


def best_of(name: str) -> str:
    """The label of a strategy at its best: `NAME:tuned` where there is a second preset, else its plain label."""
    return f"{name}:tuned" if name not in WITHOUT_SOURCE and preset(name) else name


def figure_table(run: _Run) -> str:
    """One run as Markdown: the hop-free baselines first, then the graph strategies, documented and tuned."""
    benchmark, summaries = run.results["benchmark"], run.results["strategies"]
    baseline = best_baseline(summaries)
    graph = [name for name in registry().names() if name not in HOP_FREE and best_of(name) in run.rows]
    if baseline is None or not graph:
        raise InputError(f"{benchmark['name']}: the run lacks hop-free or tuned labels: run all,all:tuned")
    family = compare({label: run.rows[label] for label in (baseline, *map(best_of, graph))}, baseline)
    against = {pair.label: pair for pair in family.pairs}
    lines = [_HEAD, ("---",) * len(_HEAD)]
    lines += [
        (f"`{name}`", run.scores(name), "", "", "", "", run.milliseconds(name)) for name in HOP_FREE if name in run.rows
    ]
    for name in graph:
        best = best_of(name)
        pair, change = against[best], _change(run, name, best)
        mde = f"{pair.minimum_detectable:.3f}" if pair.minimum_detectable is not None else "–"
        documented = run.scores(name) if best != name else "–"
        cells = (documented, run.scores(best), _words(pair), mde, change, run.milliseconds(best))
        lines.append((f"`{name}`", *cells))
    title = f"**{benchmark['name']}**, {benchmark['questions']} questions, {benchmark['passages']:,} passages"
    return f"{title}; best hop-free: `{baseline}`.\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _change(run: _Run, name: str, best: str) -> str:
    if best == name or name not in run.rows:
        return "–"
    (pair,) = compare({name: run.rows[name], best: run.rows[best]}, name).pairs
    return _words(pair)


def _words(pair: PairResult) -> str:
    if pair.difference is None or pair.ci is None:
        return "no common question"
    return f"{pair.verdict} {pair.difference:+.3f} [{pair.ci.low:+.3f}, {pair.ci.high:+.3f}]"


def written(text: str, folders: Sequence[Path]) -> str:
    """The page with its block of figures written anew."""
    tables = "\n".join(figure_table(_Run.read(folder)) for folder in folders)
    return _BLOCK.sub(lambda block: f"{block[1]}{tables}{block[2]}", text)


def main() -> None:
    """Rewrite the page that is named."""
    parser = argparse.ArgumentParser(description="Write the figures of docs/strategies.md.")
    parser.add_argument("page", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    given = parser.parse_args()
    if not given.page.is_file():
        raise InputError(f"there is no page {given.page}: name docs/strategies.md")
    write_atomically(given.page, written(given.page.read_text(encoding="utf-8"), given.runs).encode())


if __name__ == "__main__":
    main()
