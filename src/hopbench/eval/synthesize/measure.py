"""all_gold@10 of labels on a set of questions, without contexts, timing and the rest of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import numpy as np

from hopbench.eval.synthesize.trust import Floats
from hopbench.eval.trials.ranking import rank_batch
from hopbench.eval.trials.trial import batches
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.index import Index
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.types import Counters, Ranking

DEPTH = 10


def measured(
    index: Index,
    questions: Sequence[BenchmarkQuestion],
    strategies: Mapping[str, Strategy],
    begin: Callable[[str], None] = lambda label: None,
) -> dict[str, Floats]:
    """Label → 1 for each question, (q,), whose gold passages are all among the first ten, else 0; failures are 0."""
    parts = batches(index, [question.question for question in questions])
    gold = {question.id: question.gold for question in questions}
    values = {}
    for label, strategy in strategies.items():
        begin(label)
        ranked = [each for part in parts for each in rank_batch(strategy, part, Counters())]
        found = (gold[each.question_id].complete_in(_first_ten(each, index)) for each in ranked)
        values[label] = np.fromiter(found, float, len(questions))
    return values


def _first_ten(ranking: Ranking, index: Index) -> frozenset[str]:
    passages = dict.fromkeys(index.passage_of[hit.chunk_id] for hit in ranking.hits)
    return frozenset(islice(passages, DEPTH))
