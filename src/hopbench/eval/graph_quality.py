"""The quality of a graph: what it allows at best, and an extractor's agreement with reference triples.

The best possible is measured by linking recall and by `reach@h` (see `hopbench.eval.metrics.reach`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pandas as pd
from scipy import sparse

from hopbench.eval.metrics.reach import ExpansionFactors, reach
from hopbench.eval.trials.trial import TrialOutcome
from hopbench.eval.types import Benchmark
from hopbench.retrieval.graph.schema import ENTITY, RELATED_TO, GraphTables, entity_id
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.question.entities import question_entities
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.text import name_key, split_qualifier
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.types import Counters, Triple


@dataclass(frozen=True)
class LinkingRecall:
    """Linking recall: of `questions` with gold, `recognised` have a gold-path entity linked; `missed` are the rest."""

    questions: int
    recognised: int
    missed: tuple[str, ...]

    @property
    def share(self) -> float:
        """recognised / questions; 0 without questions."""
        return self.recognised / self.questions if self.questions else 0.0


def linking_recall(benchmark: Benchmark, index: Index) -> LinkingRecall:
    """Measure the share of questions in which entity recognition finds an entity of the gold path.

    The gold path's entities are the titles of the gold passages and, where the benchmark has evidence triples, their
    subjects and objects. Recognition never sees gold; the comparison happens here, afterwards.
    """
    questions = [question for question in benchmark.questions if question.gold]
    batch, counters = Batch(index, [question.question for question in questions]), Counters()
    reader = linker(batch, counters)
    missed = []
    for question, entities in zip(questions, question_entities(batch, counters, reader), strict=True):
        names = [split_qualifier(benchmark.titles.get(passage, ""))[0] for passage in question.gold]
        evidences = question.metadata.get("evidences")
        for triple in evidences if isinstance(evidences, list) else []:
            names += [str(triple[0]), str(triple[-1])]
        if not {reader.resolve(name) for name in names} & set(entities):
            missed.append(question.id)
    return LinkingRecall(len(questions), len(questions) - len(missed), tuple(missed))


def expansion_factors(index: Index) -> ExpansionFactors:
    """Build the graph over passages (chunks of one passage united), sorted by id."""
    graph = adjacency(Batch(index, []), Counters())
    of_chunks = [index.passage_of[chunk] for chunk in index.ids]
    passages = {passage: row for row, passage in enumerate(sorted(set(of_chunks)))}
    owner = np.array([passages[passage] for passage in of_chunks], np.int64)
    mentioned, near = sparse.csr_array(graph.mentions.T), graph.between_chunks
    if not np.array_equal(owner, np.arange(len(passages))):  # else each is a chunk, and in the chunks' order
        unite = sparse.csr_array((np.ones(len(owner)), (owner, np.arange(len(owner)))), (len(passages), len(owner)))
        mentioned, near = unite @ mentioned, unite @ near @ unite.T
    return ExpansionFactors.make(len(passages), mentioned, graph.related, near)


def reach_columns(
    trials: Mapping[str, TrialOutcome], benchmark: Benchmark, factors: ExpansionFactors, hops: int = 2
) -> dict[str, pd.DataFrame]:
    """Compute `reach@h` and `reach_share@h` of every question, from the seeds of each trial; NaN where it failed.

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
    all_gold, shares = reach([seeds[number] for number, _ in parts], gold, factors, hops)
    all_gold[[not all(p in row for p in one) for _, one in parts]] = 0.0  # what the corpus lacks is never reached
    names = [f"{name}@{h}" for name in ("reach", "reach_share") for h in range(hops + 1)]
    found = pd.DataFrame(np.hstack([all_gold, shares]), columns=names)
    if len(parts) > len(distinct):  # any set of a question
        found = found.groupby([number for number, _ in parts]).max()
    columns = {}
    for label, trial in trials.items():
        own = found.iloc[[distinct[start] for start in starts[label]]].set_axis([q.id for q in benchmark.questions])
        own.loc[[trial.rankings[q.id].failure is not None for q in benchmark.questions]] = np.nan
        columns[label] = own
    return columns


@dataclass(frozen=True)
class Overlap:
    """Counts of predicted and expected items and of those in both. A share of nothing is None."""

    predicted: int
    expected: int
    common: int

    @property
    def precision(self) -> float | None:
        """Share of the predicted items that are expected."""
        return self.common / self.predicted if self.predicted else None

    @property
    def recall(self) -> float | None:
        """Share of the expected items that were predicted."""
        return self.common / self.expected if self.expected else None


def agreement(graph: GraphTables, reference: Sequence[Triple]) -> dict[str, Overlap]:
    """Compare RELATED_TO with the triples: `entities`, and `relations`, pairs of entities in either direction.

    Names are equal by their words, or as aliases in the graph. The wording of relations is not compared: two readers
    rarely choose the same. Only entities that some relation names are compared: titles are entities of every graph.
    """
    nodes, edges = graph.nodes[ENTITY], graph.edges[RELATED_TO]
    known = {  # the ids that aliases would have, to entity ids
        entity_id(name_key(alias)): entity
        for entity, names in zip(nodes["id"], nodes["aliases"], strict=True)
        for alias in names
    } | {entity: entity for entity in nodes["id"]}
    expected = set()
    for triple in reference:
        ids = [entity_id(name_key(name)) for name in (triple.subject, triple.object)]
        first, second = sorted(known.get(entity, entity) for entity in ids)
        if first != second:
            expected.add((first, second))
    predicted = set(zip(edges["source"], edges["target"], strict=True))
    sides = {"entities": (set(chain(*predicted)), set(chain(*expected))), "relations": (predicted, expected)}
    return {what: Overlap(len(ours), len(theirs), len(ours & theirs)) for what, (ours, theirs) in sides.items()}
