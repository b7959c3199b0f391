"""The built-in metrics with their meaning, citation, needs and ceiling; `ragas_context` has RAGAS's without a model.

RANKING compares the ranked passages with the gold ones by ir_measures (trec_eval's definitions). ANSWERS ask whether
retrieved text contains the answer, whatever the gold is. TITLES are supporting-title precision, recall and F1 of the
budgeted context: HotpotQA's script compares sets of (title, sentence), retrieval returns whole passages. REACH and
JUDGED are measured elsewhere and joined to the rows of `score`. ANSWER_MATCH compares a reader's answer with the gold
one as HotpotQA's script does; where there are aliases the best match counts, as in 2WikiMultihopQA and MuSiQue.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from hopbench.eval.metrics.base import CUTOFFS, Batch, FloatArray, GoldFacts, Metric, MetricFamily, Need, gold_titles
from hopbench.eval.metrics.containment import UNSHOWABLE, contains_answer, normalise_answer
from hopbench.eval.types import PassageRanking
from hopbench.retrieval.text.model_tokens import count_tokens, first_tokens

TREC = "trec_eval via ir_measures (MacAvaney et al., ECIR 2022, https://ir-measur.es)"
FULL_EVIDENCE = "full-evidence retrieval as in MDR (Xiong et al., ICLR 2021, arXiv 2009.12756: 'P EM')"


def recall_at(k: int) -> Metric:
    """The `recall@k` metric: 2 gold, one in the top k → 0.5."""
    return Metric(
        f"recall@{k}",
        f"share of the gold passages in the top {k}",
        TREC,
        ("gold",),
        lambda batch: batch.recall(k),
        lambda gold: min(k, gold.present) / gold.passages,
    )


def all_gold_at(k: int) -> Metric:
    """The `all_gold@k` metric: 1 if every gold passage is in the top k, else 0; always 0 for more than k gold."""
    return Metric(
        f"all_gold@{k}",
        f"every gold passage is in the top {k}",
        FULL_EVIDENCE,
        ("gold",),
        lambda batch: np.where(np.isnan(recall := batch.recall(k)), np.nan, recall == 1.0),
        lambda gold: float(gold.passages <= k and not gold.missing),
    )


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


def _answer_rank(batch: Batch, texts: Callable[[PassageRanking], Iterable[str]]) -> FloatArray:
    """Position (from 1) of each ranking's first text that contains an answer, inf for none; NaN: not applicable."""
    ranks = np.full(len(batch.questions), np.nan)
    for i, (answers, ranking) in enumerate(zip(batch.answers, batch.rankings, strict=True)):
        if answers:
            hits = (rank for rank, text in enumerate(texts(ranking), start=1) if contains_answer(text, answers))
            ranks[i] = next(hits, np.inf)
    return ranks


def _contains_answer(rank: FloatArray, k: int = sys.maxsize) -> FloatArray:
    return np.where(np.isnan(rank), np.nan, rank <= k)


def has_answer_at(k: int) -> Metric:
    """The `has_answer@k` metric: one of the top k passages (title and text, no budget) contains an answer."""

    def compute(batch: Batch) -> FloatArray:
        top = max(ANSWER_CUTOFFS)
        ranks = batch.once("answer_ranks", lambda b: _answer_rank(b, lambda r: map(b.content, r.ranked_ids[:top])))
        return _contains_answer(ranks, k)

    meaning = f"one of the top {k} passages contains the answer or an alias; {NOT_APPLICABLE}"
    return Metric(f"has_answer@{k}", meaning, DPR, ("answers",), compute)


def has_answer_in(tokens: int) -> Metric:
    """The `has_answer@Nt` metric: all labels fill the same number of tokens, however many passages that takes."""

    def compute(batch: Batch) -> FloatArray:
        def within(ranking: PassageRanking) -> Iterator[str]:
            """The parts that fit into the tokens, the last one cut."""
            left = tokens
            for part in (ranking.graph_context, *map(batch.content, ranking.ranked_ids)):
                if left <= 0:
                    return
                yield first_tokens(part, left)
                left -= count_tokens(part)

        return _contains_answer(_answer_rank(batch, within))

    meaning = (
        f"the first {tokens} tokens, the graph block and then passages as ranked, contain the answer or an alias: "
        f"labels at equal context; {NOT_APPLICABLE}"
    )
    return Metric(f"has_answer@{tokens}t", meaning, DPR, ("answers",), compute)


ANSWERS = (
    Metric(
        "has_answer",
        f"the budgeted context contains the answer or an alias; {NOT_APPLICABLE}",
        DPR,
        ("answers", "context"),
        lambda batch: _contains_answer(_answer_rank(batch, lambda ranking: ranking.context_parts)),
    ),
    *map(has_answer_at, ANSWER_CUTOFFS),
    *map(has_answer_in, TOKEN_CUTOFFS),
)


