"""Write a synthetic data set: a BEIR folder with a dataset card, and the provenance of each question."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.benchmarks.beir import json_lines, read_card, write_benchmark
from hopbench.eval.files import write_atomically
from hopbench.eval.synthesize.quality import MEANING
from hopbench.eval.types import Benchmark, BenchmarkQuestion, Gold, Role
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.synthesize._evidence import Evidence
    from hopbench.eval.synthesize.generate import Searched
    from hopbench.eval.synthesize.quality import Checked, Quality

FIELD = "synthetic"
STATEMENT = (
    "Questions made by a program from this corpus, not asked by people. Measured on corpora with real questions "
    "(docs/synthesize.md), such a set orders the labels much as real questions do and mostly chooses their winner; its "
    "figures themselves are not those of real questions. `hopbench synthesize --check DIR` measures this on labelled "
    "questions of your own."
)
UNFIT = "These questions would not measure anything, so no label is named the best"
_CARD = """\
---
pretty_name: {quoted_name}
task_categories:
- text-retrieval
tags:
- multi-hop
- synthetic
- beir
hopbench:
  role: {role}
{field}:
  by: {quoted_by}
  seed: {seed}
  corpus: {quoted_corpus}
  corpus_digest: {quoted_digest}
  check: {check}
---
# {name}

{statement}

{passages:,} passages of {corpus} and {questions:,} questions, made by HopBench from the passages alone ({by},
seed {seed}). Role: **{role}**.

| type | questions |
| --- | --- |
{types}

`provenance.jsonl` has each question's path, the sentences it rests on, and which of their words it quotes, replaces and
leaves out. No strategy sees it.

{checked}

{dropped}
"""
LEVELS = ("none", "some", "all")
PROVENANCE = "provenance.jsonl"
"""Path and sentences of each question. No loader reads it, so no strategy sees it."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The origin of a synthetic set, for its dataset card."""

    corpus: str
    corpus_digest: str
    by: str
    seed: int
    role: Role
    dropped: Mapping[str, int]
    check: Quality


def card(name: str, passages: int, types: Mapping[str, int], origin: Origin) -> str:
    """Make the text of README.md."""
    dropped = "; ".join(f"{reason}: {count:,}" for reason, count in sorted(origin.dropped.items()) if count)
    # A folder may be called "notes: 2024": in quotation marks, JSON's texts are YAML's.
    texts = {"name": name, "by": origin.by, "corpus": origin.corpus, "digest": origin.corpus_digest}
    return _CARD.format(
        **texts,
        **{f"quoted_{field}": json.dumps(text, ensure_ascii=False) for field, text in texts.items()},
        field=FIELD,
        role=origin.role,
        seed=origin.seed,
        statement=STATEMENT,
        check=json.dumps(origin.check.plain(), ensure_ascii=False),
        checked=_checked(origin.check),
        passages=passages,
        questions=sum(types.values()),
        types="\n".join(f"| {kind} | {count:,} |" for kind, count in sorted(types.items())),
        dropped=f"Left out while it was made: {dropped}." if dropped else "",
    )


def _checked(check: Quality) -> str:
    """The self-check as a table; of a set that was written by force what is wrong with it."""
    rows = [f"| {MEANING[part]} | {share.good:,} of {share.of:,} |" for part, share in check.shares.items()]
    faults = [f"\n**{UNFIT}**: {'; '.join(faults)}." for faults in [check.faults()] if faults]
    return "\n".join(["| self-check | questions |", "| --- | --- |", *rows, *faults])


def statements_of(folder: Path | None) -> list[str]:
    """Return what a report must say about the data set in `folder`: the statement of trust for a synthetic set."""
    if _synthetic(folder) is None:
        return []
    return [f"{UNFIT}: {why}"] if (why := unfit(folder)) else [STATEMENT]


def unfit(folder: Path | None) -> str:
    """Why the questions in `folder` measure nothing, by the check of a synthetic set; empty for every other set."""
    check = (_synthetic(folder) or {}).get("check")
    faults = check.get("faults") if isinstance(check, dict) else None
    return "; ".join(map(str, faults)) if isinstance(faults, list) else ""


def _synthetic(folder: Path | None) -> Mapping[str, Any] | None:
    """What the card of a synthetic set says of it; None for every other folder."""
    try:
        card = read_card(folder) if folder is not None else {}
    except InputError:  # a README of the user's own documents, which need not be a card
        return None
    if FIELD not in card:
        return None
    return card[FIELD] if isinstance(card[FIELD], dict) else {}


def benchmark_of(corpus: Benchmark, evidence: Evidence, made: Sequence[Searched], role: Role = "report") -> Benchmark:
    """Make the benchmark: the corpus with the questions, named s00000 and so on."""
    questions = []
    for number, each in enumerate(made):
        draft = each.wording.draft
        gold = Gold(evidence.chunks[chunk].passage_id for chunk in draft.gold)
        text = each.wording.text
        questions.append(BenchmarkQuestion(f"s{number:05}", text, draft.type, draft.answer or None, (), gold))
    return Benchmark(synthetic_name(corpus), corpus.passages, tuple(questions), role)


def synthetic_name(corpus: Benchmark) -> str:
    """Name a set made from a corpus, before it has a folder."""
    return f"{corpus.name}-synthetic"


def write_synthetic(
    folder: Path, benchmark: Benchmark, provenances: Sequence[Mapping[str, Any]], origin: Origin
) -> None:
    """Write corpus, questions, qrels, provenance (a row per question) and card."""
    write_benchmark(benchmark, folder)
    rows = ({"_id": question.id, **row} for question, row in zip(benchmark.questions, provenances, strict=True))
    write_atomically(folder / PROVENANCE, json_lines(rows))
    counts = Counter(question.type for question in benchmark.questions)
    text = card(folder.resolve().name, len(benchmark.passages), counts, origin)
    write_atomically(folder / "README.md", text.encode())


def provenance(each: Searched, evidence: Evidence, checked: Checked) -> dict[str, Any]:
    """Describe a question's path, the sentences it rests on, the words it quotes, replaces or leaves out; its check."""
    wording, draft = each.wording, each.wording.draft

    def passage(chunk: int) -> str:
        return evidence.chunks[chunk].passage_id

    return {
        "type": draft.type,
        "path": [
            {
                "from": passage(step.source.chunk),
                "to": passage(step.target),
                "over": step.over or evidence.name(step.entity),
                "stated": draft.sentences[0].text if step.over else evidence.sentence(step.source),
            }
            for step in draft.steps
        ],
        "sentences": [
            {"passage": passage(told.chunk), "role": told.role, "text": told.text} for told in draft.told(evidence)
        ],
        "answer_in": passage(draft.answered[0]) if draft.answer else None,
        "quoted": list(wording.quoted),
        "replaced": [list(pair) for pair in wording.replaced],
        "left_out": list(wording.left_out),
        "check": checked,
        "found_by": {"bm25": LEVELS[each.found[0]], "vector": LEVELS[each.found[1]]},
    }
