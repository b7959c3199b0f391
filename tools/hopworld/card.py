"""The dataset card: what Hugging Face `datasets` needs to load the folder, and what a reader needs to trust it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

_CARD = """\
---
license: apache-2.0
language:
- en
pretty_name: {title}
size_categories:
- {size}
task_categories:
- text-retrieval
- question-answering
tags:
- multi-hop
- synthetic
- beir
hopbench:
  role: {role}
configs:
- config_name: corpus
  data_files:
  - split: corpus
    path: corpus.jsonl
- config_name: queries
  data_files:
  - split: queries
    path: queries.jsonl
- config_name: qrels
  data_files:
  - split: test
    path: qrels/test.jsonl
---
# {name}

{passages:,} passages about a fictional world and {questions:,} multi-hop questions with answers, aliases, gold passages
and evidence triples. Every proper name was put together from syllables by a seeded generator, so no model
can know an answer from elsewhere. Role: **{role}**.

| type | gold passages | questions |
|---|---|---|
{types}

Written by HopBench's generator; the same command writes the same bytes:

    python -m tools.hopworld --out {name} --seed {seed} --passages {passages} --questions {questions}

`python -m tools.hopworld --check {name}` measures and prints its difficulty. The shipped sets keep
these bounds: the best ranking without hops (BM25, vector or a weighted sum) has all gold passages in its top 10 for
40-70% of the questions; from the hybrid's top 10, two steps through MENTIONED_IN and RELATED_TO reach all of them for
95% or more, while they reach 20% of the corpus or less.

## What is in it
- `corpus.jsonl`: `_id`, `title`, `text` (2-8 sentences).
- `queries.jsonl`: `_id`, `text`, `metadata` with `answer`, `answer_aliases`, `type`, `evidences` (subject, relation,
  object) and `hops`.
- `qrels/test.tsv` (BEIR) and `qrels/test.jsonl` (the same rows for `datasets`): `query-id`, `corpus-id`, `score`. A
  question needs all its gold passages, and each of its facts is stated in one passage only.

The world consists of regions of about 30 passages (towns, people, films, novels, songs, companies, schools,
ships, papers, prizes) with few links between them: people who moved, films shot abroad, shared surnames and titles.
Facts have several sentence plans, stand on one side only, and use pronouns, surnames and acronyms; many people and
places that are mentioned have no passage.

Limits: template English is less varied than a human's, and a method tuned on these templates may not carry
over. Compare methods here, then confirm on natural text.
"""

_GOLD = {"bridge": 2, "compositional": 3, "comparison": 2, "bridge-comparison": 4}
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def card(name: str, seed: int, passages: int, types: Sequence[str]) -> str:
    """The text of README.md for a folder of this name."""
    counts, tuning = Counter(types), name.endswith("-tune")
    rows = "\n".join(f"| {kind} | {gold} | {counts[kind]} |" for kind, gold in _GOLD.items())
    return _CARD.format(
        name=name,
        title="HopWorld, for tuning" if tuning else "HopWorld",
        role="tune" if tuning else "report",
        size=next((label for limit, label in _SIZES if passages < limit), "1M<n<10M"),
        seed=seed,
        passages=passages,
        questions=len(types),
        types=rows,
    )
