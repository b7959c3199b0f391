"""The definition of a metric: an object that describes what it measures, what it needs and its ceiling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt

from hopbench.eval.metrics.containment import scorable_answers
from hopbench.eval.types import Benchmark, BenchmarkQuestion, PassageRanking
from hopbench.retrieval.support.errors import InputError

FloatArray = npt.NDArray[np.float64]
T = TypeVar("T")

CUTOFFS = (2, 5, 10, 20)
"""The k of `recall@k` and `all_gold@k`."""

IR_MEASURES = (*(f"R@{k}" for k in CUTOFFS), "nDCG@10", "RR")
"""Measures computed by ir_measures, in its notation, in one pass over the rankings."""

CONTEXT_PASSAGES = 5
"""Chunks in the budgeted context that all strategies share; a ceiling of the metrics that read it."""

Need = Literal["gold", "answers", "reference", "context", "graph", "reader", "judge"]
Group = Literal["ranking", "ragas", "graph", "answer", "judge", "external"]


@dataclass(frozen=True, slots=True)
class GoldFacts:
    """All that a ceiling depends on: the number of passages in a gold set and of their distinct titles.

    `missing` of the passages are not in the corpus. `ndcg` is the nDCG@10 of the others in their best order.
    """

    passages: int
    titles: int
    context_passages: int = CONTEXT_PASSAGES
    missing: int = 0
    ndcg: float = 1.0

    @property
    def present(self) -> int:
        """The number of passages that a ranking can find."""
        return self.passages - self.missing


@dataclass(frozen=True, slots=True)
class Metric:
    """One number per question.

    `compute` maps a batch of n answered questions to n values (NaN: not applicable); it is None for metrics whose
    values another part measures (graph, reader, judge) and joins to the rows. `group` is what fills the column: `score`
    fills `ranking`, and `ragas` on request. `ceiling` is the best value that any ranking can reach, `worst`
    what a failed question counts in the zero-filled mean: 1 where less is better, so that a failure never helps. Of
    what it needs, `answers` are those that a text can contain, a `reference` is any answer, yes and no included.

    Example:
        >>> Metric("hit@1", "the first passage is gold", "ours", ("gold",), lambda batch: np.ceil(batch.recall(1)))
    """

    name: str
    meaning: str
    citation: str
    needs: tuple[Need, ...]
    compute: Callable[[Batch], FloatArray] | None = None
    ceiling: Callable[[GoldFacts], float] = lambda gold: 1.0
    higher_is_better: bool = True
    group: Group = "ranking"
    worst: float = 0.0

    @property
    def sign(self) -> float:
        """1 where higher is better, −1 where lower is: times a difference, positive is better."""
        return 1.0 if self.higher_is_better else -1.0

    def applies(self, question: BenchmarkQuestion) -> bool:
        """Whether the question has the gold that the metric needs."""
        if "gold" in self.needs and not question.gold:
            return False
        if "reference" in self.needs and question.answer is None:
            return False
        return "answers" not in self.needs or bool(scorable_answers(question.answers))


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """Metrics that differ in their cut-off, `NAME@k`: `at` makes the one of a k in 1..`largest`.

    Those of `cutoffs` run by default; any other is measured on request (`--metric NAME@k`).

    Example:
        >>> MetricFamily("recall", recall_at, cutoffs=(5, 10))
    """

    name: str
    at: Callable[[int], Metric]
    cutoffs: tuple[int, ...] = ()
    largest: int = 100

    def metric(self, k: int) -> Metric:
        """Make the metric of a cut-off. Raises InputError where the family has none, or gives it another name."""
        if not 1 <= k <= self.largest:
            raise InputError(f"metric {self.name}@{k}: the cut-off is outside 1..{self.largest}")
        made = self.at(k)
        if not isinstance(made, Metric) or made.name != f"{self.name}@{k}":
            raise InputError(f"the family {self.name!r} made {made!r} where the metric {self.name}@{k} belongs")
        return made


def gold_titles(gold: Sequence[str], titles: Mapping[str, str]) -> set[str]:
    """The titles of a gold set; a passage that the corpus lacks has one that no passage has."""
    return {titles.get(passage, f"\0{passage}") for passage in gold}


@dataclass(frozen=True, eq=False)
class Batch:
    """Answered questions with their rankings, and shared intermediate values, computed once."""

    benchmark: Benchmark
    questions: Sequence[BenchmarkQuestion]
    rankings: Sequence[PassageRanking]
    _shared: dict[str, object] = field(default_factory=dict, init=False)

    def once(self, name: str, compute: Callable[[Batch], T]) -> T:
        """Return what `compute` returns for this batch; a second call with the same name returns the same object."""
        if name not in self._shared:
            self._shared[name] = compute(self)
        return cast("T", self._shared[name])

    def content(self, passage_id: str) -> str:
        """Join a passage's title and text; nothing of a passage that the corpus lacks."""
        passage = self.benchmark.by_id.get(passage_id)
        if passage is None:
            return ""
        return f"{passage.title}. {passage.text}" if passage.title else passage.text

    @cached_property
    def gold(self) -> Sequence[frozenset[str]]:
        """Each question's gold passage ids, those of all its sets."""
        return [frozenset(q.gold) for q in self.questions]

    @cached_property
    def gold_sets(self) -> Sequence[tuple[int, tuple[str, ...]]]:
        """All gold sets, each with the position of its question in the batch."""
        return [(row, passages) for row, question in enumerate(self.questions) for passages in question.gold.sets]

    @cached_property
    def answers(self) -> Sequence[tuple[str, ...]]:
        """Match tokens of each question's answers; empty where text cannot show the answer (yes/no, none given)."""
        return [scorable_answers(q.answers) for q in self.questions]

    def best(self, values: Sequence[float] | FloatArray) -> FloatArray:
        """Take each question's best of the values of its gold sets, in the order of `gold_sets`; NaN without gold."""
        best = np.full(len(self.questions), np.nan)
        np.fmax.at(best, [row for row, _ in self.gold_sets], np.asarray(values, np.float64))
        return best

    def recall(self, k: int) -> FloatArray:
        """The share of each question's gold in the top k, (n,); NaN for questions without gold."""
        if k in CUTOFFS:
            return self.ir[f"R@{k}"]
        top = [frozenset(one.ranked_ids[:k]) for one in self.rankings]
        return self.best([len(top[row].intersection(gold)) / len(gold) for row, gold in self.gold_sets])

    @cached_property
    def ir(self) -> Mapping[str, FloatArray]:
        """IR_MEASURES → values by ir_measures (trec_eval), of each question's best gold set; NaN without gold."""
        binary = {str(n): dict.fromkeys(passages, 1) for n, (_, passages) in enumerate(self.gold_sets)}
        found = {name: self.best(values) for name, values in self._trec_eval(IR_MEASURES, binary).items()}
        graded = {
            str(n): q.gold.gains for n, (row, _) in enumerate(self.gold_sets) if (q := self.questions[row]).gold.graded
        }
        if graded:  # grades decide the gain; which passages are gold, the threshold
            chosen = list(map(int, graded))
            values = self._trec_eval(("nDCG@10",), graded)["nDCG@10"]
            found["nDCG@10"][[self.gold_sets[n][0] for n in chosen]] = values[chosen]
        return found

    def _trec_eval(self, names: Sequence[str], gains: Mapping[str, Mapping[str, int]]) -> dict[str, FloatArray]:
        """Measure → values of the gold sets whose positions (as text) `gains` has, with their passages' gains."""
        import ir_measures  # takes 0.2 s, which `hopbench strategies` does not need

        values = {name: np.full(len(self.gold_sets), np.nan) for name in names}
        if not gains:
            return values
        # trec_eval sorts by score and breaks ties by id; the negated rank keeps the ranking's own total order.
        ranks = [-float(i) for i in range(max((len(r.ranked_ids) for r in self.rankings), default=0))]
        scored = [dict(zip(one.ranked_ids, ranks, strict=False)) for one in self.rankings]
        run = {n: scored[self.gold_sets[int(n)][0]] for n in gains}
        measures = {name: ir_measures.parse_measure(name) for name in names}
        name_of = {id(measure): name for name, measure in measures.items()}
        for cell in ir_measures.pytrec_eval.iter_calc(list(measures.values()), gains, run):
            # Spelling out a measure 3,000 times takes longer than computing it.
            name = name_of.get(id(cell.measure)) or str(cell.measure)
            values[name][int(cell.query_id)] = cell.value
        return values
