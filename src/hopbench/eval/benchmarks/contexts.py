"""Pool contexts, the passages that come with each question, into one corpus; find gold passages by supporting facts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hopbench.eval.benchmarks.fields import (
    Place,
    Record,
    content_id,
    kind,
    list_field,
    record_id,
    refuse_unknown,
    remark,
    required,
    text_value,
)
from hopbench.eval.types import plain_title
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage


class Titled(NamedTuple):
    """A passage of a context: its id in the corpus ("" where it lacks it), its title, and the count of its sentences.

    The count is None where the format does not divide passages.
    """

    passage: str
    title: str
    sentences: int | None

    def has(self, sentence: int) -> bool:
        """Whether the passage has a sentence of this index."""
        return self.sentences is None or 0 <= sentence < self.sentences


@dataclass(slots=True)
class CorpusBuilder:
    """Collect contexts into one corpus: passages equal in title and text are one passage.

    Ids are derived from the content, so a passage has the same id in any file and any order.
    """

    _passages: dict[tuple[str, str], Passage] = field(default_factory=dict)
    _every: list[Titled] = field(default_factory=list)
    _titled: dict[str, list[Titled]] = field(default_factory=dict)
    _same: dict[tuple[str, str], str] | None = None
    _missing: list[tuple[str, Place]] = field(default_factory=list)
    _beyond: list[str] = field(default_factory=list)
    _unclear: list[str] = field(default_factory=list)

    def add(self, title: str, text: str, place: Place) -> str:
        """Add a passage and return its id; one with neither title nor text is refused."""
        return self.take(title, text, None, place).passage

    def take(self, title: str, text: str, sentences: int | None, place: Place) -> Titled:
        """Add a passage of so many sentences; in a closed corpus look it up: the same text, else the only title."""
        if not title.strip() and not text.strip():
            raise place.error("holds a passage with neither title nor text: it could never be found")
        if self._same is not None:
            titled = self._with_plain_title(title)
            only = titled[0].passage if len(titled) == 1 else ""
            return Titled(self._same.get(_folded(title, text), only), title, sentences)
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

    def passages(self, source: str) -> tuple[Passage, ...]:
        """Return all passages in order of first appearance; none at all is refused."""
        if not self._passages:
            raise InputError(f"{source}: the corpus is empty: no record brings a passage of its own")
        return tuple(self._passages.values())

    def _with_plain_title(self, title: str) -> list[Titled]:
        for one in self._every:  # few are looked for, so the index is made with the first
            self._titled.setdefault(plain_title(one.title), []).append(one)
        self._every.clear()
        return self._titled.get(plain_title(title), [])

    def miss(self, title: str, place: Place) -> None:
        """Record a gold passage that is missing from the corpus."""
        self._missing.append((title, place))

    def gold(self, facts: Sequence[tuple[str, int]], own: Sequence[Titled], place: Place) -> list[str]:
        """Find the passage of each fact (title, sentence): one of the question's own context, else of another's.

        Of several passages with the title it is the first that has all sentences of the facts with this title, else
        the first that has this fact's sentence, else the first. Titles may differ in HTML entities and Unicode form.
        """
        found: dict[tuple[str, int], str] = {}
        for title in dict.fromkeys(title for title, _ in facts):
            sentences = list(dict.fromkeys(sentence for other, sentence in facts if other == title))
            known = _with_title(title, own) or _with_title(title, self._with_plain_title(title))
            complete = [one for one in known if all(map(one.has, sentences))]
            where = f"{title!r} ({place.unit} {place.number})"
            if len(complete) > 1:
                self._unclear.append(where)
            for sentence in sentences if known else ():
                having = [one for one in complete or known if one.has(sentence)]
                if not having:
                    self._beyond.append(f"{where}, sentence {sentence} of {known[0].sentences}")
                found[title, sentence] = (having or known)[0].passage
            if not all(found.get((title, sentence)) for sentence in sentences):
                self.miss(title, place)
        return [found.get(fact, "") for fact in facts]

    def check_gold(self, source: str) -> None:
        """Refuse gold titles that no context holds (full-wiki and truncated files); remark on doubtful facts."""
        where, remedy = "in any context", "Use the distractor file, whose contexts hold all gold passages."
        if self._same is not None:
            where, remedy = "in the corpus", "Use the corpus that these questions were written for."
        titles = (title for title, _ in self._passages) if self._missing else ()
        refuse_unknown(source, "supporting title", where, remedy, self._missing, titles)
        what = "supporting facts name a sentence beyond their paragraph"
        remark(what, self._beyond, "check the file: the paragraph counts as gold all the same")
        what = "supporting titles stand for several paragraphs that all have the sentences"
        remark(what, self._unclear, "check the file: the first of them counts as gold")


def _folded(title: str, text: str) -> tuple[str, str]:
    return plain_title(title), " ".join(text.split())


def _with_title(title: str, known: Sequence[Titled]) -> list[Titled]:
    """Select those with just this title, else those whose title differs in how it is written; each passage once."""
    found = [one for one in known if one.title == title]
    if not found:
        plain = plain_title(title)
        found = [one for one in known if plain_title(one.title) == plain]
    return list({one.passage: one for one in found}.values())


def pooled_id(record: Record, place: Place, titles: Iterable[str]) -> str:
    """Return the record's id, or a stable one from question, answer and context titles where the file gives none."""
    if any(record.get(name) is not None for name in ("_id", "id")):
        return record_id(record, place)
    return content_id("q", str(record.get("question")), str(record.get("answer")), *titles)


