"""Write a world as a BEIR folder with a dataset card, community by community: memory does not grow with it."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

from hopbench.retrieval.support.errors import InputError
from tools.hopworld.community import Builder
from tools.hopworld.entities import Community, Namer, coprime
from tools.hopworld.passages import passage
from tools.hopworld.questions import QuestionWriter, WorldQuestion

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
MIN_ENTITIES = 24  # that a community has
_STEMS = 80  # that a community needs, at most
_WINDOW = 30  # communities that a new one can be linked with
_MIN_PASSAGES = 200
_SHUFFLE_WINDOW = 4096  # rows held back so that neighbours in the file are strangers in the world
_JUDGEMENT = ("query-id", "corpus-id", "score")
Row = dict[str, object]


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


def communities(seed: int, count: int) -> Iterator[tuple[Community, Sequence[Community]]]:
    """Yield up to `count` communities, each with the older ones that it may be linked with."""
    namer = Namer(seed, _STEMS * count + 200)
    known: deque[Community] = deque()
    for index in range(count):
        # random.Random draws single numbers many times faster than a numpy Generator.
        made = Builder(Random(seed * 1_000_003 + index), namer, index, known).build()
        yield made, known
        known.append(made)
        if len(known) > _WINDOW:
            known.popleft().forget()


def write_benchmark(folder: Path, seed: int, passages: int, questions: int) -> None:
    """Write corpus, queries, qrels and README.md into `folder`; the same arguments give the same bytes.

    Memory grows with `questions`, not with `passages`. Raises `InputError` for sizes that cannot be made.
    """
    if passages < _MIN_PASSAGES or not 1 <= questions <= passages // 2:
        raise InputError(
            f"--passages {passages} --questions {questions}: at least {_MIN_PASSAGES} passages and 1 question, "
            "and at most one question for two passages"
        )
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    asked: list[WorldQuestion] = []
    with (folder / "corpus.jsonl").open("w", encoding="utf-8", newline="\n") as corpus:
        for row in _shuffled(_corpus(seed, passages, questions, asked), Random(seed)):
            corpus.write(json.dumps(row, ensure_ascii=False) + "\n")
    if len(asked) < questions:
        raise InputError(f"--questions {questions}: this world yields only {len(asked)}; raise --passages {passages}")
    _write_questions(folder, asked)
    text = card(folder.resolve().name, seed, passages, [q.type for q in asked])
    (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")


def _corpus(seed: int, passages: int, questions: int, asked: list[WorldQuestion]) -> Iterator[Row]:
    """Passages in the order of their making; questions are added to `asked` as soon as their facts exist."""
    rng, writer = Random(seed + 1), QuestionWriter(seed)
    # Ids do not betray which passages belong together.
    step, width = coprime(int(passages * 0.6180339887), passages), len(str(passages - 1))
    made = 0
    for community, known in communities(seed, passages // MIN_ENTITIES + 1):
        for entity in community.entities[: passages - made]:
            entity.id = f"hw{(made * step) % passages:0{width}d}"
            made += 1
        asked.extend(writer.about(community, known, questions * made // passages))
        for entity in community.entities:
            if entity.id:
                yield {"_id": entity.id, "title": entity.title, "text": passage(entity, community, rng)}
        if made == passages:
            # The last community may be cut too short to be asked about; the one before it is whole.
            asked.extend(writer.about(known[-1] if known else community, known, questions))
            return


def _shuffled(rows: Iterable[Row], rng: Random) -> Iterator[Row]:
    """A seeded shuffle within a window: each row changes places with one that is held back."""
    held: list[Row] = []
    for row in rows:
        if len(held) < _SHUFFLE_WINDOW:
            held.append(row)
            continue
        place = rng.randrange(_SHUFFLE_WINDOW)
        held[place], row = row, held[place]  # noqa: PLW2901 - the swap is the shuffle
        yield row
    rng.shuffle(held)
    yield from held


def _write_questions(folder: Path, asked: Sequence[WorldQuestion]) -> None:
    """Questions and judgements; these twice, since `datasets` reads all files of a folder in one format."""
    judged: list[tuple[str, str]] = []
    with (folder / "queries.jsonl").open("w", encoding="utf-8", newline="\n") as queries:
        for number, question in enumerate(asked):
            name = f"hq{number:04d}"
            metadata = {
                "answer": question.answer,
                "answer_aliases": question.aliases,
                "type": question.type,
                "evidences": question.evidences,
                "hops": question.hops,
            }
            row = {"_id": name, "text": question.text, "metadata": metadata}
            queries.write(json.dumps(row, ensure_ascii=False) + "\n")
            judged += ((name, passage_id) for passage_id in question.gold)
    tsv = ["\t".join(_JUDGEMENT), *(f"{name}\t{passage_id}\t1" for name, passage_id in judged)]
    jsonl = [json.dumps(dict(zip(_JUDGEMENT, (*pair, 1), strict=True))) for pair in judged]
    for suffix, lines in (("tsv", tsv), ("jsonl", jsonl)):
        file = folder / "qrels" / f"test.{suffix}"
        file.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
