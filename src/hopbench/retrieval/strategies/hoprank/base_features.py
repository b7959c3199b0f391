"""What a chunk says by itself: twelve numbers, most of them in 0..1, each a function of facts about k chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hopbench.retrieval.strategies.hoprank.question import TINY, in_parts
from hopbench.retrieval.strategies.hoprank.questions import Questions, parts_of, products
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers
from hopbench.retrieval.support.arithmetic import shares


@dataclass(frozen=True, eq=False)
class Scales:
    """What the scores of q questions are measured against, (q,).

    The best BM25, the first and last cosine of the pool, the largest mass.
    """

    bm25: Floats
    first_cosine: Floats
    last_cosine: Floats
    mass: Floats


@dataclass(frozen=True, eq=False)
class ChunkFacts:
    """Facts about k chunks, all (k,) but `covered` (k, w): which of the words of the question it is `of` each contains.

    `together` is for each question, (w, w), in how many chunks of its pool two of its words stand together.
    """

    questions: Questions
    of: Numbers
    scales: Scales
    bm25: Floats
    cosine: Floats
    mass: Floats
    link: Floats
    covered: Flags
    best_sentence: Floats
    title_found: Floats
    together: Sequence[Floats]


def bm25(facts: ChunkFacts) -> Floats:
    """BM25 / the best BM25."""
    return facts.bm25 / (facts.scales.bm25 + TINY)[facts.of]


def dense(facts: ChunkFacts) -> Floats:
    """(cosine − c₅₀)/(c₁ − c₅₀), clipped to −1..1; c₁ and c₅₀ are the pool's first and last cosine."""
    first, last = facts.scales.first_cosine[facts.of], facts.scales.last_cosine[facts.of]
    return np.clip((facts.cosine - last) / (first - last + TINY), -1.0, 1.0)


def link(facts: ChunkFacts) -> Floats:
    """idf share of the question's words that name its title × the linker's trust / √(its chunks; 1 if qualified)."""
    return facts.link


def title_found(facts: ChunkFacts) -> Floats:
    """idf share of the title's words that stand in the question."""
    return facts.title_found


def coverage(facts: ChunkFacts) -> Floats:
    """idf share of the question's words that stand in the chunk."""
    return facts.questions.share(facts.covered, facts.of)


def sentence(facts: ChunkFacts) -> Floats:
    """The same for the chunk's best sentence; the title is one."""
    return facts.best_sentence


def walk(facts: ChunkFacts) -> Floats:
    """√(the walk's mass / its largest mass)."""
    return np.sqrt(facts.mass / np.where(facts.scales.mass > 0, facts.scales.mass, 1.0)[facts.of])


def open_coverage(facts: ChunkFacts) -> Floats:
    """idf share of the words outside linked entities that stand in the chunk."""
    return facts.questions.open_share(facts.covered, facts.of)


def rare(facts: ChunkFacts) -> Floats:
    """1/df of the rarest question word in the chunk, 0 without any."""
    inverse = 1.0 / np.maximum(facts.questions.frequency, 1)
    parts = in_parts(*facts.covered.shape)
    best = [np.max(facts.covered[part] * inverse.take(facts.of[part], axis=0), axis=1, initial=0.0) for part in parts]
    return np.concatenate([np.zeros(0), *best])


def capitals(facts: ChunkFacts) -> Floats:
    """idf share of the question's capitalised words that stand in the chunk."""
    return facts.questions.capital_share(facts.covered, facts.of)


def rarities(facts: ChunkFacts) -> Floats:
    """Σ 1/df of the question words in the chunk, at most 2."""
    frequency = facts.questions.frequency
    inverse = shares((frequency > 0).astype(np.float64), np.maximum(frequency, 1))
    return np.minimum(products(facts.covered, inverse, facts.of), 2.0)


def pair(facts: ChunkFacts) -> Floats:
    """1/how many chunks of the pool have both of the rarest pair in the chunk, of question words with idf > 3."""
    best, asking = np.zeros(len(facts.of)), parts_of(facts.of, len(facts.questions))
    for question, together, rows in zip(facts.questions, facts.together, asking, strict=True):
        first, second = question.telling_pairs
        if not len(first):
            continue
        rarity = 1.0 / np.maximum(together[first, second], 1.0)
        rarest = (-rarity).argsort(kind="stable")  # so that the first pair that a chunk has is its best
        first, second, rarity = first[rarest], second[rarest], rarity[rarest]
        covered = facts.covered[rows]
        for part in in_parts(len(covered), len(first)):
            both = covered[part].take(first, axis=1) & covered[part].take(second, axis=1)
            found = both.argmax(axis=1)
            best[rows][part] = np.where(both[np.arange(len(both)), found], rarity[found], 0.0)
    return best


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
