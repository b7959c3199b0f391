"""What reading and judging will take, before anything is spent: calls and tokens by label and metric.

A few questions of the benchmark, with what BM25 finds for them and the gold answer in place of the reader's, go through
the real prompts of reader and judge with a stand-in for the model.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from eval.answers import CLOSED_BOOK, messages
from eval.judge.compact import CompactJudge
from eval.judge.full import FullJudge
from eval.judge.sample import Sample, reference
from eval.judge.schedule import Scorer
from eval.judge.standin import CHAT_TOKENS, CountingAsker, OneDirection
from eval.reading import applicable
from eval.types import Benchmark
from retrieval.budget import Budget
from retrieval.chunking import chunk_passages, count_tokens
from retrieval.search import LexicalIndex

SAMPLED = 8
ANSWER_TOKENS = 32  # a bare answer and a sentence in JSON


@dataclass(frozen=True, slots=True)
class Line:
    """One purpose of one label: all its calls and their tokens."""

    label: str
    purpose: str
    role: str
    calls: float
    tokens_in: float
    tokens_out: float

    def times(self, factor: float) -> Line:
        """The line for `factor` times as much work."""
        return replace(
            self, calls=self.calls * factor, tokens_in=self.tokens_in * factor, tokens_out=self.tokens_out * factor
        )


def typical_samples(benchmark: Benchmark, most: int = SAMPLED) -> list[Sample]:
    """Some questions, evenly spread, with BM25's context and the gold answer as the answer."""
    step = max(1, len(benchmark.questions) // most)
    chosen = benchmark.questions[::step][:most]
    chunks = chunk_passages(benchmark.passages)
    lexical = LexicalIndex([chunk.content for chunk in chunks])
    found = lexical.top([question.text for question in chosen], Budget().chunks)
    samples = []
    for question, candidates in zip(chosen, found, strict=True):
        _, parts = Budget().parts([chunks[row] for row in candidates.rows])
        gold = reference(question)
        samples.append(Sample(question.id, question.text, tuple(parts), gold, gold or question.text))
    return samples


def answer_line(label: str, samples: Sequence[Sample], questions: int) -> Line:
    """What answering a label's questions takes."""
    contexts = ["" if label == CLOSED_BOOK else "\n\n".join(sample.contexts) for sample in samples]
    prompts = [json.dumps(messages(sample.question, text)) for sample, text in zip(samples, contexts, strict=True)]
    tokens = sum(map(count_tokens, prompts)) / len(prompts) + CHAT_TOKENS
    return Line(label, "answer", "llm", questions, questions * tokens, questions * ANSWER_TOKENS)


def judge_lines(
    labels: Sequence[str],
    profile: str,
    metrics: Sequence[str],
    samples: Sequence[Sample],
    *,
    questions: int,
    answered: bool,
    repeats: int,
) -> list[Line]:
    """What judging every label takes, a line per metric."""
    per_question = {metric: _counted(profile, metric, samples) for metric in metrics}
    return [
        replace(per_question[metric], label=label).times(questions * repeats)
        for label in labels
        for metric in applicable(metrics, label, answered)
    ]


def _counted(profile: str, metric: str, samples: Sequence[Sample]) -> Line:
    asker = CountingAsker()
    scorer: Scorer = (FullJudge if profile == "full" else CompactJudge)(asker, OneDirection())
    able = [sample for sample in samples if sample.missing(metric) is None]

    async def score() -> None:
        for sample in able:
            await scorer.score(metric, sample)

    asyncio.run(score())
    share = 1 / max(1, len(samples))
    line = Line("", f"judge:{metric}", "judge", asker.calls, asker.tokens_in, asker.tokens_out)
    return line.times(share)
