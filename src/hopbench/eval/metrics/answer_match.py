"""A reader's answer against the gold answer, exactly as the official HotpotQA script scores it.

The script knows one gold answer; where a benchmark gives aliases, the best match counts, as in its successors
(2WikiMultihopQA, MuSiQue).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hopbench.eval.metrics.base import Metric
from hopbench.eval.metrics.normalise import UNSHOWABLE, normalise_answer

CITATION = "`exact_match_score` and `f1_score` of hotpot_evaluate_v1.py (Yang et al., EMNLP 2018)"


def exact_match(prediction: str, answers: Iterable[str]) -> float:
    """1 if the normalised prediction equals a normalised answer: "The U.S.A." is "usa"."""
    return float(normalise_answer(prediction) in {normalise_answer(answer) for answer in answers})


def answer_f1(prediction: str, answers: Iterable[str]) -> float:
    """The best token F1 with an answer; yes, no and noanswer match only themselves ("no" is not half of "no one")."""
    return max((_f1(normalise_answer(prediction), normalise_answer(answer)) for answer in answers), default=0.0)


def _f1(prediction: str, answer: str) -> float:
    if prediction != answer and (prediction in UNSHOWABLE or answer in UNSHOWABLE):
        return 0.0
    predicted, expected = prediction.split(), answer.split()
    same = sum((Counter(predicted) & Counter(expected)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(predicted), same / len(expected)
    return 2 * precision * recall / (precision + recall)


METRICS = (
    Metric(
        "answer_em",
        "the reader's answer equals the gold answer or an alias after normalisation",
        CITATION,
        ("reference", "reader"),
        group="answer",
    ),
    Metric(
        "answer_f1",
        "token F1 of the reader's answer with the gold answer or the best alias",
        CITATION,
        ("reference", "reader"),
        group="answer",
    ),
)
