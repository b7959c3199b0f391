"""Have questions written by a language model from paths, or by RAGAS's test-set generator.

Every call goes through the gate: cached, charged, within the budget. A question that the model could not write, or that
a filter drops, is counted with its reason.
"""

from __future__ import annotations

import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from hopbench.eval.answering.judge.profiles import ragas_embeddings, ragas_llm
from hopbench.eval.answering.judge.sample import LIMITS, model_asker
from hopbench.eval.metrics.containment import contains_answer, match_tokens
from hopbench.eval.metrics.ragas_context import import_untracked
from hopbench.eval.synthesize._drafts import Draft, Step
from hopbench.eval.synthesize._evidence import Evidence
from hopbench.eval.synthesize._wording import Wording
from hopbench.eval.synthesize.generate import Made, Searched, searched
from hopbench.eval.types import BenchmarkQuestion, Gold
from hopbench.retrieval.embedding.base import Embedder
from hopbench.retrieval.llm import LLM, Call, ask, calling
from hopbench.retrieval.llm.endpoint import wire_schema
from hopbench.retrieval.support.errors import IncompleteError
from hopbench.retrieval.text import UNKNOWN, folded_words, tokens
from hopbench.retrieval.types import Chunk

PROMPT_VERSION = "synthesize-1"
WRITE_TOKENS, ANSWER_TOKENS = 160, 60

WRITE = """You write one question for a test of search over documents. You get a path through some passages: the
sentences it rests on, the name it leads over (the bridge), and the answer. Write one natural question in one sentence
- that can only be answered by someone who reads all of these passages,
- that never mentions the bridge or the answer,
- in your own words: do not copy more than three words in a row, but keep the name of the first passage.
Reply with the question, and with the answer in the words of the passages."""
ANSWER = "Answer the question in a few words. If you cannot tell, answer: unknown."

_QUESTION = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "maxLength": 300},
        "answer": {"type": "string", "maxLength": 80},
    },
    "required": ["question", "answer"],
    "additionalProperties": False,
}
_ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 80}},
    "required": ["answer"],
    "additionalProperties": False,
}
PURPOSE = "synthesize:ragas"
_HOP_MARK = re.compile(r"\A\s*<[^>]*-hop>")
CALLS_PER_CHUNK = 4  # summary, filter, themes, names
CALLS_PER_QUESTION = 3  # its share of personas, themes matched to them, the question itself


def prompt(draft: Draft, evidence: Evidence) -> list[dict[str, str]]:
    """Make the messages that ask for a question about a draft's path."""
    lines = [f"Type of question: {draft.type}"]
    for said in draft.told(evidence):
        chunk = evidence.chunks[said.chunk]
        lines.append(f"Passage {chunk.title or chunk.passage_id}: {said.text}")
    lines = list(dict.fromkeys(lines))
    lines += [f"Bridge, not to be named: {step.over or evidence.name(step.entity)}" for step in draft.steps]
    lines.append(f"First passage: {evidence.title(draft.gold[0]) or 'has no name: describe it'}")
    if draft.answer:
        lines.append(f"Answer: {draft.answer}")
    language = evidence.linker.language
    told = WRITE if language.english or language.code == UNKNOWN else f"{WRITE} Write in {language.name}."
    return [{"role": "system", "content": told}, {"role": "user", "content": "\n".join(lines)}]


def worded(llm: LLM, made: Made, evidence: Evidence) -> Made:
    """Reword questions by the model; drop those that need no evidence or only one passage."""
    dropped = Counter(made.dropped)
    written = _written(llm, made.questions, evidence, dropped)
    written = _unanswered(llm, written, "the model knows it without any passage", lambda draft: [""], dropped)

    def passages(draft: Draft) -> list[str]:
        return [evidence.chunks[chunk].content for chunk in draft.gold]

    written = _unanswered(llm, written, "one passage answers it", passages, dropped)
    return Made(searched(evidence.index, written), dict(dropped))


def _written(llm: LLM, questions: Sequence[Searched], evidence: Evidence, dropped: Counter[str]) -> list[Wording]:
    form = wire_schema(_QUESTION, llm.endpoint.base_url)
    calls = [
        Call(
            "synthesize:write",
            prompt(each.wording.draft, evidence),
            form,
            WRITE_TOKENS,
            sample=str(number),
            version=PROMPT_VERSION,
        )
        for number, each in enumerate(questions)
    ]
    result = []
    for each, reply in zip(questions, ask(llm, calls), strict=True):
        draft = each.wording.draft
        if reply.failure:
            reason: str | None = f"the model failed: {reply.failure.partition(':')[0]}"
        else:
            reason = refused(reply.value, draft, evidence)
        if reason is not None:
            dropped[reason] += 1
            continue
        draft = draft if draft.answer else replace(draft, answer=" ".join(reply.value["answer"].split()))
        result.append(replace(each.wording, draft=draft, text=" ".join(reply.value["question"].split())))
    return result


