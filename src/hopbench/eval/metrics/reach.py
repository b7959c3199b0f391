"""reach@h: what a graph lets any strategy find from given seeds within h expansion steps.

One step from a passage is SIMILAR_TO or an edge of documents (LINKS_TO, NEXT, PART_OF, either way), or
passage–entity–passage (a shared entity), or passage–entity–entity–passage (RELATED_TO between). In matrices, with M the
passage × entity mentions, R the entity × entity relations and S the edges between passages, one step is
S ∪ M·Mᵀ ∪ M·R·Mᵀ. That n × n product is never formed: hub entities would make it dense. Sets of reached nodes are
multiplied by the factors one after the other, 64 questions at once, one bit each of a 64-bit word per node, so a step
costs the number of edges, however much is reached already (multi-source BFS, Then et al., VLDB 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from hopbench.eval.metrics.base import FloatArray
from hopbench.eval.metrics.built_in import MAX_HOPS
from hopbench.retrieval.support.errors import InputError, ParameterError

Words: TypeAlias = npt.NDArray[np.uint64]
Rows: TypeAlias = "sparse.csr_array[Any, tuple[int, int]]"

QUESTIONS_PER_WORD = 64


@dataclass(frozen=True)
class ExpansionFactors:
    """The graph as boolean CSR factors over n passages and m entities; a factor is None if its edges are left out.

    `mentions` (n × m) is MENTIONED_IN, `relations` (m × m) RELATED_TO, `similar` (n × n) has all edges between
    passages. Relations and edges between passages must hold both directions (`make` sees to that). Where passages are
    split into chunks, a row stands for the passage: its chunks' rows united.
    """

    passages: int
    mentions: Rows | None = None
    relations: Rows | None = None
    similar: Rows | None = None

    @classmethod
    def make(
        cls, passages: int, mentions: Rows | None = None, relations: Rows | None = None, similar: Rows | None = None
    ) -> ExpansionFactors:
        """Make factors from CSR arrays of any number type (non-zero = edge): shapes checked, reverse edges added."""
        entities = None if mentions is None else mentions.shape[1]
        given: list[Rows | None] = []
        for name, matrix, shape in (
            ("mentions", mentions, (passages, entities)),
            ("relations", relations, (entities, entities)),
            ("similar", similar, (passages, passages)),
        ):
            if matrix is not None and tuple(matrix.shape) != shape:
                raise InputError(f"{name} has shape {matrix.shape}; expected {shape} (passages, entities)")
            edges = None if matrix is None else sparse.csr_array(matrix).astype(bool)
            given.append(edges if edges is None or name == "mentions" else sparse.csr_array(edges + edges.T))
        return cls(passages, *given)

    @cached_property
    def _mentioned_in(self) -> Rows | None:
        return None if self.mentions is None else sparse.csr_array(self.mentions.T)

    def step(self, reached: Words) -> Words:
        """One expansion step: reached ∪ (S ∪ M·Mᵀ ∪ M·R·Mᵀ)·reached, for words of shape (n,)."""
        within = reached.copy()
        if self.similar is not None:
            within |= _union(self.similar, reached)
        if self.mentions is not None and self._mentioned_in is not None:
            entities = _union(self._mentioned_in, reached)
            if self.relations is not None:
                entities |= _union(self.relations, entities)
            within |= _union(self.mentions, entities)
        return within


def reach(
    seeds: Sequence[Sequence[int]], gold: Sequence[Sequence[int]], factors: ExpansionFactors, hops: int = MAX_HOPS
) -> tuple[FloatArray, FloatArray]:
    """Follow the graph from each question's seed passages for `hops` steps (0..3).

    `seeds` and `gold` hold row ids of the factors, one sequence per question. Questions without seeds reach nothing.
    Returns two arrays of shape (questions, hops + 1), whose column h is "within h steps": whether every gold passage is
    reached (NaN without gold), and the share of the corpus that is. Raises InputError for rows outside the corpus.
    """
    if not 0 <= hops <= MAX_HOPS:
        raise ParameterError(f"hops is {hops}; choose 0 to {MAX_HOPS}")
    if len(seeds) != len(gold):
        raise InputError(f"{len(seeds)} seed lists for {len(gold)} gold lists; give one of each per question")
    for name, lists in (("seeds", seeds), ("gold", gold)):
        for i, rows in enumerate(lists):
            if wrong := [row for row in rows if not 0 <= row < factors.passages]:
                last = factors.passages - 1
                raise InputError(f"{name} of question {i} holds {wrong[0]}; passages are numbered 0..{last}")
    all_gold, shares = np.full((2, len(seeds), hops + 1), np.nan)
    for start in range(0, len(seeds), QUESTIONS_PER_WORD):
        block = range(start, min(start + QUESTIONS_PER_WORD, len(seeds)))
        reached = np.zeros(factors.passages, dtype=np.uint64)
        for i, question in enumerate(block):
            reached[list(seeds[question])] |= np.uint64(1 << i)
        for h in range(hops + 1):
            reached = factors.step(reached) if h else reached
            octets = reached.astype("<u8").view(np.uint8).reshape(-1, 8)
            bits = np.unpackbits(octets, axis=1, bitorder="little")  # (passages, 64): column i for the i-th question
            shares[block, h] = bits[:, : len(block)].mean(axis=0) if factors.passages else 0.0
            for i, question in enumerate(block):
                if len(gold[question]):
                    all_gold[question, h] = bits[list(gold[question]), i].all()
    return all_gold, shares


def _union(factor: Rows, words: Words) -> Words:
    """Boolean product factor · words: each row's word is the union (bitwise or) of its columns' words."""
    result = np.zeros(factor.shape[0], dtype=np.uint64)
    filled = np.flatnonzero(np.diff(factor.indptr))  # reduceat would give an empty row its successor's first value
    if len(filled):
        result[filled] = np.bitwise_or.reduceat(words[factor.indices], factor.indptr[filled])
    return result
