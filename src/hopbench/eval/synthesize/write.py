"""Writes a synthetic data set: a BEIR folder with a card, and the provenance of each question beside it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks.beir import write_benchmark
from hopbench.eval.files import write_atomically
from hopbench.eval.gold import Gold
from hopbench.eval.synthesize.card import Origin, card
from hopbench.eval.synthesize.evidence import Evidence
from hopbench.eval.synthesize.hardness import Searched
from hopbench.eval.types import Benchmark, BenchmarkQuestion, Role

LEVELS = ("none", "some", "all")
PROVENANCE = "provenance.jsonl"
"""Path and sentences of each question. No loader reads it, so no strategy sees it."""


def benchmark_of(corpus: Benchmark, evidence: Evidence, made: Sequence[Searched], role: Role = "report") -> Benchmark:
    """The corpus with the questions that were made, named s00000 and so on."""
    asked = tuple(_question(number, each, evidence) for number, each in enumerate(made))
    return Benchmark(synthetic_name(corpus), corpus.passages, asked, role)


def synthetic_name(corpus: Benchmark) -> str:
    """The name of a set made from a corpus, before it has a folder."""
    return f"{corpus.name}-synthetic"


def _question(number: int, each: Searched, evidence: Evidence) -> BenchmarkQuestion:
    draft = each.wording.draft
    gold = Gold(evidence.chunks[chunk].passage_id for chunk in draft.gold)
    return BenchmarkQuestion(f"s{number:05}", each.wording.text, draft.type, draft.answer or None, (), gold)


def write_synthetic(
    folder: Path, benchmark: Benchmark, provenances: Sequence[Mapping[str, Any]], origin: Origin
) -> None:
    """Write corpus, questions, qrels, provenance (a row per question) and card.

    Raises InputError where the folder holds something.
    """
    write_benchmark(benchmark, folder)
    rows = ({"_id": question.id, **row} for question, row in zip(benchmark.questions, provenances, strict=True))
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_atomically(folder / PROVENANCE, lines.encode())
    counts = Counter(question.type for question in benchmark.questions)
    text = card(folder.resolve().name, len(benchmark.passages), counts, origin)
    write_atomically(folder / "README.md", text.encode())


def provenance(each: Searched, evidence: Evidence) -> dict[str, Any]:
    """The path of a question, the sentences it rests on, and what of their words it quotes, replaces or leaves out."""
    wording, draft = each.wording, each.wording.draft

    def passage(chunk: int) -> str:
        return evidence.chunks[chunk].passage_id

    return {
        "type": draft.type,
        "path": [
            {
                "from": passage(step.source.chunk),
                "to": passage(step.target),
                "over": evidence.name(step.entity),
                "stated": evidence.sentences(step.source.chunk)[step.source.sentence],
            }
            for step in draft.steps
        ],
        "sentences": [
            {
                "passage": passage(clue.chunk),
                "role": clue.role,
                "text": evidence.sentences(clue.chunk)[clue.sentence],
            }
            for clue in draft.clues
            if clue.words
        ],
        "answer_in": passage(draft.answered[0]) if draft.answer else None,
        "quoted": list(wording.quoted),
        "replaced": [list(pair) for pair in wording.replaced],
        "left_out": list(wording.left_out),
        "found_by": {"bm25": LEVELS[each.found.bm25], "vector": LEVELS[each.found.vector]},
    }
