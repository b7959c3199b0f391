"""The two profiles of a judge: RAGAS's own classes and prompts (full), one short structured call a metric (compact).

Compact prompts put first the inputs that several metrics of a sample share (passages, question), in the same words, so
that a server's prefix cache serves all but the first metric. They have no examples and ask for no reasons: on local
models every token takes time. A change of a prompt or schema changes its version, and with it the keys of all stored
judgements.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, create_model

from hopbench.eval.answering.judge.sample import Asker, Input, Sample
from hopbench.eval.metrics.containment import RULE, contains_answer, match_tokens
from hopbench.eval.metrics.ragas_context import import_untracked
from hopbench.retrieval.embedding.base import Embedder

RAGAS_NAMES = {"question": "user_input", "contexts": "retrieved_contexts"}  # the others are called alike


class FullJudge:
    """Scores samples with the classes of `ragas.metrics.collections`, their defaults unchanged."""

    profile = "full"

    def __init__(self, asker: Asker, embedder: Embedder) -> None:
        self._asker = asker
        self._embedder = embedder

    @staticmethod
    def version(metric: str) -> str:
        """What made the prompts: RAGAS's version pins them all."""
        return f"ragas {version('ragas')}"

    async def score(self, metric: str, sample: Sample) -> float:
        """RAGAS's score of a sample; NaN where RAGAS gives none. Raises what the asker or RAGAS raises."""
        inputs = {
            RAGAS_NAMES.get(name, name): list(value) if isinstance(value, tuple) else value
            for name, value in sample.inputs(metric).items()
        }
        result = await self._metrics[metric].ascore(**inputs)
        return float(result.value)

    @cached_property
    def _metrics(self) -> Mapping[str, Any]:
        """Made on first use: importing RAGAS takes 3-15 s."""
        import_untracked()
        from ragas.metrics import collections

        llm, embeddings = ragas_llm(self._asker), ragas_embeddings(self._embedder)
        return {
            "context_precision": collections.ContextPrecision(llm=llm),
            "context_recall": collections.ContextRecall(llm=llm),
            "context_entity_recall": collections.ContextEntityRecall(llm=llm),
            "faithfulness": collections.Faithfulness(llm=llm),
            "answer_relevancy": collections.AnswerRelevancy(llm=llm, embeddings=embeddings),
            "factual_correctness": collections.FactualCorrectness(llm=llm),
            "answer_correctness": collections.AnswerCorrectness(llm=llm, embeddings=embeddings),
            "noise_sensitivity": collections.NoiseSensitivity(llm=llm),
        }


def ragas_llm(asker: Asker) -> Any:
    """The asker as RAGAS's classes want a model."""
    from ragas.llms.base import InstructorBaseRagasLLM

    class AskerLLM(InstructorBaseRagasLLM):  # type: ignore[misc] # ragas has no usable types
        """RAGAS's interface to a model, answered by the asker."""

        def generate(self, prompt: str, response_model: Any) -> Any:
            raise NotImplementedError("HopBench judges asynchronously")

        async def agenerate(self, prompt: str, response_model: Any) -> Any:
            return await asker(prompt, response_model)

    return AskerLLM()


def ragas_embeddings(embedder: Embedder) -> Any:
    """The run's embedder as RAGAS's classes want one."""
    from ragas.embeddings.base import BaseRagasEmbedding

    class RunEmbedding(BaseRagasEmbedding):  # type: ignore[misc] # ragas has no usable types
        """RAGAS's interface to an embedder."""

        def embed_text(self, text: str, **_: Any) -> list[float]:
            return [float(value) for value in embedder.embed([text])[0]]

        async def aembed_text(self, text: str, **_: Any) -> list[float]:
            return self.embed_text(text)

        async def aembed_texts(self, texts: list[str], **_: Any) -> list[list[float]]:
            return [[float(value) for value in row] for row in embedder.embed(texts)]

    return RunEmbedding()


Verdict = Literal[0, 1]
Text = Annotated[str, Field(max_length=160)]
LENGTHS = (3, 6, 12, 24)
WORDS_A_STATEMENT = 5


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Checked(_Strict):
    """A statement of one fact and whether it is supported."""

    statement: Text
    supported: Verdict


class Question(_Strict):
    """The question that an answer answers."""

    question: Text
    noncommittal: Verdict


class Sourced(_Strict):
    """A statement of the given answer, whether it is right, and the numbers of the passages that support it."""

    statement: Text
    correct: Verdict
    passages: Annotated[list[int], Field(max_length=LENGTHS[1])]


def most(text: str | None) -> int:
    """How many statements a text can hold, one of `LENGTHS`: a weak model fills any list to its end."""
    words = len((text or "").split())
    return next((length for length in LENGTHS if words <= length * WORDS_A_STATEMENT), LENGTHS[-1])


