"""The corpus as one array of word numbers, with offsets of sentences and chunks."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.arithmetic import log
from hopbench.retrieval.support.csr import compact
from hopbench.retrieval.text import ENGLISH, Language, sentences, tokens, unit_tokens
from hopbench.retrieval.types import Chunk

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
PART = 50_000  # chunks whose words are counted at a time


def grouped(values: NDArray[Any]) -> tuple[Numbers, Numbers, Numbers]:
    """The distinct values, sorted; then the places of all by value, and which of the distinct each of these has.

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
    """The distinct values, sorted, and which of them each is: `np.unique` with its inverse, for such as `grouped`."""
    different, places, group = grouped(values)
    which = np.empty(len(values), np.int64)
    which[places] = group
    return different, which


def columns(values: Sequence[Floats]) -> Floats:
    """Arrays (k,) as the columns of a matrix."""
    return np.array(values).T.copy()


@dataclass(frozen=True, eq=False)
class Words:
    """All words of n chunks in order; a chunk's title is its sentence 0 and may be empty.

    `numbers` (t,) are word numbers and `capital` (t,) whether each could begin a name; `sentence_start` (s + 1,) are
    offsets into them; `chunk_start` (n + 1,) are offsets into the sentences. `idf` and `frequency` (v,) are by word:
    `idf = ln(1 + (n − df + ½)/(df + ½))`, as in BM25.
    """

    vocabulary: Mapping[str, int]
    numbers: NDArray[np.int32]
    capital: Flags
    sentence_start: Numbers
    chunk_start: Numbers
    frequency: Numbers
    idf: Floats
    stop: Flags

    _ARRAYS: ClassVar[Sequence[str]] = (
        "numbers",
        "capital",
        "sentence_start",
        "chunk_start",
        "frequency",
        "idf",
        "stop",
    )

    @classmethod
    def read(cls, chunks: Sequence[Chunk], language: Language = ENGLISH) -> Words:
        """Split and number the words of chunks."""
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
        starts = compact(np.array(sentence_start, np.int64)), np.array(chunk_start, np.int64)
        of_words = np.array(numbers, np.int32)
        frequency = _frequency(of_words, starts[0][starts[1]], len(vocabulary))
        return cls(
            vocabulary,
            of_words,
            np.array(capital, np.bool_),
            *starts,
            frequency,
            log(1.0 + (len(chunks) - frequency + 0.5) / (frequency + 0.5)),
            np.array([word in language.stop for word in vocabulary], bool),
        )

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Words:
        """The words whose `arrays` these are."""
        spelled = arrays["vocabulary"].tobytes().decode().split("\n")
        vocabulary = {word: number for number, word in enumerate(spelled)} if len(arrays["idf"]) else {}
        return cls(vocabulary, **{name: arrays[name] for name in cls._ARRAYS})

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The words as arrays by name, the vocabulary as UTF-8 lines."""
        spelled = np.frombuffer("\n".join(self.vocabulary).encode(), np.uint8)
        return {"vocabulary": spelled} | {name: getattr(self, name) for name in self._ARRAYS}

    def lengths(self, rows: NDArray[Any]) -> Numbers:
        """How many words chunks have."""
        begin, end = (self.sentence_start[self.chunk_start[each]] for each in (rows, rows + 1))
        return np.asarray(end - begin)

    def of_titles(self, rows: NDArray[Any]) -> tuple[Numbers, Numbers]:
        """Where the words of the chunks' titles begin and end."""
        return self.of_sentences(self.chunk_start[rows])

    def of_sentences(self, sentence: NDArray[Any]) -> tuple[Numbers, Numbers]:
        """Where the words of sentences begin and end."""
        return self.sentence_start[sentence], self.sentence_start[sentence + 1]

    def sentence_of(self, position: NDArray[Any]) -> Numbers:
        """The sentence of the word at each position."""
        return np.searchsorted(self.sentence_start, position, "right") - 1


def _frequency(numbers: NDArray[np.int32], start: Numbers, size: int) -> Numbers:
    """The number of chunks that contain each word."""
    frequency = np.zeros(size, np.int64)
    for begin in range(0, len(start) - 1, PART):
        own = start[begin : begin + PART + 1]
        chunk = np.repeat(np.arange(len(own) - 1), np.diff(own))
        found = np.unique(chunk * max(size, 1) + numbers[own[0] : own[-1]])
        frequency += np.bincount(found % max(size, 1), minlength=size)
    return frequency
