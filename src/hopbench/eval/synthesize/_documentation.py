"""Draw questions about documentation: a clause around a hyperlink, and what the linked page says.

The words are those of the documents: the clause with the link's words replaced, and a statement of the linked page
turned into a question, or the sentence that defines it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from random import Random

from hopbench.eval.synthesize._drafts import Draft, Step, Told
from hopbench.eval.synthesize._evidence import Mention
from hopbench.eval.synthesize._hyperlinks import Hyperlink, Pages
from hopbench.eval.synthesize._statements import DOES, SAYS, Statement, prose, reads_as_sentence, statements
from hopbench.retrieval.corpus import part_id
from hopbench.retrieval.index import Index
from hopbench.retrieval.text import STOP_WORDS, folded_words

MAX_LINKS = 20_000  # that are read; of more a sample
MAX_NAME_WORDS = 4  # of a link that names what it leads to
HIDDEN = "something"
_INVITES = re.compile(
    r"(?i)^(?:please )?(?:see|refer|check|learn|read|for (?:more|further|details|additional)|visit|follow)\b"
    r"|\b(?:see|refer to|learn more)\b"
)
_ARTICLE = r"(?:\b(?:[Tt]he|[Aa]n?|[Yy]our|[Ii]ts|[Oo]ur) )?"
_PLACE = re.compile(
    r"\b(?:above|below|following|previous|next|here|example|examples|this|these|those)\b", re.IGNORECASE
)
_VERBAL = re.compile(r"\b(?:is|are|was|can|will|must|should|may|has|have|you|your|to)\b")
_AFTER = re.compile(r"\A[\s)]*(?:[.,;:!?]|\Z|'s )")
_MODAL = frozenset("may can will could must should be been is are was were".split())
_BRACKETS = re.compile(r" ?\([^()]*\)")
_CLAUSES = re.compile(r"[,;:] (?:and |but |which |so |or )?|(?<= )(?:because|although|while|but) ")
_CONJUNCTIONS = frozenset("and or but which that so if when because by to with using in for".split())
MIN_CLAUSE = 5  # words
_GENERIC = frozenset(
    "documentation docs doc guide page section here link reference tutorial article post more details".split()
)


_VAGUE = frozenset("use set setting name option creat run default work method".split())  # stems that join anything


class DocumentDrafts:
    """Drafts along the hyperlinks of an index's corpus; `types` are those that documentation yields."""

    types = ("bridge", "intersection")

    def __init__(self, index: Index, pages: Pages, rng: Random) -> None:
        self._index, self._pages, self._rng = index, pages, rng

    def draw(self, type: str) -> Draft | None:
        """Draw a draft of a type; None where the corpus has none."""
        drafts = self._bridges if type == "bridge" else self._intersections if type == "intersection" else ()
        return self._rng.choice(drafts) if drafts else None

    @cached_property
    def _bridges(self) -> Sequence[Draft]:
        return [draft for link in self._links for draft in self._bridge(link)]

    @cached_property
    def _intersections(self) -> Sequence[Draft]:
        return [draft for link in self._links if (draft := self._intersection(link)) is not None]

    @cached_property
    def _links(self) -> Sequence[Hyperlink]:
        found = self._pages.hyperlinks
        return found if len(found) <= MAX_LINKS else self._rng.sample(found, MAX_LINKS)

    def _clause(self, link: Hyperlink) -> tuple[str, str] | None:
        """The sentence of a link and its wording without the link's words; the one before it where it says "see"."""
        before = ""
        for sentence in prose(self._pages.passages[link.source].text):
            if not (found := re.search(rf"{_ARTICLE}\b{re.escape(link.text)}(?!\w)", sentence)):
                before = "" if _INVITES.search(sentence) else sentence
                continue
            told, worded = (
                (before, before) if _INVITES.search(sentence) else (sentence, _replaced(sentence, found, link.text))
            )
            usable = (
                worded
                and worded.count("(") == worded.count(")")
                and _VERBAL.search(worded)
                and not _PLACE.search(worded)
                and " - " not in worded
            )
            return (told, worded) if usable else None
        return None

    def _bridge(self, link: Hyperlink) -> Iterator[Draft]:
        """Ask what the linked page says of something that the clause is about too."""
        told = self._clause(link)
        if told is None:
            return
        about, own = self._stems(f"{told[0]} {link.text}"), self._pages.passages[link.source]
        for row in link.targets:
            for one in self._statements(row):
                text = f"{_ended(told[1])} {one.question}"
                known = one.answer in f"{own.title} {own.text}" or not _content(link.text) - set(folded_words(text))
                if not known and self._once(one, about):
                    draft = self._draft("bridge", link, row, text, (told[0], one.sentence), one.answer)
                    yield from (draft,) if draft else ()

    def _once(self, statement: Statement, about: frozenset[str]) -> bool:
        """Whether a statement shares a word with what it is to be `about`, and only one passage makes it."""
        return self._said[statement.question] == 1 and bool(self._stems(statement.question) & about)

    def _stems(self, text: str) -> frozenset[str]:
        return frozenset(self._index.tagger.stems(text)) - _VAGUE

    @cached_property
    def _said(self) -> Counter[str]:
        rows = {row for link in self._pages.hyperlinks for row in link.targets}
        return Counter(one.question for row in sorted(rows) for one in self._statements(row))

    def _intersection(self, link: Hyperlink) -> Draft | None:
        """What the clause and the linked page's own sentence say of one thing: its name is the answer."""
        told = self._clause(link)
        words = folded_words(link.text)
        if told is None or HIDDEN not in told[1] or len(words) > MAX_NAME_WORDS or _GENERIC & set(words):
            return None
        for target in link.targets:
            for sentence in prose(self._pages.passages[target].text):
                found = _says(link.text).match(sentence)
                if found is None or _PLACE.search(sentence) or found[1].endswith(":"):
                    continue
                text = f"{_ended(told[1])} What do you call this, which {found[1].rstrip('.')}?"
                if _content(link.text) & set(folded_words(text)):
                    return None
                return self._draft("intersection", link, target, text, (told[0], sentence), link.text)
        return None

    def _draft(
        self, type: str, link: Hyperlink, target: int, text: str, sentences: tuple[str, str], answer: str
    ) -> Draft | None:
        if not reads_as_sentence(text):
            return None
        gold = self._row(link.source), self._row(target)
        told = tuple(
            Told(role, row, one) for role, row, one in zip(("relation", "asked"), gold, sentences, strict=True)
        )
        step = Step(Mention(gold[0], 0, 0, 0, -1), gold[1], over=link.text)
        return Draft(type, gold, (step,), (text.removesuffix("?"),), frozenset(), answer, (gold[1], 0), told)

    def _row(self, passage: int) -> int:
        name = self._pages.passages[passage].id
        row = self._index.row_of.get(name)
        return self._index.row_of[part_id(name, 0)] if row is None else row

    def _statements(self, row: int) -> Sequence[Statement]:
        known = self._known.get(row)
        if known is None:
            known = self._known[row] = list(statements(self._pages.passages[row].text))
        return known

    @cached_property
    def _known(self) -> dict[int, Sequence[Statement]]:
        return {}


