"""Which entities a question may name in lower case: "How does uvicorn reload?".

In a graph that triples made (ready ones, a language model's, a graph mapped from elsewhere) every entity may, since
somebody stated it; but beside other names a word that many passages have is a plain word: triples state of every film
that it is a "film". Rules take any capitalised word that returns for a name, among them First, City and Actress; so
what rules found may only if its title is written so, or if the question names nothing else, the entity's own passage
writes its word so, and few passages have the word. docs/strategies.md has the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RULE_RELATIONS, entity_id
from hopbench.retrieval.index import Index, Uncapitalised
from hopbench.retrieval.text import STOP_WORDS, folded_words, name_key, split_qualifier, tokens
from hopbench.retrieval.types import Chunk

RULES, JOINED = ("rules", "spacy"), "rules+triples"
FEW, FEW_SHARE = 10, 0.001  # passages that may have the word: "continent" and "water" stand in more


def uncapitalised(index: Index, names: Mapping[str, str]) -> Uncapitalised:
    """Those of the entities (id → name) that link in lower case; for rules joined with triples it reads the store."""
    extractor = ((index.store.record() or {}).get("settings") or {}).get("extractor")
    if extractor in RULES:
        return written_small(index.chunks)
    if extractor != JOINED:
        return Uncapitalised(_rare(names, index.chunks), frozenset(names))
    small = written_small(index.chunks)
    stated = index.store.read(cypher.RELATIONS, usual=list(RULE_RELATIONS))
    ends = {end: names[end] for record in stated for column in ("source", "target") for end in record[column]}
    return Uncapitalised(small.always | _rare(ends, index.chunks), small.alone.union(ends))


def written_small(chunks: Sequence[Chunk]) -> Uncapitalised:
    """Title entities of one word that are written in lower case: "uvicorn" always, "Abortion" alone, never "Ed".

    Alone if the passage's text writes the word so ("an abortion is …"), if few chunks have it, and if no title has it
    with a parenthesis: "Mother (1996 film)" makes no entity of a mother.
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
        elif any(token.folded == word.folded and token.text.islower() for token in tokens(chunk.text)):
            alone.add(word.folded)
    return Uncapitalised(
        frozenset(entity_id((word,)) for word in always - qualified),
        _rare({entity_id((word,)): word for word in alone - qualified}, chunks),
    )


def _rare(names: Mapping[str, str], chunks: Sequence[Chunk]) -> frozenset[str]:
    """Entities whose name has a rare word: one in at most 10 chunks, or in 0.1% of them."""
    words = {entity: set(_content(name)) for entity, name in names.items()}
    wanted = set[str]().union(*words.values())
    frequency: Counter[str] = Counter()
    for chunk in chunks if wanted else ():
        frequency.update(wanted.intersection(folded_words(chunk.content)))
    most = max(FEW, FEW_SHARE * len(chunks))
    return frozenset(entity for entity, own in words.items() if any(frequency[word] <= most for word in own))


def _content(name: str) -> Iterator[str]:
    return (word for word in name_key(name) if word not in STOP_WORDS)
