"""Metrics of the ranked passage list against the gold passages, by ir_measures (trec_eval's definitions)."""

from __future__ import annotations

import numpy as np

from hopbench.eval.metrics.base import CUTOFFS, Batch, FloatArray, GoldFacts, Metric, MetricFamily

TREC = "trec_eval via ir_measures (MacAvaney et al., ECIR 2022, https://ir-measur.es)"
FULL_EVIDENCE = "full-evidence retrieval as in MDR (Xiong et al., ICLR 2021, arXiv 2009.12756: 'P EM')"


def recall_at(k: int) -> Metric:
    """The `recall@k` metric: 2 gold, one in the top k → .5."""

    def compute(batch: Batch) -> FloatArray:
        return batch.recall(k)

    def ceiling(gold: GoldFacts) -> float:
        return min(k, gold.present) / gold.passages

    return Metric(f"recall@{k}", f"share of the gold passages in the top {k}", TREC, ("gold",), compute, ceiling)


def all_gold_at(k: int) -> Metric:
    """The `all_gold@k` metric: 1 if every gold passage is in the top k, else 0; always 0 for more than k gold."""

    def compute(batch: Batch) -> FloatArray:
        recall = batch.recall(k)
        return np.where(np.isnan(recall), np.nan, recall == 1.0)

    def ceiling(gold: GoldFacts) -> float:
        return float(gold.passages <= k and not gold.missing)

    meaning = f"every gold passage is in the top {k}"
    return Metric(f"all_gold@{k}", meaning, FULL_EVIDENCE, ("gold",), compute, ceiling)


NDCG = Metric(
    "nDCG@10",
    "discounted gain (grades, else 1 for gold) of the top 10 over that of an ideal ranking",
    f"Järvelin and Kekäläinen, TOIS 2002; {TREC}",
    ("gold",),
    lambda batch: batch.ir["nDCG@10"],
    lambda gold: gold.ndcg,
)

MRR = Metric(
    "MRR",
    "1 / rank of the first gold passage in the whole ranking, 0 if absent",
    f"Kantor and Voorhees, TREC-5 (1997); {TREC}",
    ("gold",),
    lambda batch: batch.ir["RR"],
    lambda gold: float(gold.present > 0),
)

METRICS = (MetricFamily("all_gold", all_gold_at, CUTOFFS), MetricFamily("recall", recall_at, CUTOFFS), NDCG, MRR)
