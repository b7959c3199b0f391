"""The passages that come with each question (its context), collected into one corpus for all questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hopbench.eval.benchmarks.fields import (
    Place,
    Record,
    content_id,
    has_id,
    kind,
    list_field,
    record_id,
    refuse_unknown,
    required,
    text_value,
)
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage


@dataclass(slots=True)
class CorpusBuilder:
    """Collects contexts into one corpus: passages equal in title and text are one passage.

    Ids are derived from the content, so a passage has the same id in any file and any order.
    """

    _passages: dict[tuple[str, str], Passage] = field(default_factory=dict)
    _by_title: dict[str, str] = field(default_factory=dict)
    _missing: list[tuple[str, Place]] = field(default_factory=list)

    def add(self, title: str, text: str, place: Place) -> str:
        """Add a passage and return its id; one with neither title nor text is refused."""
        if not title.strip() and not text.strip():
            raise place.error("holds a passage with neither title nor text: it could never be found")
        passage = self._passages.get((title, text))
        if passage is None:
            passage = Passage(content_id("p", title, text), title, text)
            self._passages[title, text] = passage
            self._by_title.setdefault(title, passage.id)
        return passage.id

    def passages(self, source: str) -> tuple[Passage, ...]:
        """All passages in order of first appearance; none at all is refused."""
        if not self._passages:
            raise InputError(f"{source}: the corpus is empty: no record brings a passage of its own")
        return tuple(self._passages.values())

    def find(self, title: str, place: Place) -> str:
        """The id of the first passage with this title in any context; remembers the title when there is none."""
        passage_id = self._by_title.get(title, "")
        if not passage_id:
            self._missing.append((title, place))
        return passage_id

    def refuse_missing(self, source: str) -> None:
        """Raise for gold titles that no context holds, which full-wiki and truncated files have."""
        remedy = "Use the distractor file, whose contexts hold all gold passages."
        refuse_unknown(source, "supporting title", "in any context", remedy, self._missing)


class Fact(NamedTuple):
    """A supporting fact: the passage's title and the sentence's index in it."""

    title: str
    sentence: int


def pooled_id(record: Record, place: Place, titles: Iterable[str]) -> str:
    """The record's id, or a stable one from question, answer and context titles where the file gives none."""
    if has_id(record):
        return record_id(record, place)
    return content_id("q", str(record.get("question")), str(record.get("answer")), *titles)


def read_context(record: Record, place: Place) -> list[tuple[str, str]]:
    """(title, text) of each passage of `context`.

    Read in the official form `[[title, [sentence, ...]], ...]` and in the Hub's `{"title": [...], "sentences":
    [[...], ...]}` (`content` in some copies). Sentences are joined and white space collapsed to single spaces, since
    HotpotQA's carry their leading space, 2WikiMultihopQA's do not, and copies differ in no-break spaces.
    """
    context = required(record, place, "context")
    if isinstance(context, dict):
        sentences = "content" if "content" in context and "sentences" not in context else "sentences"
        pairs = _columns(context, place, "context", ("title", sentences))
    else:
        pairs = _pairs(list_field(record, place, "context"), place, "context", "[title, [sentences]]")
    return [(text_value(place, "context title", title), _join(lines, place)) for title, lines in pairs]


def _join(sentences: object, place: Place) -> str:
    if not isinstance(sentences, list | tuple):
        raise place.error(f"field 'context' must give each passage's sentences as a list, not {kind(sentences)}")
    joined = " ".join(text_value(place, "context sentence", sentence) for sentence in sentences)
    return text_value(place, "context", " ".join(joined.split()))


def read_facts(record: Record, place: Place) -> list[Fact]:
    """The supporting facts, in the official form `[[title, index], ...]` and the Hub's `{"title", "sent_id"}`.

    Test files without gold have none: an absent field gives an empty list.
    """
    facts = record.get("supporting_facts")
    if facts is None:
        return []
    if isinstance(facts, dict):
        pairs = _columns(facts, place, "supporting_facts", ("title", "sent_id"))
    else:
        pairs = _pairs(list_field(record, place, "supporting_facts"), place, "supporting_facts", "[title, index]")
    return [Fact(text_value(place, "supporting_facts title", title), _index(index, place)) for title, index in pairs]


def _index(value: object, place: Place) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise place.error(f"field 'supporting_facts' must give sentence indices as integers, not {kind(value)}")
    return value


def _columns(value: Record, place: Place, field: str, names: tuple[str, str]) -> list[tuple[Any, Any]]:
    first, second = (list_field(value, place, name) for name in names)
    if len(first) != len(second):
        raise place.error(
            f"field {field!r} has {len(first)} {names[0]!r} but {len(second)} {names[1]!r}: must be as many"
        )
    return list(zip(first, second, strict=True))


def _pairs(values: Sequence[Any], place: Place, field: str, shape: str) -> list[tuple[Any, Any]]:
    for item in values:
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise place.error(f"field {field!r} must be a list of {shape}, but holds {kind(item)} of another shape")
    return [(item[0], item[1]) for item in values]
