"""The full profile: RAGAS's own metric classes and prompts, over HopBench's client and the run's embedder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import version
from typing import Any

from hopbench.eval.answering.judge.asker import Asker
from hopbench.eval.answering.judge.sample import Sample
from hopbench.eval.ragas_untracked import import_untracked
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
