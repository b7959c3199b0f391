"""Paths put into words by a language model, and the filters that only a model can apply.

Every call goes through the gate: cached, charged, within the budget. A question that the model could not write, or that
a filter drops, is counted with its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hopbench.eval.metrics.containment import contains_answer, match_tokens
from hopbench.eval.synthesize.draft import Draft
from hopbench.eval.synthesize.evidence import Evidence
from hopbench.eval.synthesize.generate import Made
from hopbench.eval.synthesize.hardness import Searched, searched
from hopbench.eval.synthesize.phrase import Wording
from hopbench.retrieval.llm import LLM, Call, ask
from hopbench.retrieval.llm.endpoint import wire_schema
from hopbench.retrieval.text import tokens

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


def prompt(draft: Draft, evidence: Evidence) -> list[dict[str, str]]:
    """The messages that ask for a question about a draft's path."""
    lines = [f"Type of question: {draft.type}"]
    for clue in draft.clues:
        chunk = evidence.chunks[clue.chunk]
        lines.append(f"Passage {chunk.title or chunk.passage_id}: {evidence.sentences(clue.chunk)[clue.sentence]}")
    lines = list(dict.fromkeys(lines))
    lines += [f"Bridge, not to be named: {evidence.name(step.entity)}" for step in draft.steps]
    lines.append(f"First passage: {evidence.title(draft.gold[0]) or 'has no name: describe it'}")
    if draft.answer:
        lines.append(f"Answer: {draft.answer}")
    return [{"role": "system", "content": WRITE}, {"role": "user", "content": "\n".join(lines)}]


def worded(llm: LLM, made: Made, evidence: Evidence) -> Made:
    """The questions in the model's words, those that need no evidence, or one passage, left out."""
    dropped = Counter(made.dropped)
    written = _written(llm, made.questions, evidence, dropped)
    for name, contexts in _without_evidence(evidence):
        written = _unanswered(llm, written, name, contexts, dropped)
    found = searched(evidence.index, written)
    return Made(list(found), dict(dropped))


def _written(llm: LLM, questions: Sequence[Searched], evidence: Evidence, dropped: Counter[str]) -> list[Wording]:
    form = wire_schema(_QUESTION, llm.endpoint.base_url)
    calls = [
        _call("synthesize:write", prompt(each.wording.draft, evidence), form, WRITE_TOKENS, str(number))
        for number, each in enumerate(questions)
    ]
    result = []
    for each, reply in zip(questions, ask(llm, calls), strict=True):
        reason = reply.failure and f"the model failed: {reply.failure.partition(':')[0]}"
        if reason is None:
            reason = refused(reply.value, each.wording.draft, evidence)
        if reason is not None:
            dropped[reason] += 1
            continue
        draft = each.wording.draft
        draft = draft if draft.answer else replace(draft, answer=" ".join(reply.value["answer"].split()))
        result.append(replace(each.wording, draft=draft, text=" ".join(reply.value["question"].split())))
    return result


def refused(value: Mapping[str, Any], draft: Draft, evidence: Evidence) -> str | None:
    """Why what the model wrote cannot be used; None where it can."""
    said = tuple(word.folded for word in tokens(value["question"]))
    if len(said) < 3:
        return "the model wrote no question"
    names = [name for step in draft.steps for name in evidence.linker.names_of(_entity(step.entity, evidence))]
    if any(_holds(said, name) for name in names):
        return "the model named the bridge"
    if draft.answer and draft.type != "comparison" and contains_answer(value["question"], [match_tokens(draft.answer)]):
        return "the model named the answer"
    return None


def _entity(number: int, evidence: Evidence) -> str:
    return evidence.corpus.graph.entities[number]


def _holds(said: Sequence[str], name: Sequence[str]) -> bool:
    """Whether the words of a name stand in a row."""
    return any(tuple(said[start : start + len(name)]) == tuple(name) for start in range(len(said) - len(name) + 1))


def _without_evidence(evidence: Evidence) -> list[tuple[str, Any]]:
    """The filters: what a model must not be able to answer from, as functions of a draft that give contexts."""
    return [
        ("the model knows it without any passage", lambda draft: [""]),
        ("one passage answers it", lambda draft: [evidence.chunks[chunk].content for chunk in draft.gold]),
    ]


def _unanswered(
    llm: LLM, written: Sequence[Wording], reason: str, contexts: Any, dropped: Counter[str]
) -> list[Wording]:
    """The wordings that the model cannot answer from any one of the contexts; a call that failed answers nothing."""
    form = wire_schema(_ANSWER, llm.endpoint.base_url)
    asked = [
        (number, context)
        for number, wording in enumerate(written)
        if wording.draft.answer
        for context in contexts(wording.draft)
    ]
    calls = [
        _call("synthesize:check", _check(written[number].text, context), form, ANSWER_TOKENS, f"{number}-{place}")
        for place, (number, context) in enumerate(asked)
    ]
    answered = {
        number
        for (number, _), reply in zip(asked, ask(llm, calls), strict=True)
        if reply.failure is None and _right(reply.value["answer"], written[number].draft.answer)
    }
    dropped[reason] += len(answered)
    return [wording for number, wording in enumerate(written) if number not in answered]


def _check(question: str, context: str) -> list[dict[str, str]]:
    shown = f"Passage: {context}\n\nQuestion: {question}" if context else f"Question: {question}"
    return [{"role": "system", "content": ANSWER}, {"role": "user", "content": shown}]


def _right(given: str, answer: str) -> bool:
    return contains_answer(given, [match_tokens(answer)])


def _call(purpose: str, messages: Any, form: Mapping[str, Any], limit: int, sample: str) -> Call:
    return Call(purpose, messages, form, limit, sample=sample, version=PROMPT_VERSION)
