"""Turn evidence that questions give by file and quote into gold passages, however the passages were cut."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from html import unescape
from itertools import product
from math import prod
from typing import Any, NamedTuple

from hopbench.eval.benchmarks.fields import SHOWN, Place, Record, Rows, content_id, kind, looks_like, remark, text_value
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage

SETS_LIMIT = 64  # alternative gold sets of a question
SHORTEST_PART = 8  # letters and digits of a quote that a passage must hold, and half of the quote
_QUOTED = 60  # characters of a quote in messages
_FIELDS = ("file", "heading", "quote")
_NO_LETTER = re.compile(r"[\W_]+")
_MARKUP = (
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),  # Markdown's links
    (re.compile(r"(?:xref|link|https?):[^\s\[\]]*\[([^\]]*)\]"), r"\1"),  # AsciiDoc's
    (re.compile(r"`([^`<]*?)\s*<[^>`]*>`__?"), r"\1"),  # reStructuredText's
    (re.compile(r":[\w:+.-]+:`"), "`"),  # its roles
    (re.compile(r"<[^>\n]+>"), " "),
    (re.compile(r"^[\s>]*(?:\d+[.)]|[a-z][.)])\s", re.MULTILINE), ""),  # the numbers of lists
)


class Quote(NamedTuple):
    """A place in a document: the path of the file, the words of its heading (may be empty), and the words there."""

    file: str
    heading: str
    text: str

    def __str__(self) -> str:
        """`guide.md: "Restart after …"`."""
        shown = self.text if len(self.text) <= _QUOTED else f"{self.text[:_QUOTED]}…"
        return f'{self.file}: "{shown}"'


def read_evidence(record: Record, place: Place) -> list[list[Quote]]:
    """Read the places that a question needs in the order of its hops, each with its alternatives.

    They are the field `evidence`, or `file` and `quote`, `file2` and `quote2` and so on with `heading` beside them.
    Where a record states `gold`, or none of these, there are none.
    """
    if record.get("gold"):
        return []
    given = record.get("evidence")
    if isinstance(given, str) and given.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            given = json.loads(given)
    if isinstance(given, list | tuple) and any(isinstance(one, dict) and "quote" in one for one in given):
        return [_with_alternatives(one, place) for one in given]
    if "file" not in record or "quote" not in record:
        return []
    numbers = [""]
    while f"quote{len(numbers) + 1}" in record:
        numbers.append(str(len(numbers) + 1))
    given = [{name: record.get(f"{name}{number}") for name in _FIELDS} for number in numbers]
    return [[_quote(one, place, number)] for one, number in zip(given, numbers, strict=True) if any(one.values())]


def _with_alternatives(given: object, place: Place) -> list[Quote]:
    if not isinstance(given, dict):
        raise place.error(f"field 'evidence' must be a list of objects with file and quote, but holds {kind(given)}")
    others = given.get("alternatives") or []
    if not isinstance(others, list | tuple) or not all(isinstance(one, dict) for one in others):
        raise place.error("field 'evidence.alternatives' must be a list of objects with file and quote")
    return [_quote(one, place) for one in (given, *others)]


def _quote(given: Mapping[str, Any], place: Place, number: str = "") -> Quote:
    values = [text_value(place, f"{name}{number}", given.get(name), optional=True) for name in _FIELDS]
    file, heading, text = values
    for name, value in (("file", file), ("quote", text)):
        if not value.strip():
            raise place.error(
                f"field '{name}{number}' is empty or missing: evidence names a file and quotes words of it"
            )
    if not _plain(text):
        raise place.error(f"field 'quote{number}' is {text[:_QUOTED]!r}: quote words, which can be found in a passage")
    return Quote(file.strip(), heading, text)


def _plain(text: str) -> str:
    return _NO_LETTER.sub("", text.lower())


def _without_markup(text: str) -> str:
    for pattern, words in _MARKUP:
        text = pattern.sub(words, text)
    return _plain(unescape(text))


class Evidence:
    """The passages of a corpus by file; `unknown` collects the quotes that no passage holds."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.unknown: list[tuple[str, Place]] = []
        self._passages = passages
        self._files = dict[str, list[Passage]]()
        self._texts = dict[str, tuple[str, str]]()
        self._partly: list[str] = []
        self._shortened: list[str] = []

    def resolved(self, record: Record, place: Place) -> Record:
        """Give a record that quotes its evidence the field `gold`, an id, and its aliases' usual name.

        The gold sets are all choices of one passage for each place, at most `SETS_LIMIT`.
        """
        places = read_evidence(record, place)
        if not places:
            return record
        made = dict(record)
        aliases = made.pop("aliases", None)
        if "answer_aliases" not in made and aliases is not None:
            made["answer_aliases"] = aliases
        if made.get("_id") is None and made.get("id") is None:
            made["_id"] = content_id("q", str(made.get("question", made.get("text"))))
        found = []
        for quotes in places:
            ids = list(dict.fromkeys(one for quote in quotes for one in self._holders(quote, place)))
            if not ids:
                self.unknown.append((f"{quotes[0]}{self._elsewhere(quotes[0])}", place))
            found.append(ids)
        while prod(map(len, found)) > SETS_LIMIT:
            max(found, key=len).pop()
            if str(place) not in self._shortened:
                self._shortened.append(str(place))
        sets = {frozenset(choice): list(dict.fromkeys(choice)) for choice in product(*found)}
        return {**made, "gold": list(sets.values())}

    def rows(self, source: str, rows: Rows) -> Iterator[tuple[Place, Record]]:
        """Yield the records with gold; refuse quotes that no passage holds, and remark on those cut in two."""
        for place, record in rows:
            yield place, self.resolved(record, place)
        if self.unknown:
            shown = "; ".join(f"{quote} ({place.unit} {place.number})" for quote, place in self.unknown[:SHOWN])
            more = f"; and {len(self.unknown) - SHOWN:,} more" if len(self.unknown) > SHOWN else ""
            subject = "1 quote is" if len(self.unknown) == 1 else f"{len(self.unknown):,} quotes are"
            raise InputError(f"{source}: {subject} in no passage of the file named: {shown}{more}. {REMEDY}")
        self.report()

    def report(self) -> None:
        """Remark on what a reader of the figures may want to know."""
        remark(
            "quotes are only partly in a passage, and count for those that hold most of them",
            self._partly,
            "quote words within one paragraph",
        )
        remark(
            f"questions have over {SETS_LIMIT} choices of gold passages, of which some are left out",
            self._shortened,
            "quote words that fewer passages hold",
        )

    def _holders(self, quote: Quote, place: Place) -> list[str]:
        """The passages that hold the quote; if none, those that hold most of it, at least half."""
        candidates = self._of_file(quote.file)
        forms = {_plain(quote.text), _without_markup(quote.text)} - {""}
        found = [one for one in candidates if any(form in text for form in forms for text in self._text(one))]
        if not found:
            sizes = [max(_common(form, text) for form in forms for text in self._text(one)) for one in candidates]
            most = max(sizes, default=0)
            if most < max(min(map(len, forms)) // 2, SHORTEST_PART):
                return []
            self._partly.append(f"{quote} ({place.unit} {place.number})")
            found = [one for one, size in zip(candidates, sizes, strict=True) if size == most]
        heading = _without_markup(quote.heading)
        named = [one for one in found if heading and heading in _plain(one.title)]
        return [one.id for one in named or found]

    def _of_file(self, file: str) -> list[Passage]:
        """The passages of a file, whose path may lack outer folders, as may the corpus's."""
        if not self._files:
            for passage in self._passages:
                name = passage.source.document_id or passage.id.partition("#")[0]
                self._files.setdefault(name, []).append(passage)
        wanted = file.removeprefix("./").strip("/")
        if wanted in self._files:
            return self._files[wanted]
        alike = [name for name in self._files if name.endswith(f"/{wanted}") or wanted.endswith(f"/{name}")]
        return [one for name in alike for one in self._files[name]]

    def _elsewhere(self, quote: Quote) -> str:
        """Say of a quote that was not found what may be wrong."""
        if not self._of_file(quote.file):
            alike = looks_like([quote.file], self._files)
            return f", no such file{', but ' + alike[quote.file] if alike else ''}"
        form = _without_markup(quote.text)
        other = next((one.id for one in self._passages if form and form in self._text(one)[1]), "")
        return f", which is in {other}" if other else ""

    def _text(self, passage: Passage) -> tuple[str, str]:
        """Title and text as they stand and without markup, both without white space and signs."""
        if passage.id not in self._texts:
            whole = f"{passage.title} {passage.text}"
            self._texts[passage.id] = _plain(whole), _without_markup(whole)
        return self._texts[passage.id]


REMEDY = "Quote words as they stand in the file, and name its path in the folder."


def _common(quote: str, text: str) -> int:
    """How many characters the longest part of the quote has that the text holds."""
    low, high = 0, len(quote)
    while low < high:
        size = (low + high + 1) // 2
        if any(quote[at : at + size] in text for at in range(len(quote) - size + 1)):
            low = size
        else:
            high = size - 1
    return low
