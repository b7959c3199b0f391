"""The linker of a graph (its names, aliases and titles, read from the store once per index), and names for display.

`uncapitalised` decides which entities a question may name in lower case: "How does uvicorn reload?". In a graph made
from triples (given, read by a language model, or mapped from another graph) every entity may, since somebody stated it;
but where rules found names as well, a word that occurs in many passages is a plain word: triples state about every film
that it is a "film". Rules take any capitalised word that recurs as a name, among them First, City and Actress. So a
name found by rules links in lower case only if its title is written so, or if the question names nothing else, the
entity's own passage writes the word so, and few passages contain it. docs/strategies.md has the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RULE_RELATIONS, entity_id
from hopbench.retrieval.index import Batch, Index, Linker, Uncapitalised
from hopbench.retrieval.text import STOP_WORDS, folded_words, name_key, split_qualifier, tokens
from hopbench.retrieval.types import Chunk, Counters

RULES, JOINED = ("rules", "spacy"), "rules+triples"
MAX_PASSAGES, MAX_PASSAGE_SHARE = 10, 0.001  # with a rare word: "continent" and "water" occur in more


def uncapitalised(index: Index, names: Mapping[str, str]) -> Uncapitalised:
    """The entities (id → name) that link in lower case; for rules joined with triples this reads the store."""
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
    """Title entities of one word written in lower case: "uvicorn" always, "Abortion" alone, never "Ed".

    `alone` needs a passage that writes the word so ("an abortion is …"), few chunks that contain it, and no title that
    has it with a qualifier: "Mother (1996 film)" does not make "mother" an entity.
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
    """Entities whose name has a rare word: one in at most 10 chunks or 0.1% of them."""
    words = {entity: set(name_key(name)) - STOP_WORDS for entity, name in names.items()}
    wanted = set[str]().union(*words.values())
    frequency: Counter[str] = Counter()
    for chunk in chunks if wanted else ():
        frequency.update(wanted.intersection(folded_words(chunk.content)))
    most = max(MAX_PASSAGES, MAX_PASSAGE_SHARE * len(chunks))
    return frozenset(entity for entity, own in words.items() if any(frequency[word] <= most for word in own))


def _linker(index: Index) -> Linker:
    """The linker of the index's graph, read once; from a cached file if the store's stamp matches."""

    def read() -> Linker:
        # Engines return no record for a label that the graph lacks.
        empty = {kind: {"id": (), "name": (), "type": (), "aliases": ()} for kind in ("Entity", "Document")}
        records = empty | {record["kind"]: record for record in index.store.read(cypher.NAMES)}
        entity, document = records["Entity"], records["Document"]
        names = list(zip(entity["id"], entity["name"], entity["type"], entity["aliases"], strict=True))
        titles = list(zip(document["id"], document["name"], strict=True))
        by_id = dict(zip(entity["id"], entity["name"], strict=True))
        return Linker(names, titles, uncapitalised(index, by_id), index.language)

    place = index.kept_of_graph()
    return index.memo.get("names", read if place is None else lambda: place[0].linker(place[1], read))


def linker(batch: Batch, counters: Counters) -> Linker:
    """The linker of the batch's graph; its names are read once per index and charged to each batch."""
    reader = _linker(batch.index)
    counters.round_trips += 1
    counters.rows += reader.read
    return reader


def entity_names(index: Index) -> Mapping[str, str]:
    """Entity id → name, for display."""
    return _linker(index).name_of


@dataclass(frozen=True)
class Names:
    """Node id → readable name: `[a chunk's title]` or an entity's name; an unknown id stays as it is."""

    index: Index
    entities: Mapping[str, str]

    @classmethod
    def read(cls, index: Index) -> Names:
        """Read the names of an index's graph."""
        return cls(index, linker(Batch(index, []), Counters()).name_of)

    def __call__(self, node: str) -> str:
        """The readable name of a chunk or entity."""
        row = self.index.row_of.get(node)
        if row is None:
            return self.entities.get(node, node)
        chunk = self.index.chunks[row]
        part = "" if chunk.id == chunk.passage_id else f", part {chunk.index + 1}"
        return f"[{chunk.title or chunk.passage_id}{part}]"
