"""Triples from passages by a language model, short passages several to a call.

Each chunk is read in one call, or several short ones in one; if a call for several fails because of its content, each
chunk is retried alone. Replies are cached per call, so an interrupted reading resumes where it stopped. Chunks that
cannot be read are returned with the reason, never dropped.

Names that mean the same thing are then resolved: names with the same words (`name_key`) are one entity already. Of the
others only near neighbours are compared: at a cosine of at least `SURE` they are the same if all their letters are
Latin; from the embedder's own synonym threshold up they are doubtful, and a model decides if there is one. Names that
differ in a number (dates, versions, "Henry IV" and "Henry V") are never merged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import regex

from hopbench.retrieval.embedding.base import Embedder
from hopbench.retrieval.llm import LLM, Call, Endpoint, Reply, ask
from hopbench.retrieval.llm.endpoint import wire_schema
from hopbench.retrieval.search.exact import dense_top
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.text import Key, name_key, normalised
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import Chunk, Triple

RESOLUTION_VERSION = "resolve-1"
SURE = 0.98
NEIGHBOURS = 3
PAIRS_PER_CALL = 20
_NUMBER = regex.compile(r"\d+|\b[ivxlc]+\b|[〇零一二三四五六七八九十百千]+")
_NOT_LATIN = regex.compile(r"[\p{L}--\p{Latin}]", regex.V1)  # embedders know few other letters, and not their order
Pair = tuple[str, str]

RESOLUTION_INSTRUCTIONS = """\
For each numbered pair of names, say whether both name the same thing (true) or not (false).
A person and a work or a place named after them are not the same; a full and a short name of one thing are."""


def renamed(triples: Sequence[Triple], canonical: Mapping[str, str]) -> list[Triple]:
    """The triples with canonical names, without those whose ends are now the same."""
    named = (
        replace(one, subject=canonical.get(one.subject, one.subject), object=canonical.get(one.object, one.object))
        for one in triples
    )
    return [triple for triple in named if name_key(triple.subject) != name_key(triple.object)]


def aliases_of(canonical: Mapping[str, str]) -> dict[str, list[str]]:
    """The replaced names of each canonical name, sorted."""
    aliases: dict[str, list[str]] = {}
    for name, replacement in sorted(canonical.items()):
        aliases.setdefault(replacement, []).append(name)
    return aliases


def resolve_names(
    triples: Sequence[Triple], embedder: Embedder, llm: LLM | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """Find the names that mean the same thing; the most frequent name is canonical, then the longest.

    Returns each replaced name with its replacement, and the doubtful pairs without an answer by the model ("20 pairs of
    names from …") with the reason.
    """
    from scipy.cluster.hierarchy import DisjointSet

    counts = Counter(name for triple in triples for name in (triple.subject, triple.object))
    spelled: dict[tuple[str, ...], str] = {}
    for name in sorted(counts, key=lambda name: (-counts[name], -len(name), name)):
        spelled.setdefault(name_key(name), name)
    names = list(spelled.values())  # best first
    sure, doubtful = _near(names, embedder)
    decided, undecided = _decided(doubtful, llm)
    groups = DisjointSet(names)
    for pair in [*sure, *decided]:
        groups.merge(*pair)
    best: dict[str, str] = {}
    for name in names:
        best.setdefault(groups[name], name)
    canonical = {name: best[groups[spelled[name_key(name)]]] for name in counts}
    return {name: winner for name, winner in canonical.items() if name != winner}, undecided


def _near(names: Sequence[str], embedder: Embedder) -> tuple[list[Pair], list[Pair]]:
    if len(names) < 2:
        return [], []
    vectors = on_grid(embedder.embed(names))
    sure: set[Pair] = set()
    doubtful: set[Pair] = set()
    for row, best in enumerate(dense_top(vectors, vectors, NEIGHBOURS + 1)):
        others = [pair for pair in zip(best.rows.tolist(), best.scores.tolist(), strict=True) if pair[0] != row]
        for other, cosine in others[:NEIGHBOURS]:
            pair = (names[min(row, other)], names[max(row, other)])
            if cosine < embedder.synonym_threshold or _numbers(pair[0]) != _numbers(pair[1]):
                continue
            (sure if cosine >= SURE and not _NOT_LATIN.search("".join(pair)) else doubtful).add(pair)
    return sorted(sure), sorted(doubtful - sure)


def _numbers(name: str) -> list[str]:
    return list(_NUMBER.findall(normalised(name).lower()))


def _decided(doubtful: Sequence[Pair], llm: LLM | None) -> tuple[list[Pair], dict[str, str]]:
    """The doubtful pairs that the model calls the same, and the reason of each call without an answer."""
    if llm is None or not doubtful:
        return [], {}
    parts = [doubtful[begin : begin + PAIRS_PER_CALL] for begin in range(0, len(doubtful), PAIRS_PER_CALL)]
    calls = []
    for part in parts:
        lines = [f"{number}. {first} | {second}" for number, (first, second) in enumerate(part, 1)]
        form = _object(same=_array({"type": "boolean"}, minItems=len(part), maxItems=len(part)))
        talk = [{"role": "system", "content": RESOLUTION_INSTRUCTIONS}, {"role": "user", "content": "\n".join(lines)}]
        calls.append(Call("resolve", talk, form, 256, version=RESOLUTION_VERSION))
    same: list[Pair] = []
    undecided: dict[str, str] = {}
    for part, reply in zip(parts, ask(llm, calls), strict=True):
        if reply.failure is not None:
            undecided[f"{len(part)} pairs of names from {part[0]}"] = reply.failure
        else:
            same += [pair for pair, yes in zip(part, reply.value["same"], strict=True) if yes]
    return same, undecided


def _object(**properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _array(items: object, **bounds: int) -> dict[str, object]:
    return {"type": "array", "items": items, **bounds}


PROMPT_VERSION = "extract-2"
PASSAGES_PER_CALL, TOKENS_PER_CALL = 4, 400
MAX_TRIPLES = 16  # per passage and call; gleaning finds more
# Tokens of a reply; the first two are enough for a triple and an entity with texts of maximum length.
TOKENS_PER_TRIPLE, TOKENS_PER_ENTITY, MAX_TOKENS = 360, 200, 8192
WEIGHTS = 10

INSTRUCTIONS = """You read passages and write down the facts they state, as relations between named things.
For each passage, by its number, list first the things that its facts are about, each once:
- name: as the passage spells it in full; resolve "he", "it", "the film".
- type: what it is, in one or two words (person, film, city, date, organization, ...).
- description: what the passage says it is, in one short sentence.
Then list the triples it states:
- subject, object: the names of two of these things; the subject is what the relation is said of.
- relation: a short verb phrase or attribute that reads from subject to object ("directed by", "place of birth").
- description: the fact in one short sentence.
- weight: how much the passage is about it, from 1 (in passing) to 10 (its main point).
- tags: up to 4 key words of the fact.
State only what the passage says. The passage's title is usually a subject."""
GLEANING = "Some facts may be missing. List only triples that the passages state and that you have not listed yet."

Described = tuple[str, str]  # an entity's type and description
Outcomes = dict[tuple[str, ...], dict[str, list[Triple]] | str]
"""The triples of each chunk by part, or the reason of a failure."""

_NAME = {"type": "string", "maxLength": 80}
_SENTENCE = {"type": "string", "maxLength": 160}
_TAG = {"type": "string", "maxLength": 30}
_ENTITY = _object(name=_NAME, type=_NAME, description=_SENTENCE)
_TRIPLE = _object(
    subject=_NAME,
    relation=_NAME,
    object=_NAME,
    description=_SENTENCE,
    weight={"type": "integer", "minimum": 1, "maximum": WEIGHTS},
    tags=_array(_TAG, maxItems=4),
)


def schema(passages: int, triples: int = MAX_TRIPLES) -> Mapping[str, Any]:
    """The JSON schema of a reply for so many passages, each with at most `triples` triples and one entity more."""
    passage = _object(
        passage={"type": "integer", "minimum": 1, "maximum": passages},
        entities=_array(_ENTITY, maxItems=triples + 1),
        triples=_array(_TRIPLE, maxItems=triples),
    )
    return _object(passages=_array(passage, minItems=passages, maxItems=passages))


def recogniser(endpoint: Endpoint, gleaning: int = 0) -> str:
    """The model, prompt versions and gleaning rounds, which determine the triples, for the build key."""
    return f"{endpoint.identity} {PROMPT_VERSION} {RESOLUTION_VERSION} gleaning {gleaning}"


@dataclass(frozen=True)
class TripleReader:
    """Reads chunks with a model, up to `passages_per_call` in a call; `gleaning` more rounds find missed triples."""

    llm: LLM
    gleaning: int = 0
    passages_per_call: int = PASSAGES_PER_CALL
    max_triples: int = MAX_TRIPLES

    def read(self, chunks: Sequence[Chunk]) -> tuple[list[Triple], dict[str, str]]:
        """Read the triples stated in the chunks, in their order; gives the reason for each unread chunk, too."""
        parts = list(parts_of(chunks, self.passages_per_call))
        outcomes = self._outcomes(parts)
        alone = [[chunk] for part in parts if len(part) > 1 and isinstance(outcomes[_ids(part)], str) for chunk in part]
        outcomes |= self._outcomes(alone)
        unread: dict[str, str] = {}
        triples: list[Triple] = []
        for part in parts:
            for chunk in part:
                outcome = outcomes.get((chunk.id,), outcomes[_ids(part)])
                if isinstance(outcome, str):
                    unread[chunk.id] = outcome
                else:
                    triples += outcome[chunk.id]
        return triples, unread

    def _outcomes(self, parts: Sequence[Sequence[Chunk]]) -> Outcomes:
        outcomes: Outcomes = {}
        talks = [(part, opening(part)) for part in parts]
        each = TOKENS_PER_TRIPLE * self.max_triples + TOKENS_PER_ENTITY * (self.max_triples + 1)
        for round_ in range(self.gleaning + 1):
            calls = [
                Call(
                    "glean" if round_ else "extract",
                    list(talk),
                    wire_schema(schema(len(part), self.max_triples), self.llm.endpoint.base_url),
                    min(each * len(part), MAX_TOKENS),
                    sample=f"{part[0].id}+{len(part) - 1}",
                    version=PROMPT_VERSION,
                )
                for part, talk in talks
            ]
            replies = ask(self.llm, calls)
            for (part, talk), reply in zip(talks, replies, strict=True):
                _keep(outcomes, part, reply)
                talk += [{"role": "assistant", "content": reply.text}, {"role": "user", "content": GLEANING}]
            talks = [one for one, reply in zip(talks, replies, strict=True) if reply.failure is None]
        return outcomes


def _ids(part: Sequence[Chunk]) -> tuple[str, ...]:
    return tuple(chunk.id for chunk in part)


def parts_of(chunks: Sequence[Chunk], passages_per_call: int) -> Iterator[list[Chunk]]:
    """Group neighbouring short chunks; a long chunk is a group of its own."""
    part: list[Chunk] = []
    size = 0
    for chunk in sorted(chunks, key=lambda one: one.id):
        tokens = count_tokens(chunk.content)
        if part and (len(part) == passages_per_call or size + tokens > TOKENS_PER_CALL):
            yield part
            part, size = [], 0
        part.append(chunk)
        size += tokens
    if part:
        yield part


def opening(part: Sequence[Chunk]) -> list[dict[str, str]]:
    """The first messages of a call about some chunks."""
    passages = [f"Passage {number}: {chunk.title}\n{chunk.text}" for number, chunk in enumerate(part, 1)]
    return [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": "\n\n".join(passages)}]


def _keep(outcomes: Outcomes, part: Sequence[Chunk], reply: Reply) -> None:
    """Add a reply's triples. If the first round fails, the part fails; if gleaning fails, earlier triples remain."""
    earlier = outcomes.get(_ids(part))
    if reply.failure is not None:
        outcomes.setdefault(_ids(part), reply.failure)
        return
    by_number: dict[int, list[Mapping[str, Any]]] = {}
    for entry in reply.value["passages"]:
        by_number.setdefault(entry["passage"], []).append(entry)
    if len(by_number) < len(part) and earlier is None:
        missing = [number for number in range(1, len(part) + 1) if number not in by_number]
        outcomes[_ids(part)] = f"wrong schema: nothing about passage {missing} of {len(part)}"
        return
    triples = earlier if isinstance(earlier, dict) else {chunk.id: [] for chunk in part}
    for number, chunk in enumerate(part, 1):
        entries = by_number.get(number, [])
        triples[chunk.id] += _triples(chunk, entries, _described(entries, triples[chunk.id]))
    outcomes[_ids(part)] = triples


def _described(entries: Sequence[Mapping[str, Any]], earlier: Sequence[Triple]) -> dict[Key, Described]:
    """Type and description of each entity listed in a reply or an earlier round; the first wins."""
    known: dict[Key, Described] = {}
    for triple in earlier:
        known.setdefault(name_key(triple.subject), (triple.subject_type, triple.subject_description))
        known.setdefault(name_key(triple.object), (triple.object_type, triple.object_description))
    for entity in (entity for entry in entries for entity in entry["entities"]):
        described = " ".join(entity["type"].lower().split()), " ".join(entity["description"].split())
        known.setdefault(name_key(entity["name"]), described)
    return known


def _triples(chunk: Chunk, entries: Sequence[Mapping[str, Any]], known: Mapping[Key, Described]) -> Iterator[Triple]:
    """The distinct triples with two different names; strength = weight/10."""
    seen = set()
    for stated in (stated for entry in entries for stated in entry["triples"]):
        subject, relation, thing = (" ".join(stated[part].split()) for part in ("subject", "relation", "object"))
        ends = name_key(subject), name_key(thing)
        identity = json.dumps([*ends, relation.lower()])
        if not all(ends) or ends[0] == ends[1] or not relation or identity in seen:
            continue
        seen.add(identity)
        first, second = (known.get(end, ("", "")) for end in ends)
        yield Triple(
            passage_id=chunk.passage_id,
            subject=subject,
            relation=relation.lower(),
            object=thing,
            confidence=stated["weight"] / WEIGHTS,
            subject_type=first[0],
            object_type=second[0],
            description=" ".join(stated["description"].split()),
            tags=tuple(stated["tags"]),
            subject_description=first[1],
            object_description=second[1],
        )
