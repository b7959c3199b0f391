"""The edges that documents themselves have: hyperlinks, the order of passages, and sections within sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import pandas as pd

from hopbench.retrieval.graph.construction.hyperlinks import document_of, heading_of, resolve
from hopbench.retrieval.graph.construction.staging import Part
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, LINKS_TO, NEXT, PART_OF
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk, Passage

LINK_COUNTS = "link-counts"  # the table with how many links lead where
Pairs = Iterable[tuple[str, str]]


def document_tables(passages: Iterable[Passage], chunks: Sequence[Chunk], tagger: Tagger) -> Iterator[Part]:
    """Yield the tables of a corpus's documents; passages of a document are in its order.

    Of a passage that is several chunks the one that has a link's words has the link, and the first is what links to the
    passage lead to.
    """
    passages = list(passages)
    parts: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        parts.setdefault(chunk.passage_id, []).append(chunk)
    for several in parts.values():
        several.sort(key=lambda chunk: chunk.index)
    links = resolve(passages)
    rows: dict[tuple[str, str], tuple[object, ...]] = {}
    for (source, target), (weight, texts) in links.edges.items():
        holder = next((chunk for chunk in parts[source] if any(text in chunk.text for text in texts)), parts[source][0])
        ends, text = (holder.id, parts[target][0].id), "; ".join(texts)
        rows[ends] = (*ends, text, weight, tagger.top(sorted(set(tagger.stems(text)))))
    counts = {"internal": links.internal, "external": links.external, "unresolved": len(links.unresolved)}
    yield LINK_COUNTS, pd.DataFrame([counts])
    yield LINKS_TO, pd.DataFrame(list(rows.values()), columns=list(EDGE_COLUMNS[LINKS_TO]))
    documents: dict[str, list[Passage]] = {}
    for passage in passages:
        documents.setdefault(document_of(passage), []).append(passage)
    following: list[tuple[str, str]] = []
    above: list[tuple[str, str]] = []
    for own in documents.values():
        every = [chunk.id for passage in own for chunk in parts[passage.id]]
        following += pairwise(every)
        above += ((chunk.id, parts[top][0].id) for low, top in _sections(own) for chunk in parts[low])
    for kind, pairs in ((NEXT, following), (PART_OF, above)):
        yield kind, pd.DataFrame(pairs, columns=list(EDGE_COLUMNS[kind]))


def _sections(passages: Sequence[Passage]) -> Pairs:
    """Pair each passage with the first one of the section above its own; the document's title is the topmost.

    Titles say where a section stands: `Install (Server guide: Setup)` is in Setup, which is in Server guide.
    """
    first, *rest = passages
    known = {_plain(first.title): first.id}
    for passage in rest:
        heading = heading_of(passage)
        levels = _plain(passage.title[len(heading) + 2 : -1]).split(": ") if heading != passage.title else []
        places = [": ".join(levels[:end]) for end in range(len(levels), 0, -1)]
        if (top := next((known[place] for place in places if place in known), None)) is not None:
            yield passage.id, top
            known.setdefault(_plain(": ".join([*levels, heading])), passage.id)


def _plain(title: str) -> str:
    return " ".join(title.replace("(", " ").replace(")", " ").split()).replace(" : ", ": ")
