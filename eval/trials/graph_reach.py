"""The graph's own ceiling for each strategy: what could be reached from its seeds (SPEC section 5, reach@h)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse

from hopbench.eval.metrics.reach import ExpansionFactors, reach
from hopbench.eval.trials.trial import TrialOutcome
from hopbench.eval.types import Benchmark
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.types import Counters


def expansion_factors(index: Index, *, similar: bool = True) -> ExpansionFactors:
    """The graph over passages (chunks of one passage united), passages sorted by id; without SIMILAR_TO on request."""
    graph = adjacency(Batch(index, []), Counters())
    passages = {passage: row for row, passage in enumerate(sorted({chunk.passage_id for chunk in index.chunks}))}
    owner = [passages[chunk.passage_id] for chunk in index.chunks]
    unite = sparse.csr_array((np.ones(len(owner)), (owner, np.arange(len(owner)))), shape=(len(passages), len(owner)))
    near = sparse.csr_array(unite @ graph.similar @ unite.T) if similar else None
    return ExpansionFactors.make(len(passages), sparse.csr_array(unite @ graph.mentions.T), graph.related, near)


def reach_columns(
    outcome: TrialOutcome, benchmark: Benchmark, factors: ExpansionFactors, hops: int = 2
) -> pd.DataFrame:
    """`reach@h` and `reach_share@h` of every question, from the seeds of a trial; NaN where it failed."""
    row = {passage: number for number, passage in enumerate(sorted(benchmark.titles))}
    seeds = [[row[p] for p in outcome.rankings[q.id].seeds] for q in benchmark.questions]
    gold = [[row[p] for p in q.gold] for q in benchmark.questions]
    columns = pd.DataFrame(reach(seeds, gold, factors, hops).columns(), index=[q.id for q in benchmark.questions])
    failed = [outcome.rankings[q.id].failure is not None for q in benchmark.questions]
    columns.loc[failed] = np.nan
    return columns
