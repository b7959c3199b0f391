"""The services of a language model: questions' entities and keywords, synonyms, summaries of communities.

Each method is one of the `Services` of an index; `install` sets them. Calls are charged to the given counters even if
the cache answers them, so that a label's figures do not depend on earlier runs.

A question without a usable reply fails, and its row has the reason. An error that would fail every question (budget
exhausted, endpoint unreachable) stops the run, which resumes from there when restarted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hopbench.retrieval.index import Index, Keywords, Linker, Services
from hopbench.retrieval.llm import LLM, Call, Reply, ask
from hopbench.retrieval.llm.endpoint import wire_schema
from hopbench.retrieval.llm.faults import LASTING
from hopbench.retrieval.support.errors import IncompleteError
from hopbench.retrieval.types import Counters, Question

PROMPT_VERSION = "question-2"
# A prompt that has not changed keeps its version, so that cached replies stay valid.
VERSIONS = {"entities": PROMPT_VERSION} | dict.fromkeys(("keywords", "synonyms", "summaries"), "question-1")
MAX_NAMES = 10

ENTITIES = """List the named things that the question speaks of (people, places, works, organizations, events, ...)
and the concepts and topics that it is about, also those written in lower case. The most important first, each spelled
in full as an encyclopedia would title it; leave out words that only ask. Do not answer the question."""
OTHER_NAMES = """List other names by which the given thing is known: synonyms, full and short forms, spellings.
Names only, the most common first."""
TWO_LEVELS = """List keywords of the question for searching a knowledge graph. low_level: the specific named things it
speaks of. high_level: the overarching themes and kinds of relations it asks about. Do not answer the question."""
SUMMARY = """The text lists entities that belong together and how they are related. Say in two or three sentences what
they are about as a whole. Use only what the text says."""


class QuestionFailed(Exception):  # noqa: N818 - the outcome of a question, not an error of the program
    """The model gave no usable reply for a question; the message is the reason."""


def _lists(*fields: str) -> dict[str, Any]:
    """The schema of an object whose fields are lists of names."""
    names = {"type": "array", "items": {"type": "string", "maxLength": 80}, "maxItems": MAX_NAMES}
    properties = dict.fromkeys(fields, names)
    return {"type": "object", "properties": properties, "required": [*fields], "additionalProperties": False}


@dataclass(frozen=True)
class QuestionModel:
    """A language model as the services of an index."""

    llm: LLM

    @property
    def name(self) -> str:
        """Model and prompt version, for the keys of finished trials."""
        return f"{self.llm.endpoint.identity} {PROMPT_VERSION}"

    def install(self, index: Index) -> None:
        """Set the services of an index to this model's."""
        index.services = Services(
            model=self.name,
            question_entities=self.entities,
            synonyms=self.synonyms,
            keywords=self.keywords,
            community_summaries=self.summaries,
        )

    def entities(self, questions: Sequence[Question], counters: Counters, linker: Linker) -> list[list[str]]:
        """ADR-041, stage 1: the entities that the model names and the graph contains."""
        texts = [question.text for question in questions]
        replies = self._replies("entities", ENTITIES, texts, _lists("entities"), counters)
        return [_resolved(_value(reply)["entities"], linker) for reply in replies]

    def keywords(self, questions: Sequence[Question], counters: Counters, linker: Linker) -> list[Keywords]:
        """LightRAG's keywords of both levels; an empty level is replaced by the question itself."""
        texts = [question.text for question in questions]
        replies = self._replies("keywords", TWO_LEVELS, texts, _lists("high_level", "low_level"), counters)
        keywords = []
        for text, reply in zip(texts, replies, strict=True):
            low, high = _value(reply)["low_level"], _value(reply)["high_level"]
            keywords.append(Keywords(_resolved(low, linker), ", ".join(low) or text, ", ".join(high) or text))
        return keywords

    def synonyms(
        self, counters: Counters, linker: Linker, wanted: Sequence[tuple[int, str]], limit: int
    ) -> list[list[str]]:
        """ADR-041, stage 3: other names of each entity; the caller checks them by cosine."""
        texts = [linker.name_of[entity] for _, entity in wanted]
        replies = self._replies("synonyms", OTHER_NAMES, texts, _lists("names"), counters)
        return [_value(reply)["names"][:limit] for reply in replies]

    def summaries(self, counters: Counters, texts: Sequence[str]) -> list[str]:
        """A summary of each community; if the model fails, the text itself, which is counted."""
        replies = self._replies("summaries", SUMMARY, texts, None, counters)
        lost = sum(reply.failure is not None for reply in replies)
        if lost:
            counters.terminations["community without summary"] += lost
        return [text if reply.failure else reply.text for text, reply in zip(texts, replies, strict=True)]

    def _replies(
        self, purpose: str, prompt: str, texts: Sequence[str], form: Mapping[str, Any] | None, counters: Counters
    ) -> list[Reply]:
        """Make one call per distinct text; each use of a reply is charged as a call of its own."""
        schema = form and wire_schema(form, self.llm.endpoint.base_url)
        calls = {}
        for text in texts:
            messages = [{"role": "system", "content": prompt}, {"role": "user", "content": text}]
            calls[text] = Call(purpose, messages, schema, 600, version=VERSIONS[purpose])
        replies = dict(zip(calls, ask(self.llm, list(calls.values())), strict=True))
        for text in texts:
            counters.llm_calls += 1
            counters.tokens += replies[text].tokens_in + replies[text].tokens_out
        for reply in replies.values():
            if reply.failure is not None and reply.failure.partition(":")[0] not in LASTING:
                raise IncompleteError(f"{self.llm.endpoint.name}, {purpose}: {reply.failure}")
        return [replies[text] for text in texts]


def _value(reply: Reply) -> Any:
    if reply.failure is not None:
        raise QuestionFailed(reply.failure)
    return reply.value


def _resolved(names: Sequence[str], linker: Linker) -> list[str]:
    entities = map(linker.resolve, names)
    return list(dict.fromkeys(entity for entity in entities if entity is not None))