def _says(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)^{_ARTICLE}{re.escape(name)}s? ((?:is|are|{'|'.join(sorted(SAYS))})\b.{{15,}})$")


def _replaced(sentence: str, found: re.Match[str], anchor: str) -> str:
    """The clause of a link with "something" in the place of its words; empty where none can stand there."""
    before, after = sentence[: found.start()], sentence[found.end() :]
    first, following = anchor.split(maxsplit=1)[0].lower(), (folded_words(after) or [""])[0]
    previous = (before.split() or [""])[-1].lower()
    ends = _AFTER.match(after) is not None
    if (not ends and following not in STOP_WORDS | SAYS | DOES) or first.endswith("ed") or previous in _MODAL:
        return ""
    if first in DOES and found[0] == anchor and previous in {"to", "and", "or"}:
        return _clause(f"{before}do {HIDDEN}{after}") if ends or following in STOP_WORDS - {"them", "it"} else ""
    if not before:
        return "" if ends or following == "are" else _clause(HIDDEN.capitalize() + after)
    joins = previous in STOP_WORDS | SAYS or previous.removesuffix("s") in DOES or previous.endswith(("ing", "ed"))
    if not joins or previous.startswith("-") or (before.endswith(", ") and after.startswith(",")):
        return ""
    doing = "doing " if first.endswith("ing") and " " in anchor else ""
    return _clause(f"{before}{doing}{HIDDEN}{after}")


def _clause(sentence: str) -> str:
    """The part of a sentence around "something", without what stands in brackets; all of it where that has no verb."""
    whole = " ".join(_BRACKETS.sub("", sentence).split())
    parts = [part.strip() for part in _CLAUSES.split(whole)]
    part = next((part for part in parts if HIDDEN in part.lower()), "")
    if len(part.split()) < MIN_CLAUSE or not _VERBAL.search(part) or part.split()[0].lower() in _CONJUNCTIONS:
        return whole
    return part[0].upper() + part[1:]


def _ended(sentence: str) -> str:
    return sentence.rstrip(" .:;,") + "."


def _content(text: str) -> set[str]:
    return set(folded_words(text)) - STOP_WORDS
