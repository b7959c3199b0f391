"""The hop-free rankings that graph strategies must beat: vector, bm25 and their hybrid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.fusion import Scored, min_max, ordered, reciprocal_rank, weighted
from hopbench.retrieval.search.term_counts import PLAIN, LexicalFields
from hopbench.retrieval.strategies.base import Strategy, param
from hopbench.retrieval.types import Counters, Hit, Question, Ranking

SEEDS = 10
EMPTY: Mapping[str, object] = {}


def hybrid_rankings(
    batch: Batch, vector_weight: float = 0.7, fusion: str = "weighted", fields: LexicalFields = PLAIN
) -> list[Scored]:
    """Each question's vector and BM25 top 100 as one ranking: weighted min-max scores, or reciprocal rank fusion."""

    def fuse() -> list[Scored]:
        pairs = zip(batch.vector_rankings, batch.lexical_rankings(fields), strict=True)
        if fusion == "rrf":
            return [ordered(reciprocal_rank([[chunk for chunk, _ in one] for one in pair])) for pair in pairs]
        weights = vector_weight, 1.0 - vector_weight
        return [ordered(weighted(zip(weights, pair, strict=True))) for pair in pairs]

    return batch.memo.get(("hybrid", fusion, vector_weight, fields), fuse)


def initial_rankings(batch: Batch, initial_ranking: str) -> list[Scored]:
    """The vector rankings (`vector`), or their fusion with BM25 (`weighted`, `rrf`)."""
    return batch.vector_rankings if initial_ranking == "vector" else hybrid_rankings(batch, fusion=initial_ranking)


def plain_ranking(
    question: Question, initial: Scored, component: str, notes: Mapping[str, object] = EMPTY, seeds: int = SEEDS
) -> Ranking:
    """An initial ranking as a strategy's own; its first chunks are the seeds."""
    hits = [Hit(chunk, score, "seed", {component: score}) for chunk, score in initial]
    return Ranking(question.id, hits, [chunk for chunk, _ in initial[:seeds]], notes)


@dataclass(frozen=True, kw_only=True)
class _Baseline(Strategy):
    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        pairs = zip(batch.questions, self.initial(batch), strict=True)
        return [plain_ranking(question, scored, self.name) for question, scored in pairs]


@dataclass(frozen=True, kw_only=True)
class Vector(_Baseline):
    """Exact cosine between the question's and the chunks' embeddings."""

    name: ClassVar[str] = "vector"
    summary: ClassVar[str] = "exact cosine of question and chunk embeddings"

    def initial(self, batch: Batch) -> list[Scored]:
        """Chunks by cosine."""
        return batch.vector_rankings


@dataclass(frozen=True, kw_only=True)
class _Lexical(Strategy):
    stemmer: bool = param(False, "compare Snowball stems of the corpus's language, where it has a stemmer")
    parts: bool = param(False, "search identifiers such as flow_run.name and --set-role whole and in parts")
    k1: float = param(1.5, "how long repetitions of a term go on counting", 0.0, 10.0)
    b: float = param(0.75, "how much a long passage is marked down", 0.0, 1.0)
    title_weight: float = param(1.0, "how often the title's terms count", 0.0, 10.0)

    @property
    def fields(self) -> LexicalFields:
        """The parameters of BM25."""
        return LexicalFields(self.stemmer, self.parts, float(self.k1), float(self.b), float(self.title_weight))


@dataclass(frozen=True, kw_only=True)
class BM25(_Lexical, _Baseline):
    """BM25 (Lucene's form) over title and text, the language's stop words removed; by default without a stemmer."""

    name: ClassVar[str] = "bm25"
    summary: ClassVar[str] = "BM25 (Lucene) over title and text"

    def initial(self, batch: Batch) -> list[Scored]:
        """Chunks by BM25."""
        return batch.lexical_rankings(self.fields)


@dataclass(frozen=True, kw_only=True)
class Hybrid(_Lexical):
    """Vector and BM25 together: `vector_weight`·vector + rest·BM25, each min-max over its top 100; or RRF."""

    name: ClassVar[str] = "hybrid"
    summary: ClassVar[str] = "vector and BM25, min-max weighted or reciprocal rank fusion"

    vector_weight: float = param(0.7, "weight of the vector score; BM25 has the rest", 0.0, 1.0)
    fusion: str = param("weighted", "how both are joined", choices=("weighted", "rrf"))

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Both searches fused, each hit with its two normalised parts."""
        rankings = []
        lexical_rankings = batch.lexical_rankings(self.fields)
        columns = zip(batch.questions, self.initial(batch), batch.vector_rankings, lexical_rankings, strict=True)
        for question, scored, *parts in columns:
            dense, lexical = map(min_max, parts)
            hits = [
                Hit(chunk, score, "seed", {"vector": dense.get(chunk, 0.0), "bm25": lexical.get(chunk, 0.0)})
                for chunk, score in scored
            ]
            rankings.append(Ranking(question.id, hits, [chunk for chunk, _ in scored[:SEEDS]]))
        return rankings

    def initial(self, batch: Batch) -> list[Scored]:
        """Chunks by the fused score."""
        return hybrid_rankings(batch, self.vector_weight, self.fusion, self.fields)
