"""Check the questions that were made: whether their links, answers and sentences would measure anything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hopbench.eval.synthesize._drafts import Draft, Step
from hopbench.eval.synthesize._evidence import Evidence, Mention
from hopbench.retrieval.text import folded_words, split_qualifier

ENOUGH = 50  # questions, where as many were asked for: fewer hardly separate two labels
MAX_HEADED = 3  # documents with the same heading, from which on it names nothing: Setup, Next steps
NAMED = 0.5  # share of a word's places with a capital from which on it belongs to a name
MAX_WORDS = 40  # of a question
LIMITS: Mapping[str, float] = {"links": 0.7, "answers": 0.7, "sentences": 0.6}
"""Part of the check → share below which a set measures nothing. Wikipedia's and hopworld's are above, word salad below."""
MEANING = {
    "links": "evidence joined by a hyperlink, a title or a name",
    "answers": "answers that are names, settings or values",
    "sentences": "questions that read as a sentence",
}
_CODE = re.compile(r"[{}=<>\\|`$]|\w\(|::|->|https?:|www\.|^\s|\b(?:import|def|return|async)\b .*\b(?:from|import|self)\b")
_DEBRIS = re.compile(r"[{}=<>\\|$]|https?|\bwww\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{4,}\b|_{2,}", re.IGNORECASE)
_ASKS = re.compile(
    r"(?:\A|[.!:] |, )(?:what|which|who|whose|whom|where|when|why|how|is|are|was|were|do|does|did|can|(?:with|in|to|from|of|for|by) (?:which|what|whom))\b",
    re.IGNORECASE,
)
_VERB = re.compile(r"\b(?:is|are|was|were|do|does|did|has|have|had|can|\w+(?:s|ed|en|ing))\b", re.IGNORECASE)
_SETTING = re.compile(r"\A--?[a-z]|[a-z][A-Z]|[_./@-]\w|\(\)|\A\d[\d.,:%]*\b|\A(?:true|false|none|null)\Z")


class Share(NamedTuple):
    """How many of a set's things are as they should be."""

    good: int
    of: int

    @property
    def value(self) -> float:
        """The share; 1 of nothing."""
        return self.good / self.of if self.of else 1.0


@dataclass(frozen=True)
class Quality:
    """The self-check of a set: the share of each part (`MEANING`), and how many questions were made and `wanted`."""

    shares: Mapping[str, Share]
    questions: int
    wanted: int

    def faults(self) -> list[str]:
        """List what is below its limit, in words; empty for a set that can be used."""
        found = [
            f"{MEANING[part]}: {share.good:,} of {share.of:,}, below {LIMITS[part]:.0%}"
            for part, share in self.shares.items()
            if share.value < LIMITS[part]
        ]
        if self.questions < min(ENOUGH, self.wanted):
            found.append(f"questions: {self.questions:,} of {self.wanted:,}, below {min(ENOUGH, self.wanted)}")
        return found

    def plain(self) -> dict[str, object]:
        """As the card and JSON have it."""
        return {**{part: round(share.value, 3) for part, share in self.shares.items()}, "faults": self.faults()}


def quality(evidence: Evidence, drafts: Sequence[Draft], texts: Sequence[str], wanted: int) -> Quality:
    """Check questions; `drafts` may be empty, where it is not known what the questions rest on."""
    check = _Check(evidence)
    steps = [step for draft in drafts for step in draft.steps]
    answered = [draft for draft in drafts if draft.answer]
    shares = {
        "links": Share(sum(map(check.is_real, steps)), len(steps)),
        "answers": Share(sum(map(check.is_answer, answered)), len(answered)),
        "sentences": Share(sum(map(reads_as_sentence, texts)), len(texts)),
    }
    return Quality({part: share for part, share in shares.items() if share.of}, len(texts), wanted)


def reads_as_sentence(text: str) -> bool:
    """Whether a question asks, has a verb and no code in it, repeats no part of itself, and is not too long."""
    words = folded_words(text)
    threes = Counter(zip(words, words[1:], words[2:], strict=False))
    repeated = any(one == other for one, other in pairwise(words)) or max(threes.values(), default=0) > 1
    asks = _ASKS.search(text) is not None and _VERB.search(text) is not None
    return asks and not repeated and 3 <= len(words) <= MAX_WORDS and not _DEBRIS.search(text)


class _Check:
    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def is_real(self, step: Step) -> bool:
        """Whether a step leads over a hyperlink, the title of a passage or a name, in people's sentences."""
        if step.over:
            return True
        mentions = [step.source] if step.met is None else [step.source, step.met]
        if step.met is None and self._heading(step.target) in self._recurring:
            return False
        return all(map(self._names, mentions))

    def is_answer(self, draft: Draft) -> bool:
        """Whether a draft's answer is a name, a setting or a value that stands in a sentence."""
        if _DEBRIS.search(draft.answer):
            return False
        chunk, sentence = draft.answered
        if draft.sentences or draft.type == "intersection":  # a statement; a name by which its steps are judged
            return bool(_SETTING.search(draft.answer)) or self._is_name(draft.answer) or draft.type == "intersection"
        said = self._evidence.sentences(chunk)[sentence]
        return not _CODE.search(said) and (bool(_SETTING.search(draft.answer)) or self._is_name(draft.answer))

    def _names(self, mention: Mention) -> bool:
        """Whether a mention is a name within a sentence, not its first word alone, nor code."""
        words = self._evidence.words(mention.chunk, mention.sentence)[mention.start : mention.end]
        opens = mention.start == 0 and len(words) == 1 and not self._is_name(words[0].text)
        return not opens and not _CODE.search(self._evidence.sentence(mention)) and self._is_name(" ".join(word.text for word in words))

    def _is_name(self, text: str) -> bool:
        words = [word for word in folded_words(text) if not word.isdigit()]
        known = [self._capitals[word] for word in words if word in self._capitals]
        return bool(known) and max(known) >= NAMED or any(map(str.isdigit, text))

    @cached_property
    def _capitals(self) -> Mapping[str, float]:
        """Folded word → the share of its places with a capital."""
        words = self._evidence.corpus.words
        size = len(words.vocabulary)
        capital = np.bincount(words.numbers, weights=words.capital, minlength=size)
        shares = capital / np.maximum(np.bincount(words.numbers, minlength=size), 1)
        return {word: float(shares[number]) for word, number in words.vocabulary.items()}

    def _heading(self, chunk: int) -> str:
        return split_qualifier(self._evidence.chunks[chunk].title)[0].strip().casefold()

    @cached_property
    def _recurring(self) -> frozenset[str]:
        """The headings of `MAX_HEADED` documents or more; passages that are no parts of documents have none."""
        chunks = self._evidence.chunks
        headed = {
            (self._heading(row), chunk.source.document_id)
            for row, chunk in enumerate(chunks)
            if chunk.source.document_id
        }
        counts = Counter(heading for heading, _ in headed)
        return frozenset(heading for heading, count in counts.items() if count >= MAX_HEADED)
