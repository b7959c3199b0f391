"""Which entities a question may name in lower case: "How does uvicorn reload?".

In a graph that triples made (ready ones, a language model's, a graph mapped from elsewhere) every entity may: somebody
stated it. Rules take any capitalised word that returns for a name, among them First, City and Actress, which most
questions use as plain words. Of what rules found only those link in lower case whose own passage writes them so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrieval.graph import cypher
from retrieval.graph.schema import RULE_RELATIONS, entity_id
from retrieval.index import Index
from retrieval.text import split_qualifier, tokens
from retrieval.types import Chunk

RULES, JOINED = ("rules", "spacy"), "rules+triples"


def uncapitalised(index: Index, entities: Sequence[str]) -> frozenset[str]:
    """Those of `entities` (ids) that link without a capital; for rules joined with triples it reads the store."""
    extractor = ((index.store.record() or {}).get("settings") or {}).get("extractor")
    if extractor in RULES:
        return common_nouns(index.chunks)
    if extractor != JOINED:
        return frozenset(entities)
    stated = index.store.read(cypher.RELATIONS, usual=list(RULE_RELATIONS))
    ends = (end for record in stated for name in ("source", "target") for end in record[name])
    return common_nouns(index.chunks) | frozenset(ends)


def common_nouns(chunks: Iterable[Chunk]) -> frozenset[str]:
    """Title entities of one word, without a parenthesis, that are written in lower case: "abortion", never "Ed".

    The title itself is ("uvicorn"), or the passage's text writes its word so beside others ("an abortion is …").
    """
    found: set[str] = set()
    qualified: set[str] = set()
    for chunk in chunks:
        name, qualifier = split_qualifier(chunk.title)
        words = tokens(name)
        if len(words) != 1:
            continue
        entity = entity_id((words[0].folded,))
        if qualifier:
            qualified.add(entity)  # "Mother (1996 film)" makes no plain word of mother
        elif words[0].text.islower() or any(
            t.text.islower() and t.folded == words[0].folded for t in tokens(chunk.text)
        ):
            found.add(entity)
    return frozenset(found - qualified)
