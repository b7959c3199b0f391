"""What a chunk says by itself: twelve numbers, most of them in 0..1, each a function of facts about k chunks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hopbench.retrieval.strategies.hoprank.question import TINY, ReadQuestion, in_parts
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats
from hopbench.retrieval.support.arithmetic import shares, summed


@dataclass(frozen=True)
class Scales:
    """What scores are measured against: the best BM25, the first and last cosine of the pool, the largest mass."""

    bm25: float
    first_cosine: float
    last_cosine: float
    mass: float


@dataclass(frozen=True, eq=False)
class ChunkFacts:
    """Facts about k chunks, all (k,) but `covered` (k, w): which question words each contains.

    `together` (w, w) is in how many chunks of the pool two of the question's words stand together.
    """

    question: ReadQuestion
    scales: Scales
    bm25: Floats
    cosine: Floats
    mass: Floats
    link: Floats
    covered: Flags
    best_sentence: Floats
    title_found: Floats
    together: Floats


def bm25(facts: ChunkFacts) -> Floats:
    """BM25 / the best BM25."""
    return facts.bm25 / (facts.scales.bm25 + TINY)


def dense(facts: ChunkFacts) -> Floats:
    """(cosine − c₅₀)/(c₁ − c₅₀), clipped to −1..1; c₁ and c₅₀ are the pool's first and last cosine."""
    first, last = facts.scales.first_cosine, facts.scales.last_cosine
    return np.clip((facts.cosine - last) / (first - last + TINY), -1.0, 1.0)


def link(facts: ChunkFacts) -> Floats:
    """idf share of the question's words that name its title × the linker's trust / √(its chunks; 1 if qualified)."""
    return facts.link


def title_found(facts: ChunkFacts) -> Floats:
    """idf share of the title's words that stand in the question."""
    return facts.title_found


def coverage(facts: ChunkFacts) -> Floats:
    """idf share of the question's words that stand in the chunk."""
    return facts.question.share(facts.covered)


def sentence(facts: ChunkFacts) -> Floats:
    """The same for the chunk's best sentence; the title is one."""
    return facts.best_sentence


def walk(facts: ChunkFacts) -> Floats:
    """√(the walk's mass / its largest mass)."""
    return np.sqrt(facts.mass / (facts.scales.mass or 1.0))


def open_coverage(facts: ChunkFacts) -> Floats:
    """idf share of the words outside linked entities that stand in the chunk."""
    return facts.question.open_share(facts.covered)


def rare(facts: ChunkFacts) -> Floats:
    """1/df of the rarest question word in the chunk, 0 without any."""
    inverse = 1.0 / np.maximum(facts.question.frequency, 1)
    return np.asarray(np.max(facts.covered * inverse, axis=1, initial=0.0))


def capitals(facts: ChunkFacts) -> Floats:
    """idf share of the question's capitalised words that stand in the chunk."""
    idf = facts.question.idf * facts.question.capital
    return np.asarray(facts.covered @ shares(idf, summed(idf) + TINY))


def rarities(facts: ChunkFacts) -> Floats:
    """Σ 1/df of the question words in the chunk, at most 2."""
    frequency = facts.question.frequency
    inverse = shares((frequency > 0).astype(np.float64), np.maximum(frequency, 1))
    return np.asarray(np.minimum(facts.covered @ inverse, 2.0))


def pair(facts: ChunkFacts) -> Floats:
    """1/how many chunks of the pool have both of the rarest pair in the chunk, of question words with idf > 3."""
    first, second = facts.question.telling_pairs
    rarity = 1.0 / np.maximum(facts.together[first, second], 1.0)
    parts = [facts.covered[part] for part in in_parts(len(facts.covered), len(first))]
    best = [np.max((part[:, first] & part[:, second]) * rarity, axis=1, initial=0.0) for part in parts]
    return np.concatenate([np.zeros(0), *best])


BASE_FEATURES: tuple[Callable[[ChunkFacts], Floats], ...] = (
    bm25,
    dense,
    link,
    title_found,
    coverage,
    sentence,
    walk,
    open_coverage,
    rare,
    capitals,
    rarities,
    pair,
)
