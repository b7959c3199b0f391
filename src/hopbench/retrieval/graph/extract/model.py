"""Triples from passages by a language model, short passages several to a call.

A chunk is read by one call, short ones several to a call; where a call for several fails by its content, each is asked
for alone. Replies are cached call by call, so an interrupted reading goes on where it stopped. What could not be read
at all is returned with its reason, never dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hopbench.retrieval.graph.extract import resolution
from hopbench.retrieval.llm import LLM, Call, Endpoint, Reply, ask
from hopbench.retrieval.llm.structured import wire_schema
from hopbench.retrieval.text import Key, name_key
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import Chunk, Triple

PROMPT_VERSION = "extract-2"
TOGETHER, TOGETHER_TOKENS = 4, 400  # passages and their tokens in one call
MAX_TRIPLES = 16  # of one passage and one call; more are gleaned
# Of a reply; the former two hold a triple and an entity of the longest texts.
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

_NAME = {"type": "string", "maxLength": 80}
_SENTENCE = {"type": "string", "maxLength": 160}
_TAG = {"type": "string", "maxLength": 30}
_ENTITY = {
    "type": "object",
    "properties": {"name": _NAME, "type": _NAME, "description": _SENTENCE},
    "required": ["name", "type", "description"],
    "additionalProperties": False,
}
_TRIPLE = {
    "type": "object",
    "properties": {
        "subject": _NAME,
        "relation": _NAME,
        "object": _NAME,
        "description": _SENTENCE,
        "weight": {"type": "integer", "minimum": 1, "maximum": WEIGHTS},
        "tags": {"type": "array", "items": _TAG, "maxItems": 4},
    },
    "required": ["subject", "relation", "object", "description", "weight", "tags"],
    "additionalProperties": False,
}


def schema(passages: int, triples: int = MAX_TRIPLES) -> Mapping[str, Any]:
    """The form of a reply for so many passages with at most so many triples each, and entities for a chain of them."""
    passage = {
        "type": "object",
        "properties": {
            "passage": {"type": "integer", "minimum": 1, "maximum": passages},
            "entities": {"type": "array", "items": _ENTITY, "maxItems": triples + 1},
            "triples": {"type": "array", "items": _TRIPLE, "maxItems": triples},
        },
        "required": ["passage", "entities", "triples"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"passages": {"type": "array", "items": passage, "minItems": passages, "maxItems": passages}},
        "required": ["passages"],
        "additionalProperties": False,
    }


def recogniser(endpoint: Endpoint, gleaning: int = 0) -> str:
    """Model, prompts and rounds, which decide the triples: for the build key."""
    return f"{endpoint.identity} {PROMPT_VERSION} {resolution.PROMPT_VERSION} gleaning {gleaning}"


@dataclass(frozen=True)
class Reading:
    """The result of a reading: triples in the order of the chunks, and for each unread chunk the reason."""

    triples: Sequence[Triple]
    unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TripleReader:
    """Reads chunks with a model, up to `together` per call; `gleaning` more rounds ask for missed triples."""

    llm: LLM
    gleaning: int = 0
    together: int = TOGETHER
    most: int = MAX_TRIPLES

    def read(self, chunks: Sequence[Chunk]) -> Reading:
        """The triples that the chunks state."""
        parts = list(parts_of(chunks, self.together))
        outcomes = self._asked(parts)
        alone = [[chunk] for part in parts if len(part) > 1 and isinstance(outcomes[_ids(part)], str) for chunk in part]
        outcomes |= self._asked(alone)
        unread: dict[str, str] = {}
        triples: list[Triple] = []
        for chunk, together in ((chunk, part) for part in parts for chunk in part):
            outcome = outcomes.get((chunk.id,), outcomes[_ids(together)])
            if isinstance(outcome, str):
                unread[chunk.id] = outcome
            else:
                triples += outcome[chunk.id]
        return Reading(triples, unread)

    def _asked(self, parts: Sequence[Sequence[Chunk]]) -> dict[tuple[str, ...], dict[str, list[Triple]] | str]:
        """Per part the triples of each chunk, or why there are none; gleaned where the model was asked to."""
        outcomes: dict[tuple[str, ...], dict[str, list[Triple]] | str] = {}
        talks = [(part, opening(part)) for part in parts]
        for round_ in range(self.gleaning + 1):
            replies = ask(self.llm, [self._call(part, talk, round_) for part, talk in talks])
            for (part, talk), reply in zip(talks, replies, strict=True):
                _keep(outcomes, part, reply)
                talk += [{"role": "assistant", "content": reply.text}, {"role": "user", "content": GLEANING}]
            talks = [one for one, reply in zip(talks, replies, strict=True) if reply.failure is None]
        return outcomes

    def _call(self, part: Sequence[Chunk], talk: Sequence[Mapping[str, str]], round_: int) -> Call:
        each = TOKENS_PER_TRIPLE * self.most + TOKENS_PER_ENTITY * (self.most + 1)
        limit = min(each * len(part), MAX_TOKENS)
        form = wire_schema(schema(len(part), self.most), self.llm.endpoint.base_url)
        sample = f"{part[0].id}+{len(part) - 1}"
        purpose = "glean" if round_ else "extract"
        return Call(purpose, list(talk), form, limit, sample=sample, version=PROMPT_VERSION)


def _ids(part: Sequence[Chunk]) -> tuple[str, ...]:
    return tuple(chunk.id for chunk in part)


def parts_of(chunks: Sequence[Chunk], together: int) -> Iterator[list[Chunk]]:
    """Groups of neighbouring short chunks; a long chunk is a group of its own."""
    part: list[Chunk] = []
    size = 0
    for chunk in sorted(chunks, key=lambda one: one.id):
        tokens = count_tokens(chunk.content)
        if part and (len(part) == together or size + tokens > TOGETHER_TOKENS):
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


def _keep(outcomes: dict[tuple[str, ...], dict[str, list[Triple]] | str], part: Sequence[Chunk], reply: Reply) -> None:
    """Add a reply's triples. If the first round fails the part fails; if gleaning fails, earlier triples remain."""
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
    """Type and description of each thing that a reply lists, and of those that an earlier round did; the first wins."""
    known: dict[Key, Described] = {}
    for triple in earlier:
        known.setdefault(name_key(triple.subject), (triple.subject_type, triple.subject_description))
        known.setdefault(name_key(triple.object), (triple.object_type, triple.object_description))
    for entity in (entity for entry in entries for entity in entry["entities"]):
        described = " ".join(entity["type"].lower().split()), " ".join(entity["description"].split())
        known.setdefault(name_key(entity["name"]), described)
    return known


def _triples(chunk: Chunk, entries: Sequence[Mapping[str, Any]], known: Mapping[Key, Described]) -> Iterator[Triple]:
    """Triples with two different names, each once; strength = weight/10."""
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
