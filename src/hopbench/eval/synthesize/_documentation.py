"""Draw questions about documentation: a clause around a hyperlink, and what the linked page says.

The words are those of the documents: the clause with the link's words replaced, and a statement of the linked page
turned into a question, or the sentence that defines it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from random import Random

from hopbench.eval.synthesize._drafts import TRIES, Draft, Mention, Step, Told
from hopbench.eval.synthesize._hyperlinks import Hyperlink, Pages
from hopbench.eval.synthesize._statements import DOES, SAYS, Statement, prose, statements
from hopbench.retrieval.corpus import part_id
from hopbench.retrieval.index import Index
from hopbench.retrieval.text import STOP_WORDS, folded_words

MAX_NAME_WORDS = 4  # of a link that names what it leads to
HIDDEN = "something"
_INVITES = re.compile(r"(?i)^(?:please )?(?:see|refer|check|learn|read|for (?:more|further|details|additional)|visit|follow)\b|\b(?:see|refer to|learn more)\b")
_ARTICLE = r"(?:\b(?:[Tt]he|[Aa]n?|[Yy]our|[Ii]ts|[Oo]ur) )?"
_PLACE = re.compile(r"\b(?:above|below|following|previous|next|here|example|examples|this|these|those)\b", re.IGNORECASE)
_VERBAL = re.compile(r"\b(?:is|are|was|can|will|must|should|may|has|have|you|your|to)\b")
_AFTER = re.compile(r"\A[\s)]*(?:[.,;:!?]|\Z|'s )")
_GENERIC = frozenset("documentation docs doc guide page section here link reference tutorial article post more details".split())


_VAGUE = frozenset("use set setting name option creat run default work method".split())  # stems that join anything


class DocumentDrafts:
    """Drafts along the hyperlinks of an index's corpus; `types` are those that documentation yields."""

    types = ("bridge", "intersection")

    def __init__(self, index: Index, pages: Pages, rng: Random) -> None:
        self._index, self._pages, self._rng = index, pages, rng

    def draw(self, type: str) -> Draft | None:
        """Draw a draft of a type; None where `TRIES` in a row came to nothing."""
        if type not in self.types or not self._links:
            return None
        make = self._bridge if type == "bridge" else self._intersection
        drafts = (make(self._rng.choice(self._links)) for _ in range(TRIES))
        return next((draft for draft in drafts if draft is not None), None)

    @cached_property
    def _links(self) -> Sequence[Hyperlink]:
        """Links with a clause around them that can be quoted."""
        return [link for link in self._pages.hyperlinks if self._clause(link) is not None]

    def _clause(self, link: Hyperlink) -> tuple[str, str] | None:
        """The sentence of a link, and its wording with the link's words replaced; where it says "see", the one before."""
        before = ""
        for sentence in prose(self._pages.passages[link.source].text):
            if not (found := re.search(rf"{_ARTICLE}\b{re.escape(link.text)}(?!\w)", sentence)):
                before = "" if _INVITES.search(sentence) else sentence
                continue
            told, worded = (before, before) if _INVITES.search(sentence) else (sentence, _replaced(sentence, found, link.text))
            usable = worded and _VERBAL.search(worded) and not _PLACE.search(worded) and " - " not in worded
            return (told, worded) if usable else None
        return None

    def _bridge(self, link: Hyperlink) -> Draft | None:
        """What the linked page says of something that the clause is about too."""
        told = self._clause(link)
        if told is None:
            return None
        about = self._stems(f"{told[0]} {link.text}")
        found = [(row, one) for row in link.targets for one in self._statements(row) if self._once(one, about)]
        if not found:
            return None
        target, statement = self._rng.choice(found)
        text, own = f"{_ended(told[1])} {statement.question}", self._pages.passages[link.source]
        if statement.answer in f"{own.title} {own.text}" or not _content(link.text) - set(folded_words(text)):
            return None
        return self._draft("bridge", link, target, text, (told[0], statement.sentence), statement.answer)

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
    ) -> Draft:
        gold = self._row(link.source), self._row(target)
        told = tuple(Told(role, row, one) for role, row, one in zip(("relation", "asked"), gold, sentences, strict=True))
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
    """The sentence with "something" in the place of a link's words; empty where none can stand there."""
    before, after = sentence[: found.start()], sentence[found.end() :]
    first, following = anchor.split()[0].lower(), (folded_words(after) or [""])[0]
    ends = _AFTER.match(after) is not None
    if not ends and following not in STOP_WORDS | SAYS | DOES:
        return ""
    if first in DOES and found[0] == anchor and before.endswith((" to ", " can ", " and ", " or ")):
        return f"{before}do {HIDDEN}{after}" if ends or following in STOP_WORDS - {"them", "it"} else ""
    if not before:
        return HIDDEN.capitalize() + after if not ends else ""
    return f"{before}doing {HIDDEN}{after}" if first.endswith("ing") and " " in anchor else f"{before}{HIDDEN}{after}"


def _ended(sentence: str) -> str:
    return sentence.rstrip(" .:;,") + "."


def _content(text: str) -> set[str]:
    return set(folded_words(text)) - STOP_WORDS
