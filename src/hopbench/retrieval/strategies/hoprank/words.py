"""The words of a corpus and of its relations as numbers, the words' vectors, and the words of listed chunks."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from hopbench.retrieval.embedding.base import unit_rows
from hopbench.retrieval.embedding.models import WordLlamaEmbedder
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RULE_RELATIONS
from hopbench.retrieval.index import Arrays, Batch
from hopbench.retrieval.support.arithmetic import log, row_lengths
from hopbench.retrieval.support.arrays import Lists, compact, distinct, expand_ranges
from hopbench.retrieval.text import ENGLISH, Language, sentences, tokens, unit_tokens, units
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.types import Chunk, Counters

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
CHUNK_BATCH = 50_000  # chunks whose words are counted at a time


def grouped(values: NDArray[Any]) -> tuple[Numbers, Numbers, Numbers]:
    """Group values: the sorted distinct ones, the positions of all by value, and the group of each position.

    Of whole numbers from 0 on, such that one with a place fits 63 bits: NumPy sorts those in a fifth of the time that
    argsort takes, and a search for each among the distinct ones waits for mispredicted branches.
    """
    bits = len(values).bit_length()
    ordered = (values.astype(np.int64) << bits) | np.arange(len(values))
    ordered.sort()
    places, ordered = ordered & ((1 << bits) - 1), ordered >> bits
    first = np.diff(ordered, prepend=-1) != 0
    return ordered[first], places, first.cumsum() - 1


def numbered(values: NDArray[Any]) -> tuple[Numbers, Numbers]:
    """Number values by the sorted distinct ones: `np.unique` with its inverse, for values that suit `grouped`."""
    different, places, group = grouped(values)
    which = np.empty(len(values), np.int64)
    which[places] = group
    return different, which


def columns(values: Sequence[Floats]) -> Floats:
    """Stack arrays (k,) as the columns of a matrix."""
    return np.array(values).T.copy()


@dataclass(frozen=True, eq=False)
class Words:
    """All words of n chunks in order; a chunk's title is its sentence 0 and may be empty.

    `numbers` (t,) are word numbers and `capital` (t,) whether each could begin a name; `sentence_start` (s + 1,) are
    offsets into them; `chunk_start` (n + 1,) are offsets into the sentences. By word (v,): `idf` and `frequency`,
    `idf = ln(1 + (n − df + ½)/(df + ½))` as in BM25, and `word_vectors` (v, 256). `sentence_lengths` (s,) are the
    lengths of sentences' vectors, the sums of their words' by `weights`.
    """

    vocabulary: Mapping[str, int]
    numbers: NDArray[np.int32]
    capital: Flags
    sentence_start: Numbers
    chunk_start: Numbers
    frequency: Numbers
    idf: Floats
    stop: Flags
    word_vectors: NDArray[np.int16]
    sentence_lengths: Floats

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Words:
        """Restore words from what `read_words` returns; other arrays are left aside."""
        spelled = arrays["vocabulary"].tobytes().decode().split("\n")
        vocabulary = {word: number for number, word in enumerate(spelled)} if len(arrays["idf"]) else {}
        return cls(vocabulary, *(arrays[field.name] for field in fields(cls)[1:]))

    @cached_property
    def weights(self) -> Floats:
        """The weight of each word of the vocabulary in a sentence, (v,): its idf, 0 for stop words."""
        return on_weight_grid(self.idf * ~self.stop)

    def lengths(self, rows: NDArray[Any]) -> Numbers:
        """Count the words of chunks."""
        begin, end = (self.sentence_start[self.chunk_start[each]] for each in (rows, rows + 1))
        return np.asarray(end - begin)

    def of_sentences(self, sentence: NDArray[Any]) -> tuple[Numbers, Numbers]:
        """Return where the words of sentences begin and end."""
        return self.sentence_start[sentence], self.sentence_start[sentence + 1]


def read_words(chunks: Sequence[Chunk], language: Language = ENGLISH) -> dict[str, NDArray[Any]]:
    """Split and number the words of chunks: the arrays of `Words` by name, the vocabulary as UTF-8 lines."""
    vocabulary: dict[str, int] = {}
    # Arrays: lists of a million passages' words would take half a gigabyte each.
    numbers, capital = array("i"), bytearray()
    sentence_start, chunk_start = array("q", [0]), array("q", [0])
    for chunk in chunks:
        for sentence in (chunk.title, *sentences(chunk.text)):
            words = tokens(sentence) if language.english else unit_tokens(tokens(sentence))
            for word in words:
                numbers.append(vocabulary.setdefault(word.folded, len(vocabulary)))
                capital.append(word.capital)
            sentence_start.append(len(numbers))
        chunk_start.append(len(sentence_start) - 1)
    of_sentences, of_chunks = compact(np.array(sentence_start, np.int64)), np.array(chunk_start, np.int64)
    of_words = np.array(numbers, np.int32)
    frequency = _frequency(of_words, of_sentences[of_chunks], len(vocabulary))
    idf = log(1.0 + (len(chunks) - frequency + 0.5) / (frequency + 0.5))
    stop = np.array([word in language.stop for word in vocabulary], bool)
    vectors = word_vectors(list(vocabulary))
    return {
        "vocabulary": np.frombuffer("\n".join(vocabulary).encode(), np.uint8),
        "numbers": of_words,
        "capital": np.array(capital, np.bool_),
        "sentence_start": of_sentences,
        "chunk_start": of_chunks,
        "frequency": frequency,
        "idf": idf,
        "stop": stop,
        "word_vectors": vectors,
        "sentence_lengths": vector_lengths(vectors, on_weight_grid(idf * ~stop), of_words, of_sentences),
    }


def _frequency(numbers: NDArray[np.int32], start: Numbers, size: int) -> Numbers:
    frequency = np.zeros(size, np.int64)
    for begin in range(0, len(start) - 1, CHUNK_BATCH):
        own = start[begin : begin + CHUNK_BATCH + 1]
        chunk = np.repeat(np.arange(len(own) - 1), np.diff(own))
        pairs = np.unique(chunk * max(size, 1) + numbers[own[0] : own[-1]])
        frequency += np.bincount(pairs % max(size, 1), minlength=size)
    return frequency


@dataclass(frozen=True, eq=False)
class Lookup:
    """`values` (k,) of the numbers `keys` (k,), ascending; every other number has `otherwise`."""

    keys: Numbers
    values: NDArray[Any]
    otherwise: Any = 0

    @classmethod
    def of(cls, keys: NDArray[Any], values: NDArray[Any], otherwise: Any = 0) -> Lookup:
        """Build from distinct keys in any order."""
        order = keys.argsort(kind="stable")
        return cls(keys[order], values[order], otherwise)

    @classmethod
    def marks(cls, keys: Numbers) -> Lookup:
        """Mark distinct ascending rows as True."""
        return cls(keys, np.ones(len(keys), bool), otherwise=False)

    def __getitem__(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Look up the value of each row."""
        if not len(self.keys):
            return np.full(len(rows), self.otherwise, self.values.dtype)
        places = self.keys.searchsorted(rows)  # beyond the last key where a row is: taken as the last
        known = self.keys.take(places, mode="clip") == rows
        return np.where(known, self.values.take(places, mode="clip"), self.otherwise)