def read_context(record: Record, place: Place) -> list[tuple[str, str, int]]:
    """Read the passages of `context`: title, text, and the count of sentences.

    Read in the official form `[[title, [sentence, ...]], ...]` and in the Hub's `{"title": [...], "sentences":
    [[...], ...]}` (`content` in some copies). Sentences are joined and white space collapsed to single spaces, since
    HotpotQA's carry their leading space, 2WikiMultihopQA's do not, and copies differ in no-break spaces.
    """
    context = required(record, place, "context")
    is_copy = isinstance(context, dict) and "content" in context and "sentences" not in context
    column = "content" if is_copy else "sentences"
    read = []
    for title, sentences in _pairs(context, place, "context", column, "[title, [sentences]]"):
        text_value(place, "context title", title)
        if not isinstance(sentences, list | tuple):
            raise place.error(f"field 'context' must give each passage's sentences as a list, not {kind(sentences)}")
        joined = " ".join(text_value(place, "context sentence", sentence) for sentence in sentences)
        read.append((title, text_value(place, "context", " ".join(joined.split())), len(sentences)))
    return read


def read_facts(record: Record, place: Place) -> list[tuple[str, int]]:
    """Read the supporting facts, title and sentence, as `[[title, index], ...]` or the Hub's `{"title", "sent_id"}`."""
    facts = record.get("supporting_facts")
    pairs = [] if facts is None else _pairs(facts, place, "supporting_facts", "sent_id", "[title, index]")
    for title, index in pairs:
        text_value(place, "supporting_facts title", title)
        if not isinstance(index, int) or isinstance(index, bool):
            raise place.error(f"field 'supporting_facts' must give sentence indices as integers, not {kind(index)}")
    return pairs


def _pairs(value: object, place: Place, field: str, second: str, shape: str) -> list[tuple[Any, Any]]:
    """Read pairs of `title` and another value, given as such or as two columns."""
    if isinstance(value, dict):
        titles, others = list_field(value, place, "title"), list_field(value, place, second)
        if len(titles) != len(others):
            raise place.error(
                f"field {field!r} has {len(titles)} 'title' but {len(others)} {second!r}: must be as many"
            )
        return list(zip(titles, others, strict=True))
    values = list_field({field: value}, place, field)
    for item in values:
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise place.error(f"field {field!r} must be a list of {shape}, but holds {kind(item)} of another shape")
    return [_parsed(*item) for item in values]


def _parsed(title: object, value: object) -> tuple[Any, Any]:
    """Parse a pair that is JSON text, as `datasets` writes mixed lists.

    It writes the title "1984" without quotes, so that it comes back as a number.
    """
    if isinstance(title, str) and isinstance(value, str):
        with suppress(ValueError, RecursionError):
            if not isinstance(parsed := json.loads(value), str):
                title, value = json.loads(title), parsed
    return json.dumps(title) if isinstance(title, bool | int | float) else title, value
