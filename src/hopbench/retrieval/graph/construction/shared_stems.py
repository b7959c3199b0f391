"""The stems that two chunks share, for many pairs at once: the tags of SIMILAR_TO edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.neighbours import Indices
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

TAGS = 8


@dataclass(frozen=True)
class SharedStems:
    """The distinct stems of n chunks by their ranks in `stems`, the most salient first.

    Those of chunk i are `ranks[begins[i] : begins[i + 1]]`: a tenth of the memory of sets.
    """

    stems: Sequence[str]
    begins: NDArray[np.int64]
    ranks: NDArray[np.int32]

    @classmethod
    def of(cls, chunks: Sequence[Chunk], tagger: Tagger) -> SharedStems:
        """The stems of the chunks' contents, ordered as `Tagger.top` orders them."""
        number_of: dict[str, int] = {}
        numbers = []
        for chunk in chunks:
            own = {number_of.setdefault(stem, len(number_of)) for stem in tagger.stems(chunk.content)}
            numbers.append(np.fromiter(own, np.int32, len(own)))
        stems = sorted(number_of, key=lambda stem: (-tagger.idf(stem), stem))
        rank_of = np.empty(len(stems), np.int32)
        rank_of[[number_of[stem] for stem in stems]] = np.arange(len(stems), dtype=np.int32)
        begins = np.cumsum([0, *map(len, numbers)])
        return cls(stems, begins, rank_of[np.concatenate([np.zeros(0, np.int32), *numbers])])

    def shared(self, first: Indices, second: Indices) -> list[list[str]]:
        """The `TAGS` most salient stems that both chunks of each pair have, sorted."""
        keys = np.sort(np.concatenate([self._keys(first), self._keys(second)]))
        pairs, ranks = np.divmod(keys[1:][keys[1:] == keys[:-1]], max(len(self.stems), 1))
        chosen = np.arange(len(pairs)) - np.searchsorted(pairs, pairs) < TAGS
        tags: list[list[str]] = [[] for _ in first]
        for pair, rank in zip(pairs[chosen].tolist(), ranks[chosen].tolist(), strict=True):
            tags[pair].append(self.stems[rank])
        return [sorted(own) for own in tags]

    def _keys(self, chunks: Indices) -> NDArray[np.int64]:
        """The stems of some chunks in a row: position in `chunks` · number of stems + rank."""
        counts = self.begins[chunks + 1] - self.begins[chunks]
        positions = np.repeat(np.arange(len(chunks)), counts)
        within = np.arange(len(positions)) - np.repeat(np.cumsum(counts) - counts, counts)
        ranks = self.ranks[self.begins[chunks][positions] + within]
        return np.asarray(positions * len(self.stems) + ranks, np.int64)
