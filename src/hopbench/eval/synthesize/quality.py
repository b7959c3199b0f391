"""Check the questions that were made: whether their links, answers and sentences would measure anything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hopbench.eval.synthesize._drafts import Draft, Step
from hopbench.eval.synthesize._evidence import Evidence, Mention
from hopbench.eval.synthesize._statements import DEBRIS, reads_as_sentence
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.text import UNKNOWN, Language, folded_words, split_qualifier
from hopbench.retrieval.text.languages import MIXED

if TYPE_CHECKING:
    from hopbench.eval.synthesize.generate import Searched

ENOUGH = 30  # questions, or half of what was asked for: fewer hardly separate two labels
MAX_HEADED = 3  # documents with the same heading, from which on it names nothing: Setup, Next steps
NAMED = 0.5  # share of a word's places with a capital from which on it belongs to a name
NAMING_BOTH = ("comparison", "bridge-comparison")  # types that name what is compared
MANY = 100  # passages, below which BM25 finds all in its first ten
MAX_TERM = 6  # words of an answer that a hyperlink or two passages name
LIMITS: Mapping[str, float] = {"links": 0.7, "answers": 0.7, "sentences": 0.6, "hidden": 0.2}
"""Part of the check → share below which a set measures nothing. Wikipedia's sets are above, word salad is below."""
MEANING = {
    "links": "evidence joined by a hyperlink, a title or a name",
    "answers": "answers that are names, settings or values",
    "sentences": "questions that read as a sentence",
    "hidden": "questions whose words alone do not lead BM25 to all of their evidence",
}
_CODE = re.compile(
    r"[{}=<>\\|]|\$(?!\d)|\w\([^\s)]*\)|::|->|https?:|www\.|^\s"
    r"|\b(?:import|def|return|async)\b .*\b(?:from|import|self)\b"
)
_SETTING = re.compile(r"\A--?[a-z]|[a-z][A-Z]|[_./@-]\w|\(\)|\A\d[\d.,:%]*\b|\A(?:true|false|none|null)\Z")


class Share(NamedTuple):
    """How many of a set's things are as they should be."""

    good: int
    of: int

    @property
    def value(self) -> float:
        """The share; 1 of nothing."""
        return self.good / self.of if self.of else 1.0


REMEDY = "write 30 with `hopbench annotate DATASET`, or use --llm MODEL[@URL]"
Checked = Mapping[str, bool]
"""One question's check: part (`MEANING`) → whether it is as it should be, for the parts that apply."""


@dataclass(frozen=True)
class Quality:
    """The self-check of a set: that of each question, and how many questions were `wanted`."""

    questions: Sequence[Checked]
    wanted: int

    @property
    def shares(self) -> Mapping[str, Share]:
        """The share of questions that pass each part."""
        parts = {part: [one[part] for one in self.questions if part in one] for part in MEANING}
        return {part: Share(sum(values), len(values)) for part, values in parts.items() if values}

    def faults(self) -> list[str]:
        """List what is below its limit, in words; empty for a set that can be used."""
        found = [
            f"{MEANING[part]}: {share.good:,} of {share.of:,}, below {LIMITS[part]:.0%}"
            for part, share in self.shares.items()
            if share.good + 1 < LIMITS[part] * share.of  # one question alone condemns no set
        ]
        enough = min(ENOUGH, self.wanted // 2)
        if len(self.questions) < enough:
            found.append(f"questions: {len(self.questions):,} of {self.wanted:,}, below {enough}")
        return found

    def plain(self) -> dict[str, object]:
        """As the card has it: part → share, and the faults."""
        return {**{part: round(share.value, 3) for part, share in self.shares.items()}, "faults": self.faults()}


class UnfitError(InputError):
    """Sets that would not measure anything, which are not written."""

    def __init__(self, checks: Sequence[Quality]) -> None:
        faults = dict.fromkeys(fault for check in checks for fault in check.faults())
        super().__init__(
            f"these questions would not measure anything ({'; '.join(faults)}): {REMEDY}; nothing was written "
            "(--force writes them, and no run on them names a best label)"
        )
        self.checks = checks


def refuse_language(language: Language) -> None:
    """Raise InputError where rules cannot ask in the language of the corpus; a mixed one is judged by the questions."""
    if not language.english and language.code not in (UNKNOWN, MIXED):
        raise InputError(
            f"the corpus is {language.name}, and rules ask in English alone: questions in another language than the "
            f"corpus's would not measure anything; {REMEDY}"
        )


def quality(evidence: Evidence, made: Sequence[Searched], wanted: int) -> Quality:
    """Check questions and what they rest on."""
    check = _Check(evidence)
    return Quality([check.checked(one) for one in made], wanted)


def quality_of_texts(texts: Sequence[str], wanted: int) -> Quality:
    """Check questions of which nothing is known but their texts."""
    return Quality([{"sentences": reads_as_sentence(text)} for text in texts], wanted)


class _Check:
    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def checked(self, one: Searched) -> Checked:
        """Check a question."""
        draft = one.wording.draft
        found = {"sentences": reads_as_sentence(one.wording.text)}
        if draft.steps:
            found["links"] = all(map(self.is_real, draft.steps))
        if draft.answer and draft.type not in NAMING_BOTH:
            found["answers"] = self.is_answer(draft)
        if draft.type not in NAMING_BOTH and len(self._evidence.chunks) >= MANY:
            found["hidden"] = one.hidden
        return found

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
        if DEBRIS.search(draft.answer):
            return False
        chunk, sentence = draft.answered
        if draft.sentences or draft.type == "intersection":  # a term, or a name that its steps are judged by
            return len(draft.answer.split()) <= MAX_TERM
        said = self._evidence.sentences(chunk)[sentence]
        return not _CODE.search(said) and (bool(_SETTING.search(draft.answer)) or self._is_name(draft.answer))

    def _names(self, mention: Mention) -> bool:
        """Whether a mention is a name within a sentence, not its first word alone, nor code."""
        words = self._evidence.words(mention.chunk, mention.sentence)[mention.start : mention.end]
        opens = mention.start == 0 and len(words) == 1 and not self._is_name(words[0].text)
        return (
            not opens
            and not _CODE.search(self._evidence.sentence(mention))
            and self._is_name(" ".join(word.text for word in words))
        )

    def _is_name(self, text: str) -> bool:
        words = [word for word in folded_words(text) if not word.isdigit()]
        known = [self._capitals[word] for word in words if word in self._capitals]
        return (bool(known) and max(known) >= NAMED) or any(map(str.isdigit, text))

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
