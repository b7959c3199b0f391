"""Chooses wordings so that BM25 and vector search find the evidence about as seldom as on real questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hopbench.eval.synthesize.phrase import Wording
from hopbench.eval.trials.trial import batches
from hopbench.retrieval.index import Index
from hopbench.retrieval.search.exact import TopRows
from hopbench.retrieval.types import Question

DEPTH = 10  # of all_gold@10


class Found(NamedTuple):
    """Which of the two searches has all of a question's evidence in its first ten."""

    bm25: bool
    vector: bool


class Searched(NamedTuple):
    """A wording, what finds its evidence, and the first ten chunks of BM25."""

    wording: Wording
    found: Found
    nearest: tuple[int, ...]


BOTH, ONLY_BM25, ONLY_VECTOR, NEITHER = Found(True, True), Found(True, False), Found(False, True), Found(False, False)

Target = Mapping[Found, float]

# Measured on the real questions of the tuning sets (docs/synthesize.md). Where passages are short, BM25 finds both
# passages of few two-hop questions, since a question can quote little. Where they are long and say of what kind a thing
# is, of many; where they are parts of articles, whose questions are about places and times, of few.
SHORT, LONG = 43, 83  # words of the median chunk, its title among them
FOUND_SHORT, FOUND_LONG = 0.10, 0.55  # share of two-hop questions whose evidence BM25 finds
ALL_ALIKE = 0.25
FOUND_BOTH, FOUND_VECTOR = 0.7, 0.1  # of these, those that vector search finds too; and those that it alone finds
CHAIN: Target = {BOTH: 0.04, ONLY_BM25: 0.04, ONLY_VECTOR: 0.01, NEITHER: 0.91}
COMPARISON: Target = {BOTH: 0.74, ONLY_BM25: 0.20, ONLY_VECTOR: 0.01, NEITHER: 0.05}
BRIDGE_COMPARISON: Target = {BOTH: 0.0, ONLY_BM25: 0.02, ONLY_VECTOR: 0.0, NEITHER: 0.98}


def targets(words: float, alike: float) -> Mapping[str, Target]:
    """Type → how often which search is to find the evidence.

    `words` is the length of the median chunk; `alike` the share of chunks with a kind beyond `ONE_KIND`.
    """
    place = min(max((words - SHORT) / (LONG - SHORT), 0.0), 1.0)
    found = FOUND_SHORT + place * place * min(alike / ALL_ALIKE, 1.0) * (FOUND_LONG - FOUND_SHORT)
    two_hops = {
        BOTH: FOUND_BOTH * found,
        ONLY_BM25: (1 - FOUND_BOTH) * found,
        ONLY_VECTOR: FOUND_VECTOR * found,
        NEITHER: 1 - (1 + FOUND_VECTOR) * found,
    }
    return {
        "bridge": two_hops,
        "compositional": CHAIN,
        "intersection": two_hops,
        "comparison": COMPARISON,
        "bridge-comparison": BRIDGE_COMPARISON,
    }


def searched(index: Index, wordings: Sequence[Wording]) -> list[Searched]:
    """Search for each wording by BM25 and by vectors."""
    results: list[Searched] = []
    questions = [Question(str(number), wording.text) for number, wording in enumerate(wordings)]
    for batch in batches(index, questions):
        part = wordings[len(results) : len(results) + len(batch.questions)]
        for wording, lexical, dense in zip(part, batch.lexical, batch.dense, strict=True):
            found = Found(_has(lexical, wording), _has(dense, wording))
            results.append(Searched(wording, found, tuple(map(int, lexical.rows[:DEPTH]))))
    return results


def _has(top: TopRows, wording: Wording) -> bool:
    return set(wording.draft.gold) <= set(map(int, top.rows[:DEPTH]))


class Quota:
    """How many questions of a type are still wanted, by which search finds their evidence."""

    def __init__(self, target: Target, count: int) -> None:
        self._target, self._count = target, count
        self._taken: Counter[Found] = Counter()

    @property
    def missing(self) -> int:
        """How many questions are still wanted."""
        return self._count - self._taken.total()

    def lack(self, found: Found) -> float:
        """How far those so found are below their share, in questions."""
        return self._target[found] * self._count - self._taken[found]

    def best(self, wordings: Sequence[Searched], least: float) -> Searched | None:
        """The wording of what is lacking most, if it lacks more than `least`."""
        chosen = max(wordings, key=lambda each: self.lack(each.found), default=None)
        return chosen if chosen is not None and self.lack(chosen.found) > least else None

    def take(self, found: Found) -> None:
        """Count a question."""
        self._taken[found] += 1
