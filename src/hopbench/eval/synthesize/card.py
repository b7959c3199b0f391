"""The dataset card of a synthetic set, and the statement of trust that its reports carry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hopbench.eval.benchmarks.card import read_card
from hopbench.eval.types import Role
from hopbench.retrieval.support.errors import InputError

FIELD = "synthetic"
STATEMENT = (
    "Questions made by a program from this corpus, not asked by people. Measured on corpora with real questions "
    "(docs/synthesize.md), such a set orders the labels much as real questions do and mostly chooses their winner; its "
    "figures themselves are not those of real questions. `hopbench synthesize --check DIR` measures this on labelled "
    "questions of your own."
)
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

{dropped}
"""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a synthetic set was made from and how, for its card."""

    corpus: str
    corpus_digest: str
    by: str
    seed: int
    role: Role
    dropped: Mapping[str, int]


def card(name: str, passages: int, types: Mapping[str, int], origin: Origin) -> str:
    """The text of README.md."""
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
        passages=passages,
        questions=sum(types.values()),
        types="\n".join(f"| {kind} | {count:,} |" for kind, count in sorted(types.items())),
        dropped=f"Left out while it was made: {dropped}." if dropped else "",
    )


def statements_of(folder: Path | None) -> list[str]:
    """What a report must say of the data set in `folder`: the statement of trust where its card calls it synthetic."""
    try:
        return [STATEMENT] if folder is not None and FIELD in read_card(folder) else []
    except InputError:  # a README of the user's own documents, which need not be a card
        return []
