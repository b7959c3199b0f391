"""Contexts, the passages that come with each question, pooled into one corpus; supporting facts as gold passages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hopbench.eval.benchmarks.fields import (
    Place,
    Record,
    content_id,
    has_id,
    kind,
    list_field,
    plain_title,
    record_id,
    refuse_unknown,
    remark,
    required,
    text_value,
)
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage


class Paragraph(NamedTuple):
    """A passage of a context; `sentences` counts those it is divided into, None where the format does not divide."""

    title: str
    text: str
    sentences: int | None = None


class Titled(NamedTuple):
    """A passage's id in the corpus ("" where it is not in it), its title and its sentences, as of `Paragraph`."""

    passage: str
    title: str
    sentences: int | None

    def has(self, sentence: int) -> bool:
        """Whether the passage has a sentence of this index."""
        return self.sentences is None or 0 <= sentence < self.sentences


@dataclass(slots=True)
class CorpusBuilder:
    """Collects contexts into one corpus: passages equal in title and text are one passage.

    Ids are derived from the content, so a passage has the same id in any file and any order.
    """

    _passages: dict[tuple[str, str], Passage] = field(default_factory=dict)
    _every: list[Titled] = field(default_factory=list)
    _titled: dict[str, list[Titled]] = field(default_factory=dict)
    _missing: list[tuple[str, Place]] = field(default_factory=list)
    _same: dict[tuple[str, str], str] | None = None

    def add(self, title: str, text: str, place: Place) -> str:
        """Add a passage and return its id; one with neither title nor text is refused."""
        return self.take(Paragraph(title, text), place).passage

    def take(self, paragraph: Paragraph, place: Place) -> Titled:
        """Add a passage, as `add`; in a closed corpus, look it up instead."""
        title, text, sentences = paragraph
        if not title.strip() and not text.strip():
            raise place.error("holds a passage with neither title nor text: it could never be found")
        if self._same is not None:
            return Titled(self._find(title, text), title, sentences)
        passage = self._passages.get((title, text))
        if passage is not None:
            return Titled(passage.id, title, sentences)
        passage = Passage(content_id("p", title, text), title, text)
        self._passages[title, text] = passage
        self._every.append(Titled(passage.id, title, sentences))
        return self._every[-1]

    def close(self) -> None:
        """Close the corpus: from now on contexts refer to its passages and add none."""
        self._same = {_folded(title, text): one.id for (title, text), one in self._passages.items()}

    def _find(self, title: str, text: str) -> str:
        """The passage with this title and text, else the only one of the title."""
        titled = self.titled(title)
        only = titled[0].passage if len(titled) == 1 else ""
        return (self._same or {}).get(_folded(title, text), only)

    def passages(self, source: str) -> tuple[Passage, ...]:
        """All passages in order of first appearance; none at all is refused."""
        if not self._passages:
            raise InputError(f"{source}: the corpus is empty: no record brings a passage of its own")
        return tuple(self._passages.values())

    def titled(self, title: str) -> list[Titled]:
        """The passages with this title in any context; few are looked for, so the index is made with the first."""
        for one in self._every:
            self._titled.setdefault(plain_title(one.title), []).append(one)
        self._every.clear()
        return self._titled.get(plain_title(title), [])

    def miss(self, title: str, place: Place) -> None:
        """Record a gold passage that is missing from the corpus."""
        self._missing.append((title, place))

    def refuse_missing(self, source: str) -> None:
        """Raise for gold titles that no context holds, which full-wiki and truncated files have."""
        where, remedy = "in any context", "Use the distractor file, whose contexts hold all gold passages."
        if self._same is not None:
            where, remedy = "in the corpus", "Use the corpus that these questions were written for."
        titles = (title for title, _ in self._passages) if self._missing else ()
        refuse_unknown(source, "supporting title", where, remedy, self._missing, titles)


def _folded(title: str, text: str) -> tuple[str, str]:
    return plain_title(title), " ".join(text.split())


class Fact(NamedTuple):
    """A supporting fact: the passage's title and the sentence's index in it."""

    title: str
    sentence: int


