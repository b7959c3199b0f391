"""Candidates three by three: what of the question they cover together, and how surely words link them.

Evidence of three hops and more is a chain of passages: the last one is known by what the two before it say.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from hopbench.retrieval.strategies.hoprank.question import ReadQuestion
from hopbench.retrieval.strategies.hoprank.word_links import WordLinks
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers


@dataclass(frozen=True, eq=False)
class Chains:
    """Each of k candidates with r pairs of partners, a partner with itself among them.

    `linked` (k, r) is how close all three come to the question together, by idf shares, times the better of the
    candidate's links to the two; `onward` (r,) is the link between the two, and `sure` (r,) the product of their σ. A
    link is the share of the title of one in the other, or what their rare words count, at most 1, times σ.
    """

    linked: Floats
    onward: Floats
    sure: Floats

    @classmethod
    def of(cls, question: ReadQuestion, close: Floats, links: WordLinks, sure: Floats) -> Chains:
        """Chains of candidates by how close they come to the question's words, `close` (k, w); `sure` (p,) is σ."""
        link = np.maximum(np.maximum(links.title, links.holds), np.minimum(links.rare, 1.0)) * sure
        one, other = _two_of(len(sure))
        together = question.together(close, np.maximum(close[one], close[other]))
        return cls(
            linked=together * np.maximum(link[:, one], link[:, other]),
            onward=np.maximum(link[one, other], link[other, one]),
            sure=sure[one] * sure[other],
        )


@cache
def _two_of(count: int) -> tuple[Numbers, Numbers]:
    """The first and the second of each pair of partners, a partner with itself among them."""
    return np.triu_indices(count)
