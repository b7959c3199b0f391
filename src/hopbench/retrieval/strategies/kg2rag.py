"""KG²RAG (arXiv 2502.06864): chunks expanded over triples from the vector seeds, in maximum spanning trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.search.exact import COSINE_DECIMALS
from hopbench.retrieval.search.fusion import Scored, ordered, rank_shares
from hopbench.retrieval.strategies._kg2rag_expansion import (
    Expansion,
    Tree,
    Triples,
    expand,
    path_to,
    spanning_trees,
    stated_triples,
)
from hopbench.retrieval.strategies.base import KEEP, Strategy, param
from hopbench.retrieval.strategies.baselines import initial_rankings, plain_ranking
from hopbench.retrieval.support.arithmetic import length, summed
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.traversal.adjacency import Adjacency, adjacency
from hopbench.retrieval.types import Counters, Hit, LazyHits, Ranking

TRIPLES_VERSION = "triples-1"  # of what is kept in files


@dataclass(frozen=True, kw_only=True)
class KG2RAG(Strategy):
    """Graph-guided chunk expansion and spanning-tree organisation."""

    name: ClassVar[str] = "kg2rag"
    summary: ClassVar[str] = "KG²RAG: expand the vector top k over triples, organise by maximum spanning trees"
    edges: ClassVar[tuple[str, ...]] = (RELATED_TO, MENTIONED_IN)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        RELATED_TO: {"initial_weight": 1.0},
        MENTIONED_IN: {"initial_weight": 1.0},
    }

    seed_k: int = param(10, "seed chunks", 1, 100)
    hops: int = param(1, "hops over the triples from the seeds' entities", 1, 3)
    min_strength: float = param(0.0, "relations weaker than this are no triples", 0.0, 1.0)
    max_fan: int = param(200, "entities in more chunks than this are not expanded from", 1, 1_000_000)
    max_chunks: int = param(50, "new chunks kept at each hop, heaviest first", 0, 1000)
    inherit: float = param(
        0.0, "share, in an expanded chunk's weight, of its best path (seed's cosine times the strengths)", 0.0, 1.0
    )
    arrange: str = param(
        "trees",
        "whole trees up to top_k chunks, the others' chunks by weight; every tree depth first; all chunks by weight",
        choices=("trees", "walk", "weight"),
    )
    top_k: int = param(10, "chunks that whole trees may fill", 0, 1000)
    relevance: str = param(
        "text", "a tree's relevance: of its chunks' mean vector, or of its best chunk", choices=("text", "best")
    )
    initial_ranking: str = param(
        "vector", "where seeds come from: vector, or RRF of vector and BM25", choices=("vector", "rrf")
    )
    initial_weight: float = param(0.0, "share of the initial ranking in a reciprocal rank fusion with it", 0.0, 1.0)

    def initial(self, batch: Batch) -> list[Scored]:
        """The vector ranking (or RRF of vector and BM25)."""
        return initial_rankings(batch, self.initial_ranking)

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Expand every question, build its trees, then order them for the whole batch."""
        with stage(counters, "graph"):
            graph = adjacency(batch, counters)
            triples = _triples(batch.index, graph, self.min_strength)
        with stage(counters, "expansion"):
            initial = self.initial(batch)
            limits = {"hops": self.hops, "max_fan": self.max_fan, "max_chunks": self.max_chunks}
            rows = [[batch.index.row_of[chunk] for chunk, _ in scored[: self.seed_k]] for scored in initial]
            expansions = [
                expand(batch, q, seeds, graph, triples, inherit=self.inherit, **limits) for q, seeds in enumerate(rows)
            ]
            counters.edges_touched += sum(expansion.touched for expansion in expansions)
        with stage(counters, "trees"):
            forests = []
            for expansion in expansions:
                chunks = np.array(sorted(expansion.weights), dtype=np.int64)
                weights = np.array([expansion.weights[row] for row in chunks.tolist()])
                forests.append(spanning_trees(triples, chunks, weights))
        with stage(counters, "ordering"):
            scores = self._relevances(batch, counters, forests, expansions)
            return [
                self._ranking(batch, q, forests[q], scores[q], expansions[q], initial[q], graph, triples)
                for q in range(len(forests))
            ]

    def _relevances(
        self, batch: Batch, counters: Counters, forests: Sequence[Sequence[Tree]], expansions: Sequence[Expansion]
    ) -> list[list[float]]:
        reranker = batch.index.services.tree_relevance
        if reranker is not None:
            pairs = [
                (q, " ".join(batch.index.chunks[row].content for row in tree.chunks))
                for q, trees in enumerate(forests)
                for tree in trees
            ]
            scores = iter(reranker(batch.questions, counters, pairs))
            return [[float(next(scores)) for _ in trees] for trees in forests]
        if self.relevance == "best":
            return [
                [max(expansion.weights[row] for row in tree.chunks) for tree in trees]
                for trees, expansion in zip(forests, expansions, strict=True)
            ]
        return [[_text_relevance(batch, q, tree) for tree in trees] for q, trees in enumerate(forests)]

    def _ranking(
        self,
        batch: Batch,
        q: int,
        trees: Sequence[Tree],
        scores: Sequence[float],
        expansion: Expansion,
        initial: Scored,
        graph: Adjacency,
        triples: Triples,
    ) -> Ranking:
        question, ids = batch.questions[q], batch.index.ids
        if not trees:
            flag = f"the seeds state no triple: the {self.initial_ranking} ranking"
            notes: dict[str, Any] = {"trees": 0, "fallback": flag}
            return plain_ranking(question, initial, self.initial_ranking, notes, self.seed_k)
        order = sorted(range(len(trees)), key=lambda number: (-scores[number], number))
        arranged, tree_of, whole = self._arranged([trees[number] for number in order], expansion.weights)
        fused = rank_shares([ids[row] for row in arranged], [chunk for chunk, _ in initial], self.initial_weight)
        best = ordered(fused)[:KEEP]
        rows = [batch.index.row_of[chunk] for chunk, _ in best]

        def hit(place: int) -> Hit:
            row = rows[place]
            if row not in tree_of:
                return Hit(*best[place], "seed")
            rank = tree_of[row]
            components = {"weight": expansion.weights[row], "tree": rank, "relevance": scores[order[rank - 1]]}
            path = path_to(row, expansion, graph, triples, batch.index)
            return Hit(*best[place], "graph" if row in expansion.chunks else "seed", components, path)

        notes = {
            "trees": len(trees),
            "whole_trees": whole,
            "tree_sizes": [len(trees[number].chunks) for number in order],
            "expanded": len(expansion.chunks),
            "filtered_out": len(expansion.weights) - len(tree_of),
            "kept": sum(row in tree_of and row in expansion.chunks for row in rows),
        }
        seeds = [chunk for chunk, _ in initial[: self.seed_k]]
        return Ranking(question.id, LazyHits.one_by_one(best, hit), seeds, notes)

    def _arranged(self, trees: Sequence[Tree], weights: Mapping[int, float]) -> tuple[list[int], dict[int, int], int]:
        """Chunks in reading order, the rank of each chunk's tree (from 1), and how many trees are read whole.

        `trees` come best first; a chunk of several trees belongs to the first.
        """
        tree_of: dict[int, int] = {}
        whole = 0
        for rank, tree in enumerate(trees, 1):
            for row in tree.chunks:
                tree_of.setdefault(row, rank)
            if self.arrange == "walk" or (self.arrange == "trees" and whole == rank - 1 and len(tree_of) <= self.top_k):
                whole = rank
        arranged = [row for row, rank in tree_of.items() if rank <= whole]
        others = [row for row, rank in tree_of.items() if rank > whole]
        return [*arranged, *sorted(others, key=lambda row: (-weights[row], row))], tree_of, whole


def _triples(index: Index, graph: Adjacency, min_strength: float) -> Triples:
    """The triples of that strength; all of them are cached in files where the store has a stamp."""

    def every() -> Triples:
        return Triples(**index.graph_arrays("triples", TRIPLES_VERSION, lambda: vars(stated_triples(graph))))

    return index.memo.get(("triples", min_strength), lambda: index.memo.get("triples", every).strong(min_strength))


def _text_relevance(batch: Batch, q: int, tree: Tree) -> float:
    """Cosine of the question and the mean of the tree's chunk vectors, which stands for its concatenated text."""
    mean = batch.index.vectors[sorted(tree.chunks)].astype(np.float64).sum(axis=0)
    whole = length(mean)
    return round(float(summed(mean * batch.vectors[q])) / whole, COSINE_DECIMALS) if whole else 0.0
