"""Find the evidence that a corpus offers: which passage leads to which, over which words, and what each is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hopbench.retrieval.index import Batch, Index, Linker
from hopbench.retrieval.index.cache import Memo
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE, CorpusIndex, corpus_index
from hopbench.retrieval.strategies.hoprank.words import Numbers
from hopbench.retrieval.text import STOP_WORDS, Token, folded_words, sentences, split_qualifier, tokens, unit_tokens
from hopbench.retrieval.types import Chunk, Counters

HEAD = 400  # characters of a text in which its kind is looked for
MIN_KIND_CHUNKS = 3  # below which the word for a kind is taken for an accident of the sentence
ONE_KIND = 0.4  # share of chunks with a kind, from which on things are described by it and compared
_KIND = re.compile(r"\b(?:is|was|are|were) (?:an?|the|one of the) ([^,.;:()]{3,80})")
_KIND_ENDS = frozenset(
    """by of in from for who which that whose based located to at on with directed written produced and set about
    starring released born known as is was near along between recorded performed""".split()
)
SHORT_CHUNK, LONG_CHUNK = 43, 83  # words of the median chunk with its title: questions quote little, or much
ALL_ALIKE = 0.25  # of `Evidence.alike`: most passages say of what kind a thing is
TWIN_COSINE = 0.9  # of two chunks that may say the same
TWIN_WORDS = 0.8  # Jaccard of the words of two chunks from which on they do


def _kind(text: str) -> str:
    """The last word of what follows the first "is a": "X is a 1999 American film by Y" is a film; empty without."""
    match = _KIND.search(text[:HEAD])
    phrase: list[str] = []
    for word in match.group(1).split() if match else ():
        if word.lower() in _KIND_ENDS:
            break
        phrase.append(word.lower())
    return phrase[-1] if phrase and phrase[-1].isalpha() and len(phrase[-1]) > 2 else ""


class Mention(NamedTuple):
    """A name in a chunk: words `start`..`end` of its sentence `sentence` (0 is the title) mean `entity`."""

    chunk: int
    sentence: int
    start: int
    end: int
    entity: int


class Link(NamedTuple):
    """A mention in one chunk of what others, `targets`, are titled by: parts of one article, or one passage."""

    mention: Mention
    targets: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The chunks of an index with the mentions that join them. Chunks and entities are numbered as in the index."""

    index: Index
    corpus: CorpusIndex
    linker: Linker
    _read: Memo = field(default_factory=lambda: Memo(4096))
    _twins: Memo = field(default_factory=lambda: Memo(1 << 16))

    @classmethod
    def of(cls, index: Index) -> Evidence:
        return cls(index, *corpus_index(Batch(index, []), Counters()))

    @property
    def chunks(self) -> Sequence[Chunk]:
        return self.index.chunks

    @cached_property
    def links(self) -> Numbers:
        """Numbers of the mentions that lead from a chunk's text to chunks that are titled so, of other titles."""
        mentions = self.corpus.mentions
        first, last = mentions.titled_by[mentions.entity], mentions.titled_by[mentions.entity + 1]
        return np.flatnonzero((last > first) & self._in_text & (mentions.own[mentions.chunk] != mentions.entity))

    @cached_property
    def links_of(self) -> Numbers:
        """Offsets into `links` of each chunk's, (n + 1,)."""
        return np.searchsorted(self.corpus.mentions.chunk[self.links], np.arange(len(self.chunks) + 1))

    def link(self, number: int) -> Link:
        mentions = self.corpus.mentions
        entity = mentions.entity[number]
        titled = mentions.titled[mentions.titled_by[entity] : mentions.titled_by[entity + 1]]
        return Link(self.mention(number), tuple(titled.tolist()))

    def links_from(self, chunk: int) -> list[Link]:
        return [self.link(int(number)) for number in self.links[self.links_of[chunk] : self.links_of[chunk + 1]]]

    def shared(self, max_chunks: int) -> Numbers:
        """The entities that the texts of several passages mention, of not more than `max_chunks` chunks."""
        mentions = self.corpus.mentions
        used = np.flatnonzero(self._in_text)
        pairs = np.unique(np.column_stack([mentions.entity[used], self._passage[mentions.chunk[used]]]), axis=0)
        count = np.bincount(pairs[:, 0], minlength=mentions.entities)
        return np.flatnonzero((count >= 2) & (count <= max_chunks))

    def mentions_of(self, entity: int) -> list[Mention]:
        mentions = self.corpus.mentions
        rows = mentions.by_entity[mentions.of_entity[entity] : mentions.of_entity[entity + 1]]
        return [self.mention(int(row)) for row in rows if self._in_text[row]]

    def mention(self, number: int) -> Mention:
        mentions, words = self.corpus.mentions, self.corpus.words
        chunk, sentence = int(mentions.chunk[number]), int(self.corpus.mentions.sentence[number])
        start = int(mentions.start[number] - words.sentence_start[sentence])
        within = sentence - int(words.chunk_start[chunk])
        return Mention(chunk, within, start, start + int(mentions.length[number]), int(mentions.entity[number]))

    @cached_property
    def _in_text(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each mention has a place outside titles."""
        return np.asarray((self.corpus.mentions.start != NOWHERE) & (self.corpus.mentions.in_title == 0), np.bool_)

    @cached_property
    def _passage(self) -> Numbers:
        known: dict[str, int] = {}
        return np.array([known.setdefault(chunk.passage_id, len(known)) for chunk in self.chunks], np.int64)

    def same_passage(self, chunks: Sequence[int]) -> bool:
        """Whether two of the chunks are of one passage."""
        return len({int(self._passage[chunk]) for chunk in chunks}) < len(chunks)

    def sentences(self, chunk: int) -> list[str]:
        """Title and sentences of a chunk."""
        one = self.chunks[chunk]
        return self._read.get(("text", chunk), lambda: [one.title, *sentences(one.text)])

    def sentence(self, mention: Mention) -> str:
        """The sentence of a mention."""
        return self.sentences(mention.chunk)[mention.sentence]

    def words(self, chunk: int, sentence: int) -> list[Token]:
        units = list if self.linker.language.english else unit_tokens  # by which the corpus counts places
        split: list[list[Token]] = self._read.get(
            ("words", chunk), lambda: [units(tokens(each)) for each in self.sentences(chunk)]
        )
        return split[sentence]

    def content_words(self, chunk: int) -> frozenset[str]:
        words: frozenset[str] = self._read.get(
            ("content", chunk), lambda: frozenset(folded_words(self.chunks[chunk].content))
        )
        return words

    def has_twin(self, chunk: int) -> bool:
        """Whether another passage says nearly the same as a chunk."""

        def find() -> bool:
            similar = self.corpus.graph.similar
            row = slice(similar.indptr[chunk], similar.indptr[chunk + 1])
            near = similar.indices[row][similar.data[row] >= TWIN_COSINE]
            own = self.content_words(chunk)
            others = (self.content_words(other) for other in map(int, near) if not self.same_passage([chunk, other]))
            return any(len(own & words) >= TWIN_WORDS * len(own | words) for words in others)

        return bool(self._twins.get(chunk, find))

    def titled_by(self, chunk: int) -> int:
        """The entity that a chunk is titled by; negative without one."""
        return int(self.corpus.mentions.own[chunk])

    def title(self, chunk: int) -> str:
        """The title without its parenthesis; empty where it is no name, as the title `note-4` of a file is none."""
        title = split_qualifier(self.chunks[chunk].title)[0].strip()
        return "" if title.islower() else title

    def title_words(self, chunk: int) -> frozenset[str]:
        """The words of the title that say something."""
        return frozenset(word.folded for word in tokens(self.chunks[chunk].title)) - STOP_WORDS

    def name_words(self, entity: int) -> frozenset[str]:
        """The words of an entity's name and aliases that say something."""
        names = self.linker.names_of(self.corpus.graph.entities[entity])
        return frozenset(word for name in names for word in name) - STOP_WORDS

    def name(self, entity: int) -> str:
        return self.linker.name_of[self.corpus.graph.entities[entity]]

    def idf(self, word: str) -> float:
        """BM25's idf of a folded word that the corpus has."""
        return float(self.corpus.words.idf[self.corpus.words.vocabulary[word]])

    @cached_property
    def room(self) -> float:
        """How much a passage gives a question to quote, 0 to 1: from long ones more, most where they say what it is."""
        starts = self.corpus.words.sentence_start[self.corpus.words.chunk_start]
        median = float(np.median(np.diff(starts)))
        length = min(max((median - SHORT_CHUNK) / (LONG_CHUNK - SHORT_CHUNK), 0.0), 1.0)
        return length**2 * (1 + min(self.alike / ALL_ALIKE, 1.0)) / 2

    @cached_property
    def kinds(self) -> Mapping[int, str]:
        """Chunk → what kind of thing it says it is about, for chunks with a title and words that return."""
        found = {row: kind for row, chunk in enumerate(self.chunks) if chunk.title and (kind := _kind(chunk.text))}
        counts = Counter(found.values())
        return {row: kind for row, kind in found.items() if counts[kind] >= MIN_KIND_CHUNKS}

    @cached_property
    def chunks_of_kind(self) -> Mapping[str, Sequence[int]]:
        result: dict[str, list[int]] = {}
        for row, kind in self.kinds.items():
            result.setdefault(kind, []).append(row)
        return result

    @property
    def alike(self) -> float:
        """The share of chunks with a kind beyond `ONE_KIND`: how far the corpus is of things that can be compared."""
        return max(len(self.kinds) / len(self.chunks) - ONE_KIND, 0.0)
