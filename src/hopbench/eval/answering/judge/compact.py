"""The compact profile: one short structured call for each metric, scored by RAGAS's own formulas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from hopbench.eval.answering.judge import compact_prompts as prompts
from hopbench.eval.answering.judge.asker import Asker
from hopbench.eval.answering.judge.compact_prompts import Checked, Prompt
from hopbench.eval.answering.judge.sample import Sample
from hopbench.eval.metrics.containment import RULE, contains_answer, match_tokens
from hopbench.retrieval.embedding.base import Embedder

PROMPTS: dict[str, Prompt] = {
    "context_precision": prompts.USEFUL,
    "context_recall": prompts.RECALL,
    "context_entity_recall": prompts.ENTITIES,
    "faithfulness": prompts.FAITHFUL,
    "answer_relevancy": prompts.ASKED,
    "factual_correctness": prompts.CLAIMS,
    "answer_correctness": prompts.CLAIMS,
    "noise_sensitivity": prompts.NOISE,
}
_ARTICLE = re.compile(r"^(a|an|the) (?=\S)", re.IGNORECASE)  # models write "the Lindholm Bridge"
FACTUALITY = 0.75  # of answer_correctness, RAGAS's default; the rest is similarity


class CompactJudge:
    """Scores samples with the prompts of `compact_prompts`."""

    profile = "compact"

    def __init__(self, asker: Asker, embedder: Embedder) -> None:
        self._asker = asker
        self._embedder = embedder

    @staticmethod
    def version(metric: str) -> str:
        """The version of the metric's prompt and schema, and of the rule by which names are found."""
        prompt = PROMPTS[metric].version
        return f"{prompt} {RULE}" if metric == "context_entity_recall" else prompt

    async def score(self, metric: str, sample: Sample) -> float:
        """The score of a sample. Raises what the asker raises."""
        prompt = PROMPTS[metric]
        output: Any = await self._asker(prompt.text(sample), prompt.output(sample))
        if metric == "context_precision":
            return average_precision(output.useful)
        if metric in ("context_recall", "faithfulness"):
            return supported(output.statements)
        if metric == "context_entity_recall":
            return named(output.entities, sample.contexts)
        if metric == "factual_correctness":
            return round(claims_f1(output.given, output.reference), 2)  # as RAGAS rounds it
        if metric == "noise_sensitivity":
            return noise(output)
        return self._embedded(metric, output, sample)

    def _embedded(self, metric: str, output: Any, sample: Sample) -> float:
        if metric == "answer_relevancy":
            return 0.0 if output.noncommittal else self._cosine(sample.question, output.question)
        similarity = self._cosine(str(sample.response), str(sample.reference))
        return FACTUALITY * claims_f1(output.given, output.reference) + (1 - FACTUALITY) * similarity

    def _cosine(self, first_text: str, second_text: str) -> float:
        first, second = self._embedder.embed([first_text, second_text])
        return float(np.dot(first, second))


def average_precision(useful: Sequence[int]) -> float:
    """[1, 0, 1] → (1/1 + 2/3) / 2; 0 without a useful one."""
    hits = np.cumsum(useful) / np.arange(1, len(useful) + 1)
    return float((hits * np.asarray(useful)).sum() / max(1, sum(useful)))


def supported(statements: Sequence[Checked]) -> float:
    """The share of statements that are supported."""
    return sum(statement.supported for statement in statements) / len(statements)


def named(entities: Sequence[str], contexts: Sequence[str]) -> float:
    """The share of entities that occur in the contexts, compared as answers are; NaN without entities.

    RAGAS lets the model list the contexts' entities and compares spellings; here the contexts are searched directly.
    """
    wanted = {tokens for entity in entities if (tokens := match_tokens(_ARTICLE.sub("", entity))).strip()}
    if not wanted:
        return float("nan")
    return sum(any(contains_answer(text, [entity]) for text in contexts) for entity in wanted) / len(wanted)


def claims_f1(given: Sequence[Checked], reference: Sequence[Checked]) -> float:
    """F1 from the given statements that are right (TP) or not (FP) and the reference's that are not given (FN)."""
    right = sum(statement.supported for statement in given)
    wrong = len(given) - right
    absent = sum(not statement.supported for statement in reference)
    return 2 * right / (2 * right + wrong + absent) if right else 0.0


def noise(output: Any) -> float:
    """The share of statements that are wrong and supported by a passage that also supports the reference answer."""
    useful = set(output.useful)
    misled = [not statement.correct and bool(useful & set(statement.passages)) for statement in output.statements]
    return sum(misled) / len(misled)
