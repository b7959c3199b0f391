"""An embedder behind the cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from hopbench.retrieval.embedding.base import Embedder, Vectors
from hopbench.retrieval.embedding.cache import DamagedCache, EmbeddingCache, text_key
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.support.errors import InputError

# Texts embedded between two commits: what a killed process loses at most. Their keys lie anywhere in a large file, so
# that each key costs a commit a page, written twice: fast models get larger batches, up to about a second's work.
LEAST_TEXTS, MOST_TEXTS = 256, 1 << 14
SHORT_SECONDS = 0.5  # a batch that takes less is followed by one of twice its size
# So many texts, this short on average (characters), WordLlama embeds in 10 µs each, and the cache finds them in 5: in
# 45 where its file has 4 GB and is not in memory; to store one takes 130.
MANY_TEXTS, SHORT_TEXT = 1024, 64
T = TypeVar("T")


@dataclass(frozen=True)
class CachedEmbedder:
    """`inner` behind the cache: it is asked only for texts that the cache lacks, each once.

    (Two processes that need the same new text in the same moment both compute it; both return the one stored first.)
    Many short texts in one call are neither looked up nor stored where `quick` says that `inner` computes them as fast,
    the same bytes each time.
    """

    inner: Embedder
    cache: EmbeddingCache
    quick: bool = False

    @property
    def name(self) -> str:
        """The inner embedder's: the cache changes no vector."""
        return self.inner.name

    @property
    def synonym_threshold(self) -> float:
        """The inner embedder's."""
        return self.inner.synonym_threshold

    @property
    def dimension(self) -> int:
        """As stored, so that an endpoint need not be asked; else the inner embedder's."""
        return self._healed(self._dimension)

    def _dimension(self) -> int:
        with self.cache.open(self.name) as table:
            return table.dimension() or self.inner.dimension

    def _healed(self, work: Callable[[], T]) -> T:
        """`work`, after healing the cache once where it turns out to be damaged."""
        try:
            return work()
        except DamagedCache:
            self.cache.heal(self.name)
            return work()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """As `Embedder.embed`; new vectors are stored every 256 texts or every second: an interrupted run loses few."""
        if isinstance(texts, str):
            raise TypeError("embed() takes a sequence of texts, not one text: pass [text]")
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        if self.quick and len(texts) >= MANY_TEXTS and sum(map(len, texts)) <= SHORT_TEXT * len(texts):
            return self._computed(texts)
        return self._healed(lambda: self._embedded(texts))

    def _computed(self, texts: Sequence[str]) -> Vectors:
        """Some texts at a time: what embedding them takes of memory beside the vectors is as much again and more."""
        vectors = np.empty((len(texts), self.inner.dimension), dtype=np.float32)
        for start in range(0, len(texts), MOST_TEXTS):
            vectors[start : start + MOST_TEXTS] = on_grid(self.inner.embed(texts[start : start + MOST_TEXTS]))
        return vectors

    def _embedded(self, texts: Sequence[str]) -> Vectors:
        keys = [text_key(text) for text in texts]
        text_of = dict(zip(keys, texts, strict=True))
        unique = list(text_of)
        with self.cache.open(self.name) as table:
            vectors, stored = table.read(unique)
            missing = [key for key, is_stored in zip(unique, stored, strict=True) if not is_stored]
            for batch in _batches(missing):
                table.write(batch, on_grid(self.inner.embed([text_of[key] for key in batch])))
            if missing:  # read back, so that this answer and every later one have the same bytes
                vectors, stored = table.read(unique)
        if not stored.all():
            raise InputError(f"embedding cache {self.cache.file(self.name)} lost vectors while in use: run it again")
        vectors = on_grid(vectors)  # an older version may have stored them as they came
        if len(unique) == len(keys):
            return vectors
        row_of = {key: row for row, key in enumerate(unique)}
        return vectors[[row_of[key] for key in keys]]


def _batches(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    """Batches of `LEAST_TEXTS`, and larger ones where what is done with them takes little time."""
    start, size = 0, LEAST_TEXTS
    while start < len(keys):
        begun = time.monotonic()
        yield keys[start : start + size]
        start += size
        if time.monotonic() - begun < SHORT_SECONDS:
            size = min(2 * size, MOST_TEXTS)