@lru_cache(maxsize=256)
def _lists(name: str, **fields: tuple[Any, int, int]) -> type[BaseModel]:
    """A schema of lists: field → (type of an item, fewest, most)."""
    typed: dict[str, Any] = {
        field: (Annotated[list[item], Field(min_length=low, max_length=high)], ...)  # type: ignore[valid-type]
        for field, (item, low, high) in fields.items()
    }
    return create_model(name, __base__=_Strict, **typed)


def _statements_of(name: Input) -> Callable[[Sample], type[BaseModel]]:
    return lambda sample: _lists("Statements", statements=(Checked, 1, most(getattr(sample, name))))


@dataclass(frozen=True)
class Prompt:
    """A task over some inputs of a sample; `output` is the schema of what the model is to return for it."""

    reads: tuple[Input, ...]
    task: str
    output: Callable[[Sample], type[BaseModel]]

    def text(self, sample: Sample) -> str:
        """The prompt for a sample."""
        return "\n\n".join([*(_SHOWN[name](sample) for name in self.reads), f"Task: {self.task}\nAnswer in JSON."])

    @property
    def version(self) -> str:
        """A digest of all that is the same for every sample."""
        parts = [self.reads, self.task, self.output(_ANY).model_json_schema(), LENGTHS, WORDS_A_STATEMENT]
        return "compact " + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


_ANY = Sample("", "", ("",), "", "")

_SHOWN: dict[Input, Callable[[Sample], str]] = {
    "contexts": lambda s: "Passages:\n" + "\n".join(f"[{n}] {text}" for n, text in enumerate(s.contexts, 1)),
    "question": lambda s: f"Question: {s.question}",
    "reference": lambda s: f"Reference answer: {s.reference}",
    "response": lambda s: f"Given answer: {s.response}",
}

_ONE_FACT = "statements of one fact each, without pronouns"

USEFUL = Prompt(
    ("contexts", "question", "reference"),
    "For each passage in order, was it useful in arriving at the reference answer? 1 if it was, 0 if not.",
    lambda s: _lists("Useful", useful=(Verdict, len(s.contexts), len(s.contexts))),
)
RECALL = Prompt(
    ("contexts", "question", "reference"),
    f"Split the reference answer into {_ONE_FACT}. For each, supported is 1 if it can be attributed to the passages, "
    "0 if it cannot.",
    _statements_of("reference"),
)
FAITHFUL = Prompt(
    ("contexts", "question", "response"),
    f"Split the given answer into {_ONE_FACT}. For each, supported is 1 if it can be directly inferred from the "
    "passages, 0 if it cannot.",
    _statements_of("response"),
)
CLAIMS = Prompt(
    ("question", "reference", "response"),
    f"Split the given answer and the reference answer into {_ONE_FACT}. For each statement of the given answer, "
    "supported is 1 if the reference answer supports it, else 0. For each statement of the reference answer, supported "
    "is 1 if the given answer says it, else 0.",
    lambda s: _lists("Claims", given=(Checked, 1, most(s.response)), reference=(Checked, 1, most(s.reference))),
)
ASKED = Prompt(
    ("response",),
    "Write the question that the given answer answers. noncommittal is 1 if the given answer is evasive or vague "
    '("I don\'t know"), 0 if it has substance.',
    lambda _: Question,
)
ENTITIES = Prompt(
    ("reference",),
    "List the named entities of the reference answer (persons, places, organisations, dates, amounts, other proper "
    "nouns), each once and as it is written.",
    lambda s: _lists("Entities", entities=(Text, 0, most(s.reference))),
)
NOISE = Prompt(
    ("contexts", "question", "reference", "response"),
    "useful: the numbers of the passages that support a statement of the reference answer. statements: the given "
    f"answer split into {_ONE_FACT}; for each, correct is 1 if the reference answer supports it, else 0, and passages "
    "are the numbers of the passages from which it can be inferred.",
    lambda s: _lists("Noise", useful=(int, 0, max(1, len(s.contexts))), statements=(Sourced, 1, most(s.response))),
)


PROMPTS: dict[str, Prompt] = {
    "context_precision": USEFUL,
    "context_recall": RECALL,
    "context_entity_recall": ENTITIES,
    "faithfulness": FAITHFUL,
    "answer_relevancy": ASKED,
    "factual_correctness": CLAIMS,
    "answer_correctness": CLAIMS,
    "noise_sensitivity": NOISE,
}
_ARTICLE = re.compile(r"^(a|an|the) (?=\S)", re.IGNORECASE)  # models write "the Lindholm Bridge"
FACTUALITY = 0.75  # of answer_correctness, RAGAS's default; the rest is similarity


class CompactJudge:
    """Scores samples with the prompts of `PROMPTS`."""

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