def refused(value: Mapping[str, Any], draft: Draft, evidence: Evidence) -> str | None:
    """Explain why the model's question cannot be used; None where it can."""
    said = tuple(word.folded for word in tokens(value["question"]))
    if len(said) < 3:
        return "the model wrote no question"
    names = (tuple(name) for step in draft.steps for name in _names(step, evidence))
    if any(said[start : start + len(name)] == name for name in names for start in range(len(said))):
        return "the model named the bridge"
    if draft.answer and draft.type != "comparison" and contains_answer(value["question"], [match_tokens(draft.answer)]):
        return "the model named the answer"
    return None


def _names(step: Step, evidence: Evidence) -> Iterable[Sequence[str]]:
    if step.over:
        return [folded_words(step.over)]
    return evidence.linker.names_of(evidence.corpus.graph.entities[step.entity])


def _unanswered(
    llm: LLM,
    written: Sequence[Wording],
    reason: str,
    contexts: Callable[[Draft], Sequence[str]],
    dropped: Counter[str],
) -> list[Wording]:
    form = wire_schema(_ANSWER, llm.endpoint.base_url)
    rows: list[int] = []
    calls: list[Call] = []
    for number, wording in enumerate(written):
        for context in contexts(wording.draft) if wording.draft.answer else ():
            shown = f"Passage: {context}\n\nQuestion: {wording.text}" if context else f"Question: {wording.text}"
            messages = [{"role": "system", "content": ANSWER}, {"role": "user", "content": shown}]
            sample = f"{number}-{len(calls)}"
            calls.append(Call("synthesize:check", messages, form, ANSWER_TOKENS, sample=sample, version=PROMPT_VERSION))
            rows.append(number)
    answered = {
        number
        for number, reply in zip(rows, ask(llm, calls), strict=True)
        if reply.failure is None
        and contains_answer(reply.value["answer"], [match_tokens(written[number].draft.answer)])
    }
    dropped[reason] += len(answered)
    return [wording for number, wording in enumerate(written) if number not in answered]


def ragas_questions(
    llm: LLM, embedder: Embedder, evidence: Evidence, drafts: Sequence[Searched], count: int, seed: int
) -> tuple[list[BenchmarkQuestion], Mapping[str, int]]:
    """Let RAGAS ask about the evidence of `drafts`; return the questions, and how many were left out and why.

    Types are RAGAS's own synthesizers; gold passages are those whose text its reference contexts are.
    """
    rows = dict.fromkeys(chunk for each in drafts for chunk in each.wording.draft.gold)
    chunks = [evidence.chunks[row] for row in rows]
    import_untracked()
    from ragas.testset import TestsetGenerator

    with calling(purpose=PURPOSE, version=f"seed {seed}"), _seeded_and_quiet(seed):
        try:
            model, embeddings = ragas_llm(model_asker(llm, LIMITS["full"])), ragas_embeddings(embedder)
            model.is_async = embeddings.is_async = True
            generator = TestsetGenerator(llm=model, embedding_model=embeddings)
            contents, transforms = [chunk.content for chunk in chunks], _transforms(model, embeddings)
            samples = generator.generate_with_chunks(contents, count, transforms, raise_exceptions=False).samples
        except Exception as error:  # RAGAS raises whatever its parts do
            raise IncompleteError(
                f"--by ragas: RAGAS's generator ended with {type(error).__name__}: {error}. Finished calls are kept: "
                "try again, with a stronger model, or leave --by out"
            ) from error
    return _questions(list(samples), chunks, count)


@contextmanager
def _seeded_and_quiet(seed: int) -> Iterator[None]:
    """Seed the generators of `random` and NumPy, from which RAGAS draws, and silence its bars and hints for a while."""
    from ragas import utils

    logger, bar = logging.getLogger("ragas"), utils.tqdm
    level, states = logger.level, (random.getstate(), np.random.get_state())
    utils.tqdm = lambda **given: bar(**{**given, "disable": True})
    logger.setLevel(logging.ERROR)
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        utils.tqdm = bar
        logger.setLevel(level)
        random.setstate(states[0])
        np.random.set_state(states[1])


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
    by_content = {chunk.content.strip(): chunk.passage_id for chunk in chunks}
    dropped: Counter[str] = Counter()
    found: dict[str, BenchmarkQuestion] = {}
    for sample in samples:
        asked = sample.eval_sample
        text = " ".join((asked.user_input or "").split())
        # RAGAS puts the mark <1-hop> before a context.
        contexts = [_HOP_MARK.sub("", context).strip() for context in asked.reference_contexts or ()]
        gold = Gold(by_content[context] for context in contexts if context in by_content)
        if not text or text in found or not gold:
            dropped["no question, a repeated one, or one without a passage"] += 1
            continue
        answer = " ".join((asked.reference or "").split())
        found[text] = BenchmarkQuestion(
            f"s{len(found):05}", text, sample.synthesizer_name, answer or None, (), gold, {"by": "ragas"}
        )
    return list(found.values())[:count], dropped
