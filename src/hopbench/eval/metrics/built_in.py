"""The built-in metrics with their meaning, citation, needs and ceiling; `ragas_context` has RAGAS's without a model.

RANKING compares the ranked passages with the gold ones by ir_measures (trec_eval's definitions). ANSWERS ask whether
retrieved text contains the answer, whatever the gold is. TITLES are supporting-title precision, recall and F1 of the
budgeted context: HotpotQA's script compares sets of (title, sentence), retrieval returns whole passages. REACH and
JUDGED are measured elsewhere and joined to the rows of `score`. ANSWER_MATCH compares a reader's answer with the gold
one as HotpotQA's script does; where there are aliases the best match counts, as in 2WikiMultihopQA and MuSiQue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from hopbench.eval.metrics.base import CUTOFFS, Batch, FloatArray, GoldFacts, Metric, MetricFamily, Need, gold_titles
from hopbench.eval.metrics.containment import UNSHOWABLE, contains_answer, normalise_answer
from hopbench.retrieval.text.model_tokens import count_tokens, first_tokens

TREC = "trec_eval via ir_measures (MacAvaney et al., ECIR 2022, https://ir-measur.es)"
FULL_EVIDENCE = "full-evidence retrieval as in MDR (Xiong et al., ICLR 2021, arXiv 2009.12756: 'P EM')"


def recall_at(k: int) -> Metric:
    """The `recall@k` metric: 2 gold, one in the top k → 0.5."""

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

RANKING = (MetricFamily("all_gold", all_gold_at, CUTOFFS), MetricFamily("recall", recall_at, CUTOFFS), NDCG, MRR)


DPR = "top-k retrieval accuracy (DPR, Karpukhin et al., EMNLP 2020)"
ANSWER_CUTOFFS = (5, 10)
TOKEN_CUTOFFS = (300, 700)  # about what five HotpotQA passages take, and the same with a full graph block
NOT_APPLICABLE = "yes/no questions do not count"


def _context_contains(batch: Batch) -> FloatArray:
    values = np.full(len(batch.questions), np.nan)
    for i, (answers, ranking) in enumerate(zip(batch.answers, batch.rankings, strict=True)):
        if answers:
            values[i] = any(contains_answer(part, answers) for part in ranking.context_parts)
    return values


HAS_ANSWER = Metric(
    "has_answer",
    f"the budgeted context contains the answer or an alias; {NOT_APPLICABLE}",
    DPR,
    ("answers", "context"),
    _context_contains,
)


def _answer_ranks(batch: Batch) -> FloatArray:
    """Rank (from 1) of the first passage that contains an answer, inf below the last cutoff; NaN: not applicable."""
    ranks = np.full(len(batch.questions), np.nan)
    for i, (answers, ranking) in enumerate(zip(batch.answers, batch.rankings, strict=True)):
        if answers:
            top = enumerate(ranking.ranked_ids[: max(ANSWER_CUTOFFS)], start=1)
            hits = (rank for rank, p in top if contains_answer(batch.content(p), answers))
            ranks[i] = next(hits, np.inf)
    return ranks


def has_answer_at(k: int) -> Metric:
    """The `has_answer@k` metric: one of the top k passages (title and text, no budget) contains an answer."""

    def compute(batch: Batch) -> FloatArray:
        rank = batch.once("answer_ranks", _answer_ranks)
        return np.where(np.isnan(rank), np.nan, rank <= k)

    meaning = f"one of the top {k} passages contains the answer or an alias; {NOT_APPLICABLE}"
    return Metric(f"has_answer@{k}", meaning, DPR, ("answers",), compute)


def _answer_tokens(batch: Batch, limit: int) -> FloatArray:
    """Whether the first `limit` tokens contain an answer: the graph block, then the passages as ranked."""
    values = np.full(len(batch.questions), np.nan)
    for i, (answers, ranking) in enumerate(zip(batch.answers, batch.rankings, strict=True)):
        if answers:
            parts = (ranking.graph_context, *map(batch.content, ranking.ranked_ids))
            values[i] = any(contains_answer(part, answers) for part in _within(parts, limit))
    return values


def _within(parts: Iterable[str], left: int) -> Iterator[str]:
    """The parts that fit into `left` tokens, the last one cut."""
    for part in parts:
        if left <= 0:
            return
        yield first_tokens(part, left)
        left -= count_tokens(part)


def has_answer_in(tokens: int) -> Metric:
    """The `has_answer@Nt` metric: all labels fill the same number of tokens, however many passages that takes."""
    meaning = (
        f"the first {tokens} tokens, the graph block and then passages as ranked, contain the answer or an alias: "
        f"labels at equal context; {NOT_APPLICABLE}"
    )
    return Metric(f"has_answer@{tokens}t", meaning, DPR, ("answers",), lambda batch: _answer_tokens(batch, tokens))


ANSWERS = (
    HAS_ANSWER,
    *(has_answer_at(k) for k in ANSWER_CUTOFFS),
    *(has_answer_in(tokens) for tokens in TOKEN_CUTOFFS),
)


HOTPOTQA_TITLES = "`update_sp` of hotpot_evaluate_v1.py (Yang et al., EMNLP 2018), on titles"


def _share(hits: int, total: int) -> float:
    return hits / total if total else 0.0


def _harmonic_mean(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _per_question(batch: Batch, value: Callable[[set[str], set[str]], float]) -> FloatArray:
    title = batch.benchmark.titles
    found = [{title[p] for p in ranking.context_ids} for ranking in batch.rankings]
    return batch.best([value(found[row], gold_titles(gold, title)) for row, gold in batch.gold_sets])


def _precision(titles: set[str], gold: set[str]) -> float:
    return _share(len(titles & gold), len(titles))


def _recall(titles: set[str], gold: set[str]) -> float:
    return _share(len(titles & gold), len(gold))


def _title_f1(titles: set[str], gold: set[str]) -> float:
    return _harmonic_mean(_precision(titles, gold), _recall(titles, gold))


def _recall_ceiling(gold: GoldFacts) -> float:
    return min(gold.titles - gold.missing, gold.context_passages) / gold.titles


PRECISION = Metric(
    "title_precision",
    "share of the titles in the budgeted context that are gold titles",
    HOTPOTQA_TITLES,
    ("gold", "context"),
    lambda batch: _per_question(batch, _precision),
)
RECALL = Metric(
    "title_recall",
    "share of the gold titles that are in the budgeted context",
    HOTPOTQA_TITLES,
    ("gold", "context"),
    lambda batch: _per_question(batch, _recall),
    _recall_ceiling,
)
F1 = Metric(
    "title_f1",
    "harmonic mean of title_precision and title_recall, per question",
    HOTPOTQA_TITLES,
    ("gold", "context"),
    lambda batch: _per_question(batch, _title_f1),
    lambda gold: _harmonic_mean(1.0, _recall_ceiling(gold)),
)

TITLES = (PRECISION, RECALL, F1)


MAX_HOPS = 3
DEFINITION = "HopBench docs, metrics: reach@h"
RAGAS = "RAGAS 0.4 collections (Es et al., EACL 2024, arXiv 2309.15217), https://docs.ragas.io"

REACH = (
    *(
        Metric(
            f"reach@{h}",
            f"every gold passage lies within {h} expansion steps of the strategy's seeds",
            DEFINITION,
            ("gold", "graph"),
            group="graph",
        )
        for h in range(MAX_HOPS + 1)
    ),
    *(
        Metric(
            f"reach_share@{h}",
            f"share of the corpus within {h} expansion steps of the strategy's seeds: what reach@{h} costs",
            DEFINITION,
            ("graph",),
            higher_is_better=False,
            group="graph",
        )
        for h in range(MAX_HOPS + 1)
    ),
)


def _judged(name: str, meaning: str, *needs: Need, lower: bool = False) -> Metric:
    worst = 1.0 if lower else 0.0
    return Metric(name, meaning, RAGAS, (*needs, "judge"), higher_is_better=not lower, group="judge", worst=worst)


JUDGED = (
    _judged(
        "context_precision",
        "average precision of the context's parts that were useful for the gold answer",
        "reference",
        "context",
    ),
    _judged(
        "context_recall", "share of the gold answer's statements that the context supports", "reference", "context"
    ),
    _judged(
        "context_entity_recall", "share of the gold answer's entities that the context names", "reference", "context"
    ),
    _judged("faithfulness", "share of the answer's statements that the context supports", "reader", "context"),
    _judged("answer_relevancy", "mean cosine of the question with questions made from the answer alone", "reader"),
    _judged(
        "factual_correctness",
        "F1 of the claims of the answer and of the gold answer, each checked in the other",
        "reference",
        "reader",
    ),
    _judged(
        "answer_correctness",
        "0.75 × F1 of the answer's statements with the gold answer's + 0.25 × cosine of the two",
        "reference",
        "reader",
    ),
    _judged(
        "noise_sensitivity",
        "share of the answer's statements that are wrong although a useful part of the context supports them",
        "reference",
        "reader",
        "context",
        lower=True,
    ),
)


HOTPOTQA_ANSWERS = "`exact_match_score` and `f1_score` of hotpot_evaluate_v1.py (Yang et al., EMNLP 2018)"


def exact_match(prediction: str, answers: Iterable[str]) -> float:
    """1 if the normalised prediction equals a normalised answer: "The U.S.A." is "usa"."""
    return float(normalise_answer(prediction) in {normalise_answer(answer) for answer in answers})


def answer_f1(prediction: str, answers: Iterable[str]) -> float:
    """The best token F1 with an answer; yes, no and noanswer match only themselves ("no" is not half of "no one")."""
    return max((_token_f1(normalise_answer(prediction), normalise_answer(answer)) for answer in answers), default=0.0)


def _token_f1(prediction: str, answer: str) -> float:
    if prediction != answer and (prediction in UNSHOWABLE or answer in UNSHOWABLE):
        return 0.0
    predicted, expected = prediction.split(), answer.split()
    same = sum((Counter(predicted) & Counter(expected)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(predicted), same / len(expected)
    return 2 * precision * recall / (precision + recall)


ANSWER_MATCH = (
    Metric(
        "answer_em",
        "the reader's answer equals the gold answer or an alias after normalisation",
        HOTPOTQA_ANSWERS,
        ("reference", "reader"),
        group="answer",
    ),
    Metric(
        "answer_f1",
        "token F1 of the reader's answer with the gold answer or the best alias",
        HOTPOTQA_ANSWERS,
        ("reference", "reader"),
        group="answer",
    ),
)