# Components are counted in steps of 2⁻¹¹: int16 holds them in half the memory of float32, which sums their products
# exactly and in any order (whole numbers, no partial sum beyond 2²²).
VECTOR_STEPS = 2**11
WEIGHT_GRID = 2.0**8  # of idf: sums of weighted vectors are exact in float64
SENTENCE_BATCH = 4096
WORD_BATCH = 65_536
DIMENSION = WordLlamaEmbedder.dimension


@cache
def _model() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


def word_vectors(words: Sequence[str]) -> NDArray[np.int16]:
    """Embed words, (k, 256), as vectors of length `VECTOR_STEPS`."""
    vectors = np.empty((len(words), DIMENSION), np.int16)
    for begin in range(0, len(words), WORD_BATCH):  # in float32, those of a million passages' words take 2.5 GB
        part = words[begin : begin + WORD_BATCH]
        vectors[begin : begin + len(part)] = _in_steps(_model().embed(part))
    return vectors


def vector_lengths(
    vectors: NDArray[np.int16], weights: NDArray[np.float64], numbers: NDArray[Any], start: NDArray[Any]
) -> NDArray[np.float64]:
    """Compute the lengths of texts' vectors, (s,): sums of their words' vectors (v, 256) by weight (v,).

    `numbers` (t,) are the words of all texts, `start` (s + 1,) offsets into them. Weighing by idf is half of Arora et
    al., A simple but tough-to-beat baseline for sentence embeddings, ICLR 2017.
    """
    parts = [np.zeros(0)]
    for begin in range(0, len(start) - 1, SENTENCE_BATCH):
        ends = start[begin : begin + SENTENCE_BATCH + 1]
        weight = on_weight_grid(weights[numbers[ends[0] : ends[-1]]])
        weighing = np.flatnonzero(weight)  # stop words, some half of all, add nothing
        used, place = np.unique(numbers[ends[0] + weighing], return_inverse=True)
        of_texts = weight[weighing], place, weighing.searchsorted(ends - ends[0])
        counts = csr_array(of_texts, shape=(len(ends) - 1, len(used)))
        parts.append(row_lengths(counts @ vectors[used].astype(np.float64)) / VECTOR_STEPS)
    return np.concatenate(parts)


