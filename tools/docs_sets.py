"""Write the documentation benchmarks as data sets: passages as our readers cut them, gold as alternative sets.

    python -m tools.docs_sets [BENCHMARKS] [--out build/docs-sets]

A folder of BENCHMARKS with `documents/` and `questions.jsonl` is one; `docs_gold.py` beside them maps each gold place
to the passages that hold it. A place is found by any of them, so every choice of one for each place is a set.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.benchmarks.beir import set_role, write_benchmark
from hopbench.eval.types import BenchmarkQuestion, Gold
from hopbench.retrieval.types import Passage

DEFAULT = os.environ.get("HOPBENCH_BENCHMARKS", "../shared/benchmarks")


def main() -> None:
    """Write every documentation set, and print how many questions and lost places each has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmarks", nargs="?", type=Path, default=Path(DEFAULT))
    parser.add_argument("--out", type=Path, default=Path("build/docs-sets"))
    arguments = parser.parse_args()
    for questions in sorted(arguments.benchmarks.glob("docs-*/questions.jsonl")):
        out = arguments.out / questions.parent.name
        print(f"{out}: {write_docs_set(questions, arguments.benchmarks / 'docs_gold.py', out)}")


def write_docs_set(questions: Path, gold_program: Path, out: Path) -> str:
    """Write one set as a BEIR folder for tuning; `places` of the program finds the passages of each gold place."""
    benchmark = load_benchmark(questions.parent / "documents", need_questions=False)
    asked = [json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines() if line.strip()]
    found, lost = runpy.run_path(str(gold_program))["places"](asked, list(map(_record, benchmark.passages)))
    made = tuple(_question(one, found[one["id"]]) for one in asked if all(found[one["id"]]))
    write_benchmark(replace(benchmark, questions=made), out)
    set_role(out, "tune")
    return f"{len(made)} questions, {len(benchmark.passages)} passages, {len(lost)} places in no passage"


def _record(passage: Passage) -> dict[str, Any]:
    facts = passage.source.facts() if passage.source else {}
    return {"_id": passage.id, "title": passage.title, "text": passage.text, "metadata": facts}


def _question(asked: dict[str, Any], places: Sequence[Sequence[str]]) -> BenchmarkQuestion:
    sets = {frozenset(choice): choice for choice in product(*places)}
    return BenchmarkQuestion(
        id=asked["id"],
        text=asked["question"],
        gold=Gold.any_of(list(sets.values())),
        type=asked["type"],
        answer=asked["answer"],
        aliases=tuple(asked["aliases"]),
    )


if __name__ == "__main__":
    main()
