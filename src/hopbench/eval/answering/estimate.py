"""Estimates calls and tokens of answering and judging, by label and metric, before any money is spent.

The real prompts of reader and judge are filled with a few questions of the benchmark, BM25's passages and the gold
answers; a stand-in for the model counts the calls and tokens. RAGAS's own code runs on it, so the number of calls and
the prompts are real; the length of answers is assumed: two statements in a list, a dozen words in a statement, twice as
many in a reason.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import BaseModel

from hopbench.eval.answering.answers import CLOSED_BOOK, messages
from hopbench.eval.answering.judge.profiles import CompactJudge, FullJudge
from hopbench.eval.answering.judge.sample import Sample, reference
from hopbench.eval.answering.reading import applicable
from hopbench.eval.types import Benchmark
from hopbench.retrieval.context import Budget
from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.graph.extract.model import PASSAGES_PER_CALL, opening, parts_of
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.question.model import ENTITIES, OTHER_NAMES, SUMMARY, TWO_LEVELS
from hopbench.retrieval.search.exact import LexicalIndex
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import Counters, Question

WORDS = {"reason": 24, "statement": 12, "question": 12}
OTHER_WORDS = 8
ITEMS = 2
CHAT_TOKENS = 8  # what a chat format adds to a prompt


@dataclass
class CountingAsker:
    """Counts calls and tokens."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    async def __call__(self, prompt: str, wanted: type[BaseModel]) -> BaseModel:
        """A typical value of what is wanted."""
        schema = wanted.model_json_schema()
        value = typical(schema, schema.get("$defs", {}))
        self.calls += 1
        self.tokens_in += count_tokens(prompt) + CHAT_TOKENS
        self.tokens_out += count_tokens(json.dumps(value))
        return wanted.model_validate(value)


def typical(schema: Mapping[str, Any], known: Mapping[str, Any], name: str = "") -> Any:
    """A value of the schema with as many words and items as usual."""
    if "$ref" in schema:
        return typical(known[schema["$ref"].rpartition("/")[2]], known, name)
    if "enum" in schema:
        return schema["enum"][-1]
    kind = schema.get("type")
    if kind == "object":
        return {field: typical(part, known, field) for field, part in schema.get("properties", {}).items()}
    if kind == "array":
        length = min(max(ITEMS, schema.get("minItems", 0)), schema.get("maxItems", ITEMS))
        return [typical(schema["items"], known, name.removesuffix("s")) for _ in range(length)]
    return 1 if kind == "integer" else " ".join(["word"] * WORDS.get(name, OTHER_WORDS))


@dataclass(frozen=True)
class OneDirection:
    """An embedder to whom all texts are the same: no estimate needs a real one."""

    name: str = "none"
    dimension: int = 1
    synonym_threshold: float = 1.0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Ones."""
        return np.ones((len(texts), 1), dtype=np.float32)


SAMPLED = 8
ANSWER_TOKENS = 32  # a bare answer and a sentence in JSON
NAMES_TOKENS = 24  # a handful of names in JSON
TRIPLES_TOKENS = 300  # five triples of a passage
SUMMARY_TOKENS = 80  # two or three sentences
STAGES: Mapping[str, tuple[tuple[str, str, int], ...]] = {
    "entity_expansion": (("entities", ENTITIES, 1), ("synonyms", OTHER_NAMES, 2)),
    "dual_level": (("keywords", TWO_LEVELS, 1),),
}
"""Strategy → the purposes for which it asks the model, with the prompt and the most calls a question."""


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
    rankings = lexical.top([question.text for question in chosen], Budget().chunks)
    samples = []
    for question, candidates in zip(chosen, rankings, strict=True):
        _, parts = Budget().parts([chunks[row] for row in candidates.rows])
        gold = reference(question)
        samples.append(Sample(question.id, question.text, tuple(parts), gold, gold or question.text))
    return samples


def answer_line(label: str, samples: Sequence[Sample], questions: int) -> Line:
    """The cost of answering a label's questions."""
    contexts = ["" if label == CLOSED_BOOK else "\n\n".join(sample.contexts) for sample in samples]
    prompts = [messages(sample.question, text) for sample, text in zip(samples, contexts, strict=True)]
    tokens = sum(map(_prompt_tokens, prompts)) / len(prompts) + CHAT_TOKENS
    return Line(label, "answer", "llm", questions, questions * tokens, questions * ANSWER_TOKENS)


def _prompt_tokens(prompt: Sequence[Mapping[str, str]]) -> int:
    return sum(count_tokens(message["content"]) for message in prompt)


def strategy_lines(label: str, strategy: str, samples: Sequence[Sample], questions: int) -> list[Line]:
    """The most that a strategy's own stages cost, without community summaries (see `summary_line`)."""
    question = sum(count_tokens(sample.question) for sample in samples) / max(1, len(samples))
    return [
        Line(
            label,
            purpose,
            "llm",
            questions * most,
            questions * most * (count_tokens(prompt) + question + CHAT_TOKENS),
            questions * most * NAMES_TOKENS,
        )
        for purpose, prompt, most in STAGES.get(strategy, ())
    ]


def summary_line(label: str, strategy: Strategy, index: Index, question: Question) -> Line:
    """The cost of summarising the communities of a built graph; a stand-in for the model counts them."""
    index.services = replace(index.services, community_summaries=_count_summaries)
    spent = Counters()
    strategy.rank(Batch(index, [question]), spent)
    return Line(label, "summaries", "llm", spent.llm_calls, spent.tokens, spent.llm_calls * SUMMARY_TOKENS)


def _count_summaries(counters: Counters, texts: Sequence[str]) -> Sequence[str]:
    counters.llm_calls += len(texts)
    counters.tokens += sum(count_tokens(text) + count_tokens(SUMMARY) + CHAT_TOKENS for text in texts)
    return texts


def extraction_line(benchmark: Benchmark, gleaning: int) -> Line:
    """The cost of extracting triples from the corpus; each round of gleaning sends the conversation again."""
    chunks = chunk_passages(benchmark.passages)
    prompts = [_prompt_tokens(opening(part)) for part in parts_of(chunks, PASSAGES_PER_CALL)]
    calls, triples = len(prompts), len(chunks) * TRIPLES_TOKENS
    read = sum(sum(prompts) + round_ * triples for round_ in range(gleaning + 1))
    return Line("graph", "extract", "llm", calls * (gleaning + 1), read + calls * CHAT_TOKENS, triples * (gleaning + 1))


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
    """The cost of judging every label, a line per metric."""
    per_question = {metric: _counted(profile, metric, samples) for metric in metrics}
    return [
        replace(per_question[metric], label=label).times(questions * repeats)
        for label in labels
        for metric in applicable(metrics, label, answered)
    ]


def _counted(profile: str, metric: str, samples: Sequence[Sample]) -> Line:
    asker = CountingAsker()
    scorer = (FullJudge if profile == "full" else CompactJudge)(asker, OneDirection())
    able = [sample for sample in samples if sample.missing(metric) is None]

    async def score() -> None:
        for sample in able:
            await scorer.score(metric, sample)

    asyncio.run(score())
    share = 1 / max(1, len(samples))
    line = Line("", f"judge:{metric}", "judge", asker.calls, asker.tokens_in, asker.tokens_out)
    return line.times(share)