def weighted_vectors(vectors: NDArray[np.int16], weights: NDArray[np.float64]) -> NDArray[np.int16]:
    """Sum word vectors (w, 256) by weights (m, w), scaled to length `VECTOR_STEPS`, (m, 256)."""
    return _in_steps(unit_rows(on_weight_grid(weights) @ vectors.astype(np.float64)))


def on_weight_grid(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round weights to multiples of 2⁻⁸."""
    return np.asarray(np.rint(weights * WEIGHT_GRID) / WEIGHT_GRID)


def word_cosines(first: NDArray[np.int16], second: NDArray[np.int16]) -> NDArray[np.float32]:
    """Compute cosines of vectors (m, 256) and (n, 256), (m, n), the same on every processor."""
    return np.asarray(first.astype(np.float32) @ second.astype(np.float32).T / VECTOR_STEPS**2)


def _in_steps(vectors: NDArray[np.floating[Any]]) -> NDArray[np.int16]:
    return np.asarray(np.rint(vectors * VECTOR_STEPS), np.int16)


@dataclass(frozen=True, eq=False)
class ListedWords:
    """The s sentences of k chunks, chunk by chunk, a title being its chunk's first, and their t words but stop words.

    Each chunk is read for a question, `of` (k,), ascending. `distinct` (m,) are the word numbers that occur, those of a
    question after those of the one before, ascending; `asked` (m,) is the question of each. `word` (t,) is which of
    them each word is and `owner` (t,) the sentence that it is in, counted here from 0; `sentences` (s,) are the
    corpus's numbers of the sentences; `first` (k + 1,) are offsets of the chunks into them.
    """

    of: Numbers
    distinct: Numbers
    asked: Numbers
    word: Numbers
    owner: Numbers
    sentences: Numbers
    first: Numbers

    @classmethod
    def read(cls, words: Words, chunks: Numbers, of: Numbers) -> ListedWords:
        """Read the words of chunks, each for a question."""
        begin, end = words.chunk_start[chunks], words.chunk_start[chunks + 1]
        sentences, _ = expand_ranges(begin, end)
        first = np.concatenate([[0], (end - begin).cumsum()])
        positions, owner = expand_ranges(*words.of_sentences(sentences))
        numbers = words.numbers[positions]
        kept = np.flatnonzero(~words.stop[numbers])
        owner, size = owner[kept], max(len(words.idf), 1)
        different, word = numbered(of.repeat(end - begin)[owner] * size + numbers[kept])
        asked, number = np.divmod(different, size)
        return cls(of, number, asked, word, owner, sentences, first)

    @cached_property
    def chunk(self) -> Numbers:
        """The chunk of each sentence, (s,), counted here from 0."""
        return np.arange(len(self.first) - 1).repeat(np.diff(self.first))

    @cached_property
    def of_sentence(self) -> Numbers:
        """The question that each sentence is read for, (s,)."""
        return self.of[self.chunk]

    @cached_property
    def in_title(self) -> Flags:
        """Which of the distinct words stand in a title, (m,)."""
        of_title = np.zeros(len(self.sentences), bool)
        of_title[self.first[:-1]] = True
        found = np.zeros(len(self.distinct), bool)
        found[self.word[of_title[self.owner]]] = True
        return found

    def best(self, values: Floats) -> Floats:
        """Find the largest value of each chunk's sentences, (s, …) → (k, …)."""
        return np.asarray(np.maximum.reduceat(values, self.first[:-1]))

    def having(self, chosen: Flags) -> Lists:
        """List the sentences that have each of the v chosen words among the distinct ones (m,), once each."""
        number, hit = chosen.cumsum() - 1, np.flatnonzero(chosen[self.word])
        return lists_of(number[self.word[hit]], self.owner[hit], int(chosen.sum()), len(self.sentences))

    def in_chunks(self, sentences: Lists) -> Lists:
        """List the chunks that have each word, from the sentences that have it."""
        return lists_of(sentences.owner, self.chunk[sentences.values], len(sentences), len(self.first) - 1)


def lists_of(word: Numbers, text: Numbers, words: int, texts: int) -> Lists:
    """List each word's texts, once and in their order, from pairs; an array of all would be nearly all zeros."""
    word, text = np.divmod(distinct(word * max(texts, 1) + text), max(texts, 1))
    return Lists(text, word.searchsorted(np.arange(words + 1)))


RELATIONS_VERSION = "relations-2"  # of what is kept in files
NO_RELATIONS: Mapping[str, Any] = {"source": (), "target": (), "types": (), "weight": ()}


@dataclass(frozen=True, eq=False)
class Relations:
    """k relations between m entities, each from both of its ends, sorted by the first.

    `of_entity` (m + 1,) are offsets of each entity's relations; `other` (k,) is the far end, `strength` (k,) the
    triple's confidence. `word_start` (k + 1,) are offsets into `wording`: the numbers of the relation's words.
    """

    of_entity: Numbers
    other: Numbers
    strength: Floats
    word_start: Numbers
    wording: Numbers

    @classmethod
    def read(cls, record: Mapping[str, Any], graph: Adjacency, words: Words) -> Relations:
        """Read relations from a store's record, without words that no chunk has."""
        rows, row_of = [], {entity: row for row, entity in enumerate(graph.entities)}
        columns = (record[name] for name in ("source", "target", "types", "weight"))
        for source, target, types, strength in zip(*columns, strict=True):
            stated = [kind for kind in types if kind not in RULE_RELATIONS]
            spelled = {unit for kind in stated for word in tokens(kind) for unit in units(word.folded)}
            known = sorted(words.vocabulary[word] for word in spelled if word in words.vocabulary)
            ends = row_of[source], row_of[target]
            rows += [(first, second, strength, known) for first, second in (ends, ends[::-1])]
        rows.sort(key=lambda row: row[:2])
        first = np.array([row[0] for row in rows], np.int64)
        return cls(
            np.searchsorted(first, np.arange(len(graph.entities) + 1)),
            np.array([row[1] for row in rows], np.int64),
            np.array([row[2] for row in rows], np.float64),
            np.cumsum([0, *(len(row[3]) for row in rows)]),
            np.array([number for row in rows for number in row[3]], np.int64),
        )


def relations(batch: Batch, counters: Counters, graph: Adjacency, words: Words) -> Relations | None:
    """Return the relations that triples state, or None; read once per index, charged to each batch."""

    def read() -> Relations | None:
        found = Relations(**batch.index.graph_arrays("hoprank-relations", RELATIONS_VERSION, arrays))
        return found if len(found.other) else None

    def arrays() -> Arrays:
        (record,) = batch.index.store.read(cypher.RELATIONS, usual=list(RULE_RELATIONS)) or [NO_RELATIONS]
        return vars(Relations.read(record, graph, words))

    stated = batch.index.memo.get("relations", read)
    counters.round_trips += 1
    counters.rows += len(stated.other) // 2 if stated else 0
    return stated
