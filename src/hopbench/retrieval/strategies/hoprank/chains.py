"""Candidates three by three: what of the question they cover together, and how surely words link them.

Evidence of three hops and more is a chain of passages: the last one is known by what the two before it say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from hopbench.retrieval.strategies.hoprank.question import ReadQuestion
from hopbench.retrieval.strategies.hoprank.word_links import WordLinks
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers


@dataclass(frozen=True, eq=False)
class Chains:
    """Each of k candidates with the best of all pairs of partners, a partner with itself among them, (…, k) both.

    A chain counts how close all three come to the question together, by idf shares, times the better of the
    candidate's links to the two; then `onward` times the link between the two, and `sure` times the product of their σ.
    A link is the share of the title of one in the other, or what their rare words count, at most 1, times σ.
    """

    onward: Floats
    sure: Floats

    @classmethod
    def of(cls, questions: Sequence[ReadQuestion], close: Floats, links: WordLinks, sure: Floats) -> Chains:
        """Chains of the candidates of lists, each of a question.

        `close` (…, k, w) is how close they come to the question's words; `sure` (…, p) is σ of the partners.
        """
        link = np.maximum(np.maximum(links.title, links.holds), np.minimum(links.rare, 1.0)) * sure[..., None, :]
        found = np.empty((2, len(questions), close.shape[-2]))
        axes = close.ndim - 2  # those of lists
        lists = (values.reshape(len(questions), *values.shape[axes:]) for values in (close, link, sure))
        for number, (question, near, between, surely) in enumerate(zip(questions, *lists, strict=True)):
            found[:, number] = _best(question, near[:, : len(question.words)], between, surely)
        return cls(*found.reshape(2, *close.shape[:-1]))


def _best(question: ReadQuestion, close: Floats, link: Floats, sure: Floats) -> tuple[Floats, Floats]:
    """The best chains of the candidates of one list, (k,) both, whose links with partners are (k, p)."""
    one, other = _two_of(len(sure))
    links = link.T.copy()  # with pairs as rows, which are copied faster than columns
    linked = question.together(np.maximum(close.take(one, axis=0), close.take(other, axis=0)), close)
    linked *= np.maximum(links.take(one, axis=0), links.take(other, axis=0))
    onward, both = np.maximum(link[one, other], link[other, one]), sure[one] * sure[other]
    return (linked * onward[:, None]).max(axis=0, initial=0.0), (linked * both[:, None]).max(axis=0, initial=0.0)


@cache
def _two_of(count: int) -> tuple[Numbers, Numbers]:
    """The first and the second of each pair of partners, a partner with itself among them."""
    return np.triu_indices(count)
