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


NONE, SOME, ALL = 0, 1, 2


class Found(NamedTuple):
    """How much of a question's evidence each of the two searches has in its first ten: NONE, SOME or ALL."""

    bm25: int
    vector: int


class Searched(NamedTuple):
    """A wording, what finds its evidence, and the first ten chunks of BM25."""

    wording: Wording
    found: Found
    nearest: tuple[int, ...]


Target = Mapping[Found, float]

# Measured on the real questions of the tuning sets (docs/synthesize.md), whose types agree in this but for the share of
# two-hop questions of which BM25 finds both passages: .14 where there is little to quote, .34 and .67 where there is
# more. Fewer are found here: what every search finds tells labels apart the least.
FOUND_LEAST, FOUND_MOST = 0.05, 0.50
IF_FOUND: Target = {Found(ALL, ALL): 0.68, Found(ALL, SOME): 0.30, Found(ALL, NONE): 0.02}
IF_NOT: Target = {
    Found(SOME, ALL): 0.12,
    Found(SOME, SOME): 0.72,
    Found(SOME, NONE): 0.13,
    Found(NONE, SOME): 0.02,
    Found(NONE, NONE): 0.01,
}
CHAIN: Target = {Found(ALL, SOME): 0.05, Found(SOME, SOME): 0.70, Found(SOME, NONE): 0.20, Found(NONE, SOME): 0.05}
COMPARISON: Target = {Found(ALL, ALL): 0.72, Found(ALL, SOME): 0.21, Found(SOME, ALL): 0.03, Found(SOME, SOME): 0.04}
BRIDGE_COMPARISON: Target = {Found(ALL, SOME): 0.02, Found(SOME, SOME): 0.85, Found(SOME, NONE): 0.13}


def targets(room: float) -> Mapping[str, Target]:
    """Type → how often which search is to find how much of the evidence; `room` is the corpus's (`Evidence.room`)."""
    found = FOUND_LEAST + room * (FOUND_MOST - FOUND_LEAST)
    both = {cell: share * found for cell, share in IF_FOUND.items()}
    not_both = {cell: share * (1 - found) for cell, share in IF_NOT.items()}
    two_hops = {**both, **not_both}
    return {
        "bridge": two_hops,
        "compositional": CHAIN,
        "intersection": two_hops,
        "comparison": COMPARISON,
        "bridge-comparison": BRIDGE_COMPARISON,
    }


def searched(index: Index, wordings: Sequence[Wording]) -> list[Searched]:
    """Search for each wording by BM25 and by vectors; alike texts, of little that is quoted, are searched for once."""
    texts = list(dict.fromkeys(wording.text for wording in wordings))
    tops: dict[str, tuple[TopRows, TopRows]] = {}
    for batch in batches(index, [Question(str(number), text) for number, text in enumerate(texts)]):
        for question, lexical, dense in zip(batch.questions, batch.lexical, batch.dense, strict=True):
            tops[question.text] = lexical, dense
    return [_searched(wording, *tops[wording.text]) for wording in wordings]


def _searched(wording: Wording, lexical: TopRows, dense: TopRows) -> Searched:
    found = Found(_level(lexical, wording), _level(dense, wording))
    return Searched(wording, found, tuple(map(int, lexical.rows[:DEPTH])))


def _level(top: TopRows, wording: Wording) -> int:
    gold = set(wording.draft.gold)
    found = len(gold & set(map(int, top.rows[:DEPTH])))
    return ALL if found == len(gold) else SOME if found else NONE


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
        return self._target.get(found, 0.0) * self._count - self._taken[found]

    def best(self, wordings: Sequence[Searched], least: float) -> Searched | None:
        """The wording of what is lacking most, if it lacks more than `least`."""
        chosen = max(wordings, key=lambda each: self.lack(each.found), default=None)
        return chosen if chosen is not None and self.lack(chosen.found) > least else None

    def take(self, found: Found) -> None:
        """Count a question."""
        self._taken[found] += 1
