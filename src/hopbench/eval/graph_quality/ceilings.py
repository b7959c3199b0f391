"""What the graph allows at best: questions whose entities are recognised, passages within reach of the seeds.

`reach@h` is defined in SPEC section 5, computed by `hopbench.eval.metrics.reach`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pandas as pd
from scipy import sparse

from hopbench.eval.metrics.reach import ExpansionFactors, reach
from hopbench.eval.trials.trial import TrialOutcome
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.question.entities import question_entities
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.text import split_qualifier
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.types import Counters


@dataclass(frozen=True)
class LinkingRecall:
    """Of `questions` with gold, `recognised` have an entity of the gold path linked; `missed` are the others' ids."""

    questions: int
    recognised: int
    missed: tuple[str, ...]

    @property
    def share(self) -> float:
        """recognised / questions; 0 without questions."""
        return self.recognised / self.questions if self.questions else 0.0


def linking_recall(benchmark: Benchmark, index: Index) -> LinkingRecall:
    """The share of questions in which entity recognition (rules or model) finds an entity of the gold path.

    The gold path's entities are the titles of the gold passages and, where the benchmark has evidence triples, their
    subjects and objects. Recognition never sees gold; the comparison happens here, afterwards.
    """
    asked = [question for question in benchmark.questions if question.gold]
    batch, counters = Batch(index, [question.question for question in asked]), Counters()
    reader = linker(batch, counters)
    linked = question_entities(batch, counters, reader)
    missed = [
        question.id
        for question, entities in zip(asked, linked, strict=True)
        if not {reader.resolve(name) for name in _gold_names(question, benchmark)} & set(entities)
    ]
    return LinkingRecall(len(asked), len(asked) - len(missed), tuple(missed))


def _gold_names(question: BenchmarkQuestion, benchmark: Benchmark) -> Iterator[str]:
    for passage in question.gold:
        yield split_qualifier(benchmark.titles.get(passage, ""))[0]
    evidences = question.metadata.get("evidences")
    for triple in evidences if isinstance(evidences, list) else []:
        yield from (str(end) for end in (triple[0], triple[-1]))


def expansion_factors(index: Index, *, similar: bool = True) -> ExpansionFactors:
    """The graph over passages (chunks of one passage united), passages sorted by id; without SIMILAR_TO on request."""
    graph = adjacency(Batch(index, []), Counters())
    of_chunks = [index.passage_of[chunk] for chunk in index.ids]
    passages = {passage: row for row, passage in enumerate(sorted(set(of_chunks)))}
    owner = np.array([passages[passage] for passage in of_chunks], np.int64)
    mentioned, near = sparse.csr_array(graph.mentions.T), graph.similar if similar else None
    if not np.array_equal(owner, np.arange(len(passages))):  # else each is a chunk, and in the chunks' order
        unite = sparse.csr_array((np.ones(len(owner)), (owner, np.arange(len(owner)))), (len(passages), len(owner)))
        mentioned, near = unite @ mentioned, None if near is None else unite @ near @ unite.T
    return ExpansionFactors.make(len(passages), mentioned, graph.related, near)


def reach_columns(
    trials: Mapping[str, TrialOutcome], benchmark: Benchmark, factors: ExpansionFactors, hops: int = 2
) -> dict[str, pd.DataFrame]:
    """`reach@h` and `reach_share@h` of every question, from the seeds of each trial; NaN where it failed.

    Many strategies start from the same seeds: the graph is followed once from each.
    """
    row = {passage: number for number, passage in enumerate(sorted(benchmark.titles))}
    starts = {
        label: [(q.id, frozenset(trial.rankings[q.id].seeds)) for q in benchmark.questions]
        for label, trial in trials.items()
    }
    distinct = {start: number for number, start in enumerate(dict.fromkeys(chain.from_iterable(starts.values())))}
    sets = {q.id: q.gold.sets or ((),) for q in benchmark.questions}
    parts = [(number, gold) for (question, _), number in distinct.items() for gold in sets[question]]
    seeds = [[row[p] for p in passages] for _, passages in distinct]
    gold = [[row[p] for p in one if p in row] for _, one in parts]
    found = pd.DataFrame(reach([seeds[number] for number, _ in parts], gold, factors, hops).columns())
    lacking = np.array([not all(p in row for p in one) for _, one in parts], dtype=bool)
    for h in range(hops + 1):  # what the corpus lacks is never reached
        found[f"reach@{h}"] = found[f"reach@{h}"].where(~lacking, 0.0)
    if len(parts) > len(distinct):  # any set of a question
        found = found.groupby([number for number, _ in parts]).max()
    columns = {}
    for label, trial in trials.items():
        own = found.iloc[[distinct[start] for start in starts[label]]].set_axis([q.id for q in benchmark.questions])
        own.loc[[trial.rankings[q.id].failure is not None for q in benchmark.questions]] = np.nan
        columns[label] = own
    return columns
