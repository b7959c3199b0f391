"""Words of a corpus that mean nearly the same: "born" and "birth", "located" and "situated"."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.models import WordLlamaEmbedder
from hopbench.retrieval.index.memo import Memo
from hopbench.retrieval.strategies.hoprank.words import Words
from hopbench.retrieval.support.arithmetic import on_grid

NEAREST = 4
LEAST_COSINE = 0.4  # below it a word's neighbours have little to do with it
LEAST_CHUNKS = 3  # that have the word: what is rarer is mostly a name, a number or a slip
MOST_WORDS = 20_000
DECIMALS = 6
Vectors64 = NDArray[np.float64]


class NearWords:
    """The corpus's own words by WordLlama's static vectors, whatever the embedder of the index."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._known = Memo(1 << 16)
        self._embedder = WordLlamaEmbedder()

    def near(self, word: str) -> Sequence[str]:
        """Up to `NEAREST` words with a cosine of `LEAST_COSINE` or more, nearest first; none for a rare word."""
        return self._known.get(word, lambda: self._near(word))

    def _near(self, word: str) -> Sequence[str]:
        row = self._row.get(word)
        if row is None:
            return ()
        cosines = np.round(self._vectors @ self._vectors[row], DECIMALS)  # exact products: see `on_grid`
        cosines[row] = -1.0
        near = np.flatnonzero(cosines >= LEAST_COSINE)
        order = near[np.argsort(-cosines[near], kind="stable")][:NEAREST]
        return tuple(self._vocabulary[other] for other in order)

    def closeness(self, words: Sequence[str], chunk: int, content: str) -> list[float]:
        """The cosine of each word with a chunk's content: how much the word tells what the chunk is about."""
        about = self._known.get(("chunk", chunk), lambda: self._embedded([content])[0])
        return [round(float(self._vector(word) @ about), DECIMALS) for word in words]

    def _vector(self, word: str) -> Vectors64:
        row = self._row.get(word)
        return (
            self._vectors[row]
            if row is not None
            else self._known.get(("word", word), lambda: self._embedded([word])[0])
        )

    def _embedded(self, texts: Sequence[str]) -> Vectors64:
        return on_grid(self._embedder.embed(texts)).astype(np.float64)

    @cached_property
    def _vocabulary(self) -> list[str]:
        """Common words in lower case, the most frequent first."""
        size = len(self._words.vocabulary)
        capitals = np.bincount(self._words.numbers, weights=self._words.capital, minlength=size)
        all_ = np.bincount(self._words.numbers, minlength=size)
        usable = (self._words.frequency >= LEAST_CHUNKS) & (2 * capitals < all_) & ~self._words.stop
        words = [
            (-int(self._words.frequency[number]), word)
            for word, number in self._words.vocabulary.items()
            if usable[number] and len(word) > 2 and word.isalpha()
        ]
        return [word for _, word in sorted(words)[:MOST_WORDS]]

    @cached_property
    def _row(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self._vocabulary)}

    @cached_property
    def _vectors(self) -> Vectors64:
        return self._embedded(self._vocabulary)
