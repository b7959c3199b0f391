"""Which entities a question may name in lower case: "How does uvicorn reload?".

In a graph that triples made (ready ones, a language model's, a graph mapped from elsewhere) every entity may: somebody
stated it. Rules take any capitalised word that returns for a name, among them First, City and Actress, which most
questions use as plain words; so what rules found links in lower case only where its title is written so, or where the
question names nothing else, the entity's own passage writes its word so, and few passages have the word
(docs/strategies.md has the figures).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from retrieval.graph import cypher
from retrieval.graph.schema import RULE_RELATIONS, entity_id
from retrieval.index import Index
from retrieval.text import folded_words, split_qualifier, tokens
from retrieval.types import Chunk

RULES, JOINED = ("rules", "spacy"), "rules+triples"
FEW, FEW_SHARE = 10, 0.001  # passages that may have the word: "continent" and "water" stand in more


class Uncapitalised(NamedTuple):
    """Ids of entities that link in lower case: `always`, or `alone`, where a question names nothing else."""

    always: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()


NONE = Uncapitalised()


def uncapitalised(index: Index, entities: Sequence[str]) -> Uncapitalised:
    """Those of `entities` (ids) that link in lower case; where rules and triples are joined it reads the store."""
    extractor = ((index.store.record() or {}).get("settings") or {}).get("extractor")
    if extractor not in (*RULES, JOINED):
        return Uncapitalised(always=frozenset(entities))
    found = written_small(index.chunks)
    if extractor != JOINED:
        return found
    stated = index.store.read(cypher.RELATIONS, usual=list(RULE_RELATIONS))
    ends = (end for record in stated for name in ("source", "target") for end in record[name])
    return Uncapitalised(found.always.union(ends), found.alone)


def written_small(chunks: Sequence[Chunk]) -> Uncapitalised:
    """Title entities of one word that are written in lower case: "uvicorn" always, "Abortion" alone, never "Ed".

    Alone if the passage's text writes the word so ("an abortion is …"), if at most 10 chunks or one in a thousand have
    it, and if no title has it with a parenthesis: "Mother (1996 film)" makes no entity of a mother.
    """
    always: set[str] = set()
    alone: set[str] = set()
    qualified: set[str] = set()
    for chunk in chunks:
        name, qualifier = split_qualifier(chunk.title)
        words = tokens(name)
        if len(words) != 1:
            continue
        (word,) = words
        if qualifier:
            qualified.add(word.folded)
        elif word.text.islower():
            always.add(word.folded)
        elif any(said.folded == word.folded and said.text.islower() for said in tokens(chunk.text)):
            alone.add(word.folded)
    return Uncapitalised(_entities(always - qualified), _entities(_rare(alone - qualified, chunks)))


def _rare(words: set[str], chunks: Sequence[Chunk]) -> set[str]:
    if not words:
        return words
    frequency: Counter[str] = Counter()
    for chunk in chunks:
        frequency.update(words.intersection(folded_words(chunk.content)))
    return {word for word in words if frequency[word] <= max(FEW, FEW_SHARE * len(chunks))}


def _entities(words: set[str]) -> frozenset[str]:
    return frozenset(entity_id((word,)) for word in words)
