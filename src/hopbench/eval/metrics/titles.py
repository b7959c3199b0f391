"""Supporting-title precision, recall and F1 of the budgeted context, as HotpotQA scores supporting facts.

The official script compares sets of (title, sentence); retrieval returns whole passages, so the titles are compared.
Empty contexts score 0, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hopbench.eval.metrics.base import Batch, FloatArray, GoldFacts, Metric

CITATION = "`update_sp` of hotpot_evaluate_v1.py (Yang et al., EMNLP 2018), on titles"


def _share(hits: int, total: int) -> float:
    return hits / total if total else 0.0


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _per_question(batch: Batch, value: Callable[[set[str], set[str]], float]) -> FloatArray:
    title = batch.benchmark.titles
    found = [{title[p] for p in ranking.context_ids} for ranking in batch.rankings]
    return batch.best([value(found[row], gold_titles(gold, title)) for row, gold in batch.gold_sets])


def gold_titles(gold: Sequence[str], titles: Mapping[str, str]) -> set[str]:
    """The titles of a gold set; a passage that the corpus lacks has one that no passage has."""
    return {titles.get(passage, f"\0{passage}") for passage in gold}


def _precision(titles: set[str], gold: set[str]) -> float:
    return _share(len(titles & gold), len(titles))


def _recall(titles: set[str], gold: set[str]) -> float:
    return _share(len(titles & gold), len(gold))


def _recall_ceiling(gold: GoldFacts) -> float:
    return min(gold.titles - gold.missing, gold.context_passages) / gold.titles


PRECISION = Metric(
    "title_precision",
    "share of the titles in the budgeted context that are gold titles",
    CITATION,
    ("gold", "context"),
    lambda batch: _per_question(batch, _precision),
)
RECALL = Metric(
    "title_recall",
    "share of the gold titles that are in the budgeted context",
    CITATION,
    ("gold", "context"),
    lambda batch: _per_question(batch, _recall),
    _recall_ceiling,
)
F1 = Metric(
    "title_f1",
    "harmonic mean of title_precision and title_recall, per question",
    CITATION,
    ("gold", "context"),
    lambda batch: _per_question(batch, lambda titles, gold: _f1(_precision(titles, gold), _recall(titles, gold))),
    lambda gold: _f1(1.0, _recall_ceiling(gold)),
)

METRICS = (PRECISION, RECALL, F1)