HOTPOTQA_TITLES = "`update_sp` of hotpot_evaluate_v1.py (Yang et al., EMNLP 2018), on titles"


def _title_scores(batch: Batch) -> FloatArray:
    """Precision, recall and F1 (3, n) of the titles in each question's context, of its best gold set."""
    title = batch.benchmark.titles
    found = [{title[p] for p in ranking.context_ids} for ranking in batch.rankings]
    scores = []
    for row, gold in batch.gold_sets:
        wanted = gold_titles(gold, title)
        hits = len(found[row] & wanted)
        precision, recall = hits / len(found[row]) if hits else 0.0, hits / len(wanted)
        scores.append((precision, recall, 2 * precision * recall / (precision + recall) if hits else 0.0))
    return np.array([batch.best(values) for values in np.reshape(scores, (-1, 3)).T])


def _title_recall_ceiling(gold: GoldFacts) -> float:
    return min(gold.titles - gold.missing, gold.context_passages) / gold.titles


TITLES = (
    Metric(
        "title_precision",
        "share of the titles in the budgeted context that are gold titles",
        HOTPOTQA_TITLES,
        ("gold", "context"),
        lambda batch: batch.once("titles", _title_scores)[0],
    ),
    Metric(
        "title_recall",
        "share of the gold titles that are in the budgeted context",
        HOTPOTQA_TITLES,
        ("gold", "context"),
        lambda batch: batch.once("titles", _title_scores)[1],
        _title_recall_ceiling,
    ),
    Metric(
        "title_f1",
        "harmonic mean of title_precision and title_recall, per question",
        HOTPOTQA_TITLES,
        ("gold", "context"),
        lambda batch: batch.once("titles", _title_scores)[2],
        lambda gold: 2 * (recall := _title_recall_ceiling(gold)) / (1.0 + recall),
    ),
)


MAX_HOPS = 3
DEFINITION = "HopBench docs, metrics: reach@h"

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


RAGAS = "RAGAS 0.4 collections (Es et al., EACL 2024, arXiv 2309.15217), https://docs.ragas.io"
_JUDGED: tuple[tuple[str, tuple[Need, ...], str], ...] = (
    (
        "context_precision",
        ("reference", "context"),
        "average precision of the context's parts that were useful for the gold answer",
    ),
    ("context_recall", ("reference", "context"), "share of the gold answer's statements that the context supports"),
    ("context_entity_recall", ("reference", "context"), "share of the gold answer's entities that the context names"),
    ("faithfulness", ("reader", "context"), "share of the answer's statements that the context supports"),
    ("answer_relevancy", ("reader",), "mean cosine of the question with questions made from the answer alone"),
    (
        "factual_correctness",
        ("reference", "reader"),
        "F1 of the claims of the answer and of the gold answer, each checked in the other",
    ),
    (
        "answer_correctness",
        ("reference", "reader"),
        "0.75 × F1 of the answer's statements with the gold answer's + 0.25 × cosine of the two",
    ),
)

JUDGED = (
    *(Metric(name, meaning, RAGAS, (*needs, "judge"), group="judge") for name, needs, meaning in _JUDGED),
    Metric(
        "noise_sensitivity",
        "share of the answer's statements that are wrong although a useful part of the context supports them",
        RAGAS,
        ("reference", "reader", "context", "judge"),
        higher_is_better=False,
        group="judge",
        worst=1.0,
    ),
)


HOTPOTQA_ANSWERS = "`exact_match_score` and `f1_score` of hotpot_evaluate_v1.py (Yang et al., EMNLP 2018)"

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


def exact_match(prediction: str, answers: Iterable[str]) -> float:
    """1 if the normalised prediction equals a normalised answer: "The U.S.A." is "usa"."""
    return float(normalise_answer(prediction) in {normalise_answer(answer) for answer in answers})


def answer_f1(prediction: str, answers: Iterable[str]) -> float:
    """The best token F1 with an answer; yes, no and noanswer match only themselves ("no" is not half of "no one")."""
    predicted, best = normalise_answer(prediction), 0.0
    for expected in map(normalise_answer, answers):
        if predicted != expected and not UNSHOWABLE.isdisjoint((predicted, expected)):
            continue
        tokens, wanted = predicted.split(), expected.split()
        if same := sum((Counter(tokens) & Counter(wanted)).values()):
            precision, recall = same / len(tokens), same / len(wanted)
            best = max(best, 2 * precision * recall / (precision + recall))
    return best
