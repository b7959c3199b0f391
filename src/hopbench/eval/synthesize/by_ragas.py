"""RAGAS's own test-set generator over passages that the graph joins, its calls through HopBench's gate."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hopbench.eval.answering.judge.profiles import ragas_embeddings, ragas_llm
from hopbench.eval.answering.judge.sample import LIMITS, ModelAsker
from hopbench.eval.gold import Gold
from hopbench.eval.metrics.ragas_context import import_untracked
from hopbench.eval.synthesize.evidence import Evidence
from hopbench.eval.synthesize.hardness import Searched
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.embedding.base import Embedder
from hopbench.retrieval.llm import LLM, calling
from hopbench.retrieval.support.errors import IncompleteError
from hopbench.retrieval.types import Chunk

PURPOSE = "synthesize:ragas"
CALLS_PER_CHUNK = 4  # summary, filter, themes, names
CALLS_PER_QUESTION = 3  # its share of personas, themes matched to them, the question itself


def ragas_questions(
    llm: LLM, embedder: Embedder, evidence: Evidence, drafts: Sequence[Searched], count: int, seed: int
) -> tuple[list[BenchmarkQuestion], Mapping[str, int]]:
    """Questions that RAGAS's generator asks of the evidence of `drafts`, and how many were left out and why.

    Types are RAGAS's own synthesizers; gold passages are those whose text its reference contexts are. Raises
    IncompleteError where RAGAS ends without questions; finished calls are in the cache.
    """
    rows = dict.fromkeys(chunk for each in drafts for chunk in each.wording.draft.gold)
    chunks = [evidence.chunks[row] for row in rows]
    import_untracked()
    with calling(purpose=PURPOSE, version=f"seed {seed}"), _quiet(), _seeded(seed):
        try:
            samples = _generated(llm, embedder, chunks, count)
        except Exception as error:  # RAGAS raises whatever its parts do
            raise IncompleteError(
                f"--by ragas: RAGAS's generator ended with {type(error).__name__}: {error}. Finished calls are kept: "
                "try again, with a stronger model, or leave --by out"
            ) from error
    return _questions(samples, chunks, count)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """RAGAS draws from the generators of `random` and NumPy that the whole process shares: they go on as before."""
    states = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


@contextmanager
def _quiet() -> Iterator[None]:
    """No bars beside HopBench's own progress, no line for each passage too short for a summary; errors are shown."""
    from ragas import utils

    logger, bar = logging.getLogger("ragas"), utils.tqdm
    level = logger.level
    utils.tqdm = lambda **given: bar(**{**given, "disable": True})
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        utils.tqdm = bar
        logger.setLevel(level)


def _generated(llm: LLM, embedder: Embedder, chunks: Sequence[Chunk], count: int) -> list[Any]:
    from ragas.testset import TestsetGenerator

    model, embeddings = ragas_llm(ModelAsker(llm, LIMITS["full"])), ragas_embeddings(embedder)
    model.is_async = embeddings.is_async = True
    generator = TestsetGenerator(llm=model, embedding_model=embeddings)
    contents = [chunk.content for chunk in chunks]
    made = generator.generate_with_chunks(contents, count, _transforms(model, embeddings), raise_exceptions=False)
    return list(made.samples)


def _transforms(model: Any, embeddings: Any) -> list[Any]:
    """RAGAS's own for passages, splitting by characters: its default tokenizer is downloaded on first use."""
    from ragas.testset.transforms import Parallel
    from ragas.testset.transforms.default import default_transforms_for_prechunked
    from ragas.tokenizers import BaseTokenizer

    class Characters(BaseTokenizer):  # type: ignore[misc] # ragas has no usable types
        """A token for each character; no passage is long enough to be split."""

        def encode(self, text: str) -> list[int]:
            return [ord(letter) for letter in text]

        def decode(self, tokens: list[int]) -> str:
            return "".join(map(chr, tokens))

    transforms = list(default_transforms_for_prechunked(model, embeddings))
    for each in transforms:
        for step in each.transformations if isinstance(each, Parallel) else [each]:
            if hasattr(step, "tokenizer"):
                step.tokenizer = Characters()
    return transforms


def _questions(
    samples: Sequence[Any], chunks: Sequence[Chunk], count: int
) -> tuple[list[BenchmarkQuestion], Mapping[str, int]]:
    """The samples with a question and known contexts, each question once."""
    by_content = {chunk.content.strip(): chunk.passage_id for chunk in chunks}
    dropped: Counter[str] = Counter()
    found: dict[str, BenchmarkQuestion] = {}
    for sample in samples:
        asked = sample.eval_sample
        text = " ".join((asked.user_input or "").split())
        contexts = [_content(context) for context in asked.reference_contexts or ()]
        gold = Gold(by_content[context] for context in contexts if context in by_content)
        if not text or text in found or not gold:
            dropped["no question, a repeated one, or one without a passage"] += 1
            continue
        answer = " ".join((asked.reference or "").split())
        found[text] = BenchmarkQuestion(
            f"s{len(found):05}", text, sample.synthesizer_name, answer or None, (), gold, {"by": "ragas"}
        )
    return list(found.values())[:count], dropped


def _content(context: str) -> str:
    """A reference context without the mark `<1-hop>` that RAGAS puts before it."""
    mark, _, rest = context.strip().partition(">")
    return rest.strip() if mark.startswith("<") and mark.endswith("-hop") else context.strip()
