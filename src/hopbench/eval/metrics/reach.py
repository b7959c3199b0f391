"""reach@h: what a graph lets any strategy find from given seeds within h expansion steps.

One step from a passage is SIMILAR_TO, or passage–entity–passage (a shared entity), or passage–entity–entity–passage
(RELATED_TO between). In matrices, with M the passage × entity mentions, R the entity × entity relations and S the
passage × passage similarities, one step is S ∪ M·Mᵀ ∪ M·R·Mᵀ. That n × n product is never formed: hub entities would
make it dense. Sets of reached nodes are multiplied by the factors one after the other, 64 questions at once, one bit
each of a 64-bit word per node, so a step costs the number of edges, however much is reached already
(multi-source BFS, Then et al., VLDB 2015).
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

    `mentions` (n × m) is MENTIONED_IN, `relations` (m × m) RELATED_TO, `similar` (n × n) SIMILAR_TO. Relations and
    similarities must hold both directions (`make` sees to that). Where passages are split into chunks, a row stands
    for the passage: its chunks' rows united.
    """

    passages: int
    mentions: Rows | None = None
    relations: Rows | None = None
    similar: Rows | None = None

    @classmethod
    def make(
        cls,
        passages: int,
        mentions: Rows | None = None,
        relations: Rows | None = None,
        similar: Rows | None = None,
    ) -> ExpansionFactors:
        """Factors from CSR arrays of any number type (non-zero = edge): shapes checked, reverse edges added."""
        _check_shapes(passages, mentions, relations, similar)
        return cls(passages, _boolean(mentions), _symmetric(relations), _symmetric(similar))

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


@dataclass(frozen=True)
class ReachResult:
    """Arrays of shape (questions, hops + 1); column h is "within h steps", column 0 the seeds alone.

    `all_gold` is 1 where every gold passage is reached (NaN without gold), `gold_share` the share that is, and
    `corpus_share` the share of the corpus that is reached.
    """

    all_gold: FloatArray
    gold_share: FloatArray
    corpus_share: FloatArray

    def columns(self) -> dict[str, FloatArray]:
        """The values under their metrics' names, to be joined to the rows of `score`."""
        hops = range(self.all_gold.shape[1])
        reached = {f"reach@{h}": self.all_gold[:, h] for h in hops}
        return reached | {f"reach_share@{h}": self.corpus_share[:, h] for h in hops}


def reach(
    seeds: Sequence[Sequence[int]], gold: Sequence[Sequence[int]], factors: ExpansionFactors, hops: int = MAX_HOPS
) -> ReachResult:
    """Follow the graph from each question's seed passages for `hops` steps (0..3).

    `seeds` and `gold` hold row numbers of the factors, one sequence per question. Questions without seeds reach
    nothing. Raises InputError for numbers outside the corpus.
    """
    if not 0 <= hops <= MAX_HOPS:
        raise ParameterError(f"hops is {hops}; choose 0 to {MAX_HOPS}")
    _check_numbers(seeds, gold, factors.passages)
    batches = range(0, len(seeds), QUESTIONS_PER_WORD)
    parts = [
        _reach_batch(seeds[i : i + QUESTIONS_PER_WORD], gold[i : i + QUESTIONS_PER_WORD], factors, hops)
        for i in batches
    ]
    return ReachResult(*np.concatenate([np.zeros((3, 0, hops + 1)), *parts], axis=1))


def _reach_batch(
    seeds: Sequence[Sequence[int]], gold: Sequence[Sequence[int]], factors: ExpansionFactors, hops: int
) -> FloatArray:
    """(all gold, gold share, corpus share) × questions × hops of up to 64 questions."""
    reached = np.zeros(factors.passages, dtype=np.uint64)
    for i, numbers in enumerate(seeds):
        reached[list(numbers)] |= np.uint64(1 << i)
    result = np.full((3, len(seeds), hops + 1), np.nan)
    for h in range(hops + 1):
        reached = factors.step(reached) if h else reached
        bits = _bits(reached)
        result[2, :, h] = bits[:, : len(seeds)].mean(axis=0) if factors.passages else 0.0
        for i, wanted in enumerate(gold):
            if len(wanted):
                reached_gold = bits[list(wanted), i]
                result[:2, i, h] = reached_gold.all(), reached_gold.mean()
    return result


def _bits(words: Words) -> npt.NDArray[np.uint8]:
    """Words of shape (n,) as 0 and 1 of shape (n, 64), column i for question i."""
    octets = words.astype("<u8").view(np.uint8).reshape(-1, 8)
    return np.unpackbits(octets, axis=1, bitorder="little")


def _union(factor: Rows, words: Words) -> Words:
    """Boolean product factor · words: each row's word is the union (bitwise or) of its columns' words."""
    result = np.zeros(factor.shape[0], dtype=np.uint64)
    filled = np.flatnonzero(np.diff(factor.indptr))  # reduceat would give an empty row its successor's first value
    if len(filled):
        result[filled] = np.bitwise_or.reduceat(words[factor.indices], factor.indptr[filled])
    return result


def _boolean(matrix: Rows | None) -> Rows | None:
    return None if matrix is None else sparse.csr_array(matrix).astype(bool)


def _symmetric(matrix: Rows | None) -> Rows | None:
    boolean = _boolean(matrix)
    return None if boolean is None else sparse.csr_array(boolean + boolean.T)


def _check_shapes(
    passages: int,
    mentions: Rows | None,
    relations: Rows | None,
    similar: Rows | None,
) -> None:
    entities = None if mentions is None else mentions.shape[1]
    wanted = {"mentions": (passages, entities), "relations": (entities, entities), "similar": (passages, passages)}
    given = {"mentions": mentions, "relations": relations, "similar": similar}
    for name, matrix in given.items():
        if matrix is not None and tuple(matrix.shape) != wanted[name]:
            raise InputError(f"{name} has shape {matrix.shape}; expected {wanted[name]} (passages, entities)")


def _check_numbers(seeds: Sequence[Sequence[int]], gold: Sequence[Sequence[int]], passages: int) -> None:
    if len(seeds) != len(gold):
        raise InputError(f"{len(seeds)} seed lists for {len(gold)} gold lists; give one of each per question")
    for name, lists in (("seeds", seeds), ("gold", gold)):
        for i, numbers in enumerate(lists):
            if wrong := [n for n in numbers if not 0 <= n < passages]:
                raise InputError(f"{name} of question {i} holds {wrong[0]}; passages are numbered 0..{passages - 1}")
