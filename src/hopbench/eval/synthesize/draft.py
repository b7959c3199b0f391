"""A question before its words are chosen: the passages it needs, and what it may quote of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hopbench.eval.synthesize.evidence import Evidence, Mention
from hopbench.retrieval.text import STOP_WORDS, Token

BEFORE, AFTER = 7, 4  # words around a mention that tell how it is related to what its passage is about
SHORTEST = 3  # letters
CONTEXT = "context"  # the role of names that a question quotes whole


@dataclass(frozen=True, slots=True)
class Clue:
    """Words of one sentence of a gold passage that the question may quote, in their order; `role` says for what."""

    role: str
    chunk: int
    sentence: int
    words: tuple[Token, ...]


class Step(NamedTuple):
    """One step of a path: `source` mentions what `target` is titled by, or what `target` mentions too (`met`)."""

    source: Mention
    target: int
    met: Mention | None = None

    @property
    def entity(self) -> int:
        """The bridge."""
        return self.source.entity


@dataclass(frozen=True, slots=True)
class Draft:
    """`parts` are the question's text and clues in order; `hidden` are words that would give its bridges away.

    `gold` are the chunks it needs, in the order of the path; `answered` is the chunk and sentence of the answer, which
    is empty for a comparison: rules cannot tell which of two is older.
    """

    type: str
    gold: tuple[int, ...]
    steps: tuple[Step, ...]
    parts: tuple[str | Clue, ...]
    hidden: frozenset[str]
    answer: str
    answered: tuple[int, int]

    @property
    def clues(self) -> list[Clue]:
        """The parts that quote."""
        return [part for part in self.parts if isinstance(part, Clue)]


def content(words: list[Token], banned: frozenset[str]) -> list[Token]:
    """The words that say something and are not banned."""
    unwanted = banned | STOP_WORDS
    return [word for word in words if len(word.folded) >= SHORTEST and word.folded not in unwanted]


def lower_case(words: list[Token], banned: frozenset[str]) -> tuple[Token, ...]:
    """Those of `content` that belong to no name."""
    return tuple(word for word in content(words, banned) if not word.capital)


def around(evidence: Evidence, mention: Mention, banned: frozenset[str], role: str = "relation") -> Clue:
    """The words around a mention."""
    words = evidence.words(mention.chunk, mention.sentence)
    near = words[max(0, mention.start - BEFORE) : mention.start] + words[mention.end : mention.end + AFTER]
    return Clue(role, mention.chunk, mention.sentence, lower_case(near, banned))
