"""A tiny benchmark and sweep files over it."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from tests.support.graphs import ASKED, WORLD
from tests.support.untracked import QuietTracker

__all__ = ["QuietTracker", "write_benchmark", "write_sweep"]
GOLD = {"q1": ("p01", "p02"), "q2": ("p05", "p08"), "q3": ("p06", "p10"), "q4": ("p08",), "q5": ("p11",)}


def write_benchmark(folder: Path, role: str = "tune", count: int = len(ASKED)) -> Path:
    """The world of tests.support.graphs with gold, in BEIR layout."""
    (folder / "qrels").mkdir(parents=True)
    passages = [{"_id": p.id, "title": p.title, "text": p.text} for p in WORLD]
    questions = [{"_id": q.id, "text": q.text, "metadata": {"answer": "Burbank"}} for q in ASKED[:count]]
    for stem, rows in (("corpus", passages), ("queries", questions)):
        (folder / f"{stem}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    lines = [f"{question}\t{passage}\t1" for question, gold in list(GOLD.items())[:count] for passage in gold]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(lines) + "\n")
    (folder / "README.md").write_text(f"---\nhopbench: {{role: {role}}}\n---\n")
    return folder


def write_sweep(folder: Path, **content: object) -> Path:
    """A sweep file: two values of two parameters of pagerank on the data set beside it, unless told otherwise.

    Without RAGAS's metrics, whose import takes longer than all the trials.
    """
    grid = {"restart": [0.15, 0.5], "seed_chunks": [1, 3]}
    usual = {"datasets": ["tiny"], "strategy": "pagerank", "grid": grid, "ragas": False}
    file = folder / "sweep.yaml"
    file.write_text(yaml.safe_dump({**usual, **content}), encoding="utf-8")
    return file
