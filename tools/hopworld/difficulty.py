"""Measure a benchmark's difficulty: what rankings without hops find, and what the graph can reach from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.metrics.reach import ExpansionFactors, reach
from hopbench.eval.types import Benchmark
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.graph.extract.rules import rule_tables
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.search.exact import LexicalIndex, TopRows, dense_top
from hopbench.retrieval.search.fusion import Scored, ordered, weighted
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

WEIGHTS = tuple(round(0.1 * step, 1) for step in range(1, 10))
SEED_WEIGHT = 0.7  # the hybrid whose top 10 the graph is entered from
TOP = 10
DIFFICULTY = (0.40, 0.70)  # where the best ranking without hops must lie
MIN_REACH, MAX_SHARE = 0.95, 0.20

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difficulty:
    """What was measured: a value a question for each row of the table, in the order of `types`."""

    passages: int
    types: tuple[str, ...]
    all_gold: Mapping[str, Values]
    reach: Mapping[str, Values]

    @cached_property
    def best(self) -> str:
        """The ranking without hops that finds all gold in its top 10 most often."""
        return max(self.all_gold, key=lambda name: self.all_gold[name].mean())

    @property
    def problems(self) -> list[str]:
        """Which of the promises in the dataset card the benchmark breaks."""
        best, low, high = float(self.all_gold[self.best].mean()), *DIFFICULTY
        reached, share = (float(self.reach[name].mean()) for name in ("reach@2", "corpus share@2"))
        problems = [
            (low <= best <= high, f"{self.best} has all gold in its top 10 for {best:.3f}, outside {low}..{high}"),
            (reached >= MIN_REACH, f"reach@2 is {reached:.3f}, below {MIN_REACH}"),
            (share <= MAX_SHARE, f"two steps reach {share:.3f} of the corpus, above {MAX_SHARE}"),
        ]
        return [problem for fine, problem in problems if not fine]


def check(folder: Path) -> Difficulty:
    """Measure the benchmark in `folder` with the project's own search, extractor and embedder (wordllama)."""
    benchmark = load_benchmark(folder)
    chunks = [Chunk(p.id, p.id, 0, p.title, p.text) for p in sorted(benchmark.passages, key=lambda p: p.id)]
    rankings = _rankings(benchmark, chunks)
    row_of = {chunk.id: row for row, chunk in enumerate(chunks)}
    gold = [[row_of[g] for g in question.gold] for question in benchmark.questions]
    seeds = [[row_of[c] for c in ranking] for ranking in rankings[f"hybrid {SEED_WEIGHT}"]]
    all_gold, corpus_share = reach(seeds, gold, _factors(chunks, row_of), hops=2)
    steps = {f"reach@{h}": all_gold[:, h] for h in (1, 2)}
    shares = {f"corpus share@{h}": corpus_share[:, h] for h in (1, 2)}
    return Difficulty(
        passages=len(chunks),
        types=tuple(question.type for question in benchmark.questions),
        all_gold={name: _all_gold(benchmark, ranked) for name, ranked in rankings.items()},
        reach=steps | shares,
    )


def _all_gold(benchmark: Benchmark, rankings: Sequence[Sequence[str]]) -> Values:
    return np.array([set(q.gold) <= set(r) for q, r in zip(benchmark.questions, rankings, strict=True)], dtype=float)


def _rankings(benchmark: Benchmark, chunks: Sequence[Chunk]) -> dict[str, list[list[str]]]:
    """The top 10 of BM25, cosine and their weighted sums, for every question."""
    contents = [chunk.content for chunk in chunks]
    questions = [question.text for question in benchmark.questions]
    lexical, embedder = LexicalIndex(contents), get_embedder("wordllama")
    dense = dense_top(embedder.embed(questions), embedder.embed(contents))
    rankings = zip(lexical.top(questions), dense, strict=True)
    pairs = [(_named(b, chunks), _named(d, chunks)) for b, d in rankings]
    ranked = {"bm25": [_top(b) for b, _ in pairs], "vector": [_top(d) for _, d in pairs]}
    for w in WEIGHTS:
        hybrids = (ordered(weighted([(w, d), (1 - w, b)])) for b, d in pairs)
        ranked[f"hybrid {w}"] = [_top(hybrid) for hybrid in hybrids]
    return ranked


def _named(candidates: TopRows, chunks: Sequence[Chunk]) -> Scored:
    return [(chunks[row].id, float(score)) for row, score in zip(candidates.rows, candidates.scores, strict=True)]


def _top(scored: Scored) -> list[str]:
    return [chunk for chunk, _ in scored[:TOP]]


def _factors(chunks: Sequence[Chunk], row_of: Mapping[str, int]) -> ExpansionFactors:
    """MENTIONED_IN and RELATED_TO of the rule-built graph, without thresholds and without SIMILAR_TO."""
    tables = rule_tables(chunks, Tagger(chunk.content for chunk in chunks))
    mentions, relations = tables[MENTIONED_IN], tables[RELATED_TO]
    names = sorted({*mentions["source"], *relations["source"], *relations["target"]})
    entity_of = {name: number for number, name in enumerate(names)}
    n, m = len(chunks), len(names)
    return ExpansionFactors.make(
        n,
        _matrix(mentions["target"].map(row_of), mentions["source"].map(entity_of), (n, m)),
        _matrix(relations["source"].map(entity_of), relations["target"].map(entity_of), (m, m)),
    )


def _matrix(rows: pd.Series[int], columns: pd.Series[int], shape: tuple[int, int]) -> sparse.csr_array[np.bool_]:
    return sparse.csr_array((np.ones(len(rows), dtype=bool), (rows.to_numpy(), columns.to_numpy())), shape=shape)


def table(measured: Difficulty) -> str:
    """The figures as text: a row for each ranking and each step, a column for all questions and for each type."""
    kinds = sorted(set(measured.types))
    types, counts = np.array(measured.types), Counter(measured.types)
    head = ["", "all", *kinds]
    rows = [["questions", str(len(types)), *(str(counts[kind]) for kind in kinds)]]
    for prefix, values in (("all_gold@10 ", measured.all_gold), ("", measured.reach)):
        for name, each in values.items():
            means = [each.mean(), *(each[types == kind].mean() for kind in kinds)]
            rows.append([prefix + name, *(f"{mean:.3f}" for mean in means)])
    widths = [max(len(row[i]) for row in [head, *rows]) + 2 for i in range(len(head))]
    lines = [
        "".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in [head, *rows]
    ]
    verdict = [f"NOT AS PROMISED: {problem}" for problem in measured.problems] or ["as the dataset card promises"]
    return "\n".join([f"{measured.passages:,} passages; best without hops: {measured.best}", *lines, *verdict])
