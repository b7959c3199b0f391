"""A judged label's questions for MLflow's traces: passages, answer and scores, a line of JSON each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import write_atomically

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.eval.types import BenchmarkQuestion

MAX_TRACES = 200
"""Of each label: a trace costs MLflow about as much as a trial, and nobody reads more."""


def write_judged(evaluation: Evaluation, label: str, file: Path) -> Path | None:
    """Write the label's first judged questions to `file`; None where it was not judged."""
    judged = evaluation.read.judged
    if judged is None or label not in judged.labels:
        return None
    columns = judged.columns(label)
    failures = judged.failures(label).to_dict()
    scores = columns.astype(object).where(columns.notna(), None).to_dict("index")
    lines = [
        json.dumps(
            {
                **_asked(evaluation, label, question),
                "scores": scores[question.id],
                "judge": str(judged.judge["llm"]),
                "judge_failure": failures.get(question.id),
            },
            ensure_ascii=False,
        )
        for question in evaluation.plan.benchmark.questions
        if question.id in scores
    ]
    write_atomically(file, "\n".join(lines[:MAX_TRACES]).encode())
    return file


def _asked(evaluation: Evaluation, label: str, question: BenchmarkQuestion) -> dict[str, Any]:
    """The question, what the strategy found for it, and what the reader answered."""
    ranking = evaluation.trials[label].rankings[question.id]
    answer = evaluation.read.answers.get(label, {}).get(question.id)
    ids = [*(["graph"] if ranking.graph_context else []), *ranking.context_ids]
    titles = evaluation.plan.benchmark.titles
    passages = [
        {"id": name, "title": titles.get(name, ""), "text": text}
        for name, text in zip(ids, ranking.context_parts, strict=False)
    ]
    return {
        "id": question.id,
        "question": question.text,
        "expected": question.answer,
        "passages": passages,
        "reader": evaluation.read.reader,
        "answer": answer.statement or answer.answer if answer is not None else None,
        "failure": ranking.failure or (answer.failure if answer is not None else None),
    }
