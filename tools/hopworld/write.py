"""Writes a world as a BEIR folder with a dataset card, community by community: memory does not grow with it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

from hopbench.retrieval.support.errors import InputError
from tools.hopworld.builder import Builder
from tools.hopworld.card import card
from tools.hopworld.model import Community
from tools.hopworld.names import Namer, coprime
from tools.hopworld.questions import Asked, Asker
from tools.hopworld.render import passage

FEWEST_ENTITIES = 24  # that a community has
_STEMS = 80  # that a community needs, at most
_WINDOW = 30  # communities that a new one can be linked with


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


_FEWEST = 200
_SHUFFLE = 4096  # rows held back so that neighbours in the file are strangers in the world
_JUDGEMENT = ("query-id", "corpus-id", "score")

Row = dict[str, object]


def write_benchmark(folder: Path, seed: int, passages: int, questions: int) -> None:
    """Write corpus, queries, qrels and README.md into `folder`; the same arguments give the same bytes.

    Memory grows with `questions`, not with `passages`. Raises `InputError` for sizes that cannot be made.
    """
    if passages < _FEWEST or not 1 <= questions <= passages // 2:
        raise InputError(
            f"--passages {passages} --questions {questions}: at least {_FEWEST} passages and 1 question, "
            "and at most one question for two passages"
        )
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    asked: list[Asked] = []
    with (folder / "corpus.jsonl").open("w", encoding="utf-8", newline="\n") as corpus:
        for row in _shuffled(_corpus(seed, passages, questions, asked), Random(seed)):
            corpus.write(json.dumps(row, ensure_ascii=False) + "\n")
    if len(asked) < questions:
        raise InputError(f"--questions {questions}: this world yields only {len(asked)}; raise --passages {passages}")
    _write_questions(folder, asked)
    text = card(folder.resolve().name, seed, passages, [q.type for q in asked])
    (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")


def _corpus(seed: int, passages: int, questions: int, asked: list[Asked]) -> Iterator[Row]:
    """Passages in the order of their making; questions are added to `asked` as soon as their facts exist."""
    rng, asker = Random(seed + 1), Asker(seed)
    # Ids do not betray which passages belong together.
    step, width = coprime(int(passages * 0.6180339887), passages), len(str(passages - 1))
    made = 0
    for community, known in communities(seed, passages // FEWEST_ENTITIES + 1):
        for entity in community.entities[: passages - made]:
            entity.id = f"hw{(made * step) % passages:0{width}d}"
            made += 1
        asked.extend(asker.about(community, known, questions * made // passages))
        for entity in community.entities:
            if entity.id:
                yield {"_id": entity.id, "title": entity.title, "text": passage(entity, community, rng)}
        if made == passages:
            # The last community may be cut too short to be asked about; the one before it is whole.
            asked.extend(asker.about(known[-1] if known else community, known, questions))
            return


def _shuffled(rows: Iterable[Row], rng: Random) -> Iterator[Row]:
    """A seeded shuffle within a window: each row changes places with one that is held back."""
    held: list[Row] = []
    for row in rows:
        if len(held) < _SHUFFLE:
            held.append(row)
            continue
        place = rng.randrange(_SHUFFLE)
        held[place], row = row, held[place]  # noqa: PLW2901 - the swap is the shuffle
        yield row
    rng.shuffle(held)
    yield from held


def _write_questions(folder: Path, asked: Sequence[Asked]) -> None:
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