def pooled_id(record: Record, place: Place, titles: Iterable[str]) -> str:
    """The record's id, or a stable one from question, answer and context titles where the file gives none."""
    if has_id(record):
        return record_id(record, place)
    return content_id("q", str(record.get("question")), str(record.get("answer")), *titles)


def read_context(record: Record, place: Place) -> list[Paragraph]:
    """The passages of `context`.

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
    return [_paragraph(text_value(place, "context title", title), lines, place) for title, lines in pairs]


def _paragraph(title: str, sentences: object, place: Place) -> Paragraph:
    if not isinstance(sentences, list | tuple):
        raise place.error(f"field 'context' must give each passage's sentences as a list, not {kind(sentences)}")
    joined = " ".join(text_value(place, "context sentence", sentence) for sentence in sentences)
    return Paragraph(title, text_value(place, "context", " ".join(joined.split())), len(sentences))


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
    return [_parsed(item[0], item[1]) for item in values]


def _parsed(title: object, value: object) -> tuple[Any, Any]:
    """The pair; where both are JSON text, as `datasets` writes mixed lists, the values that they stand for.

    It writes the title "1984" without quotes, so that it comes back as a number.
    """
    if isinstance(title, str) and isinstance(value, str):
        with suppress(ValueError, RecursionError):
            if not isinstance(parsed := json.loads(value), str):
                title, value = json.loads(title), parsed
    return json.dumps(title) if isinstance(title, bool | int | float) else title, value


@dataclass
class Supporting:
    """Finds the gold passages of one question after the other, and notes what is doubtful about them."""

    corpus: CorpusBuilder
    beyond: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)

    def passages(self, facts: Sequence[Fact], own: Sequence[Titled], place: Place) -> list[str]:
        """The passage of each fact: one of the question's own context, else of another's.

        Of several passages with the title it is the first that has all sentences of the facts with this title, else
        the first that has this fact's sentence, else the first. Titles may differ in HTML entities and Unicode form.
        """
        found = {title: self._of_title(title, facts, own, place) for title in {fact.title: None for fact in facts}}
        return [found[fact.title].get(fact.sentence, "") for fact in facts]

    def _of_title(self, title: str, facts: Sequence[Fact], own: Sequence[Titled], place: Place) -> dict[int, str]:
        """Sentence → passage, of the facts with this title."""
        sentences = list({fact.sentence: None for fact in facts if fact.title == title})
        known = _with_title(title, own) or _with_title(title, self.corpus.titled(title))
        if not known:
            self.corpus.miss(title, place)
            return {}
        whole = [one for one in known if all(map(one.has, sentences))]
        where = f"{title!r} ({place.unit} {place.number})"
        if len({one.passage for one in whole}) > 1:
            self.unclear.append(where)
        chosen = dict(self._each(sentences, whole or known, where))
        if "" in chosen.values():
            self.corpus.miss(title, place)
        return chosen

    def _each(self, sentences: Sequence[int], known: Sequence[Titled], where: str) -> Iterator[tuple[int, str]]:
        for sentence in sentences:
            having = [one for one in known if one.has(sentence)]
            if not having:
                self.beyond.append(f"{where}, sentence {sentence} of {known[0].sentences}")
            yield sentence, (having or known)[0].passage

    def report(self) -> None:
        """Remark on facts whose sentence no paragraph has, and on those that several have."""
        remark(
            "supporting facts name a sentence beyond their paragraph",
            self.beyond,
            "check the file: the paragraph counts as gold all the same",
        )
        remark(
            "supporting titles stand for several paragraphs that all have the sentences",
            self.unclear,
            "check the file: the first of them counts as gold",
        )


def _with_title(title: str, known: Sequence[Titled]) -> list[Titled]:
    """Those with just this title, else those whose title differs only in how it is written; each passage once."""
    found = [one for one in known if one.title == title]
    if not found:
        plain = plain_title(title)
        found = [one for one in known if plain_title(one.title) == plain]
    return list({one.passage: one for one in found}.values())
