"""Puts a draft into words: which words of its clues the question quotes, replaces or leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from hopbench.eval.synthesize.draft import CONTEXT, Clue, Draft
from hopbench.eval.synthesize.evidence import Evidence
from hopbench.eval.synthesize.near_words import NearWords
from hopbench.retrieval.text import Token, tokens


class Dial(NamedTuple):
    """How much a wording quotes: words of each role's clue, and the share of them that is replaced by near words.

    `topical` prefers words that tell what their passage is about, else common words are preferred.
    """

    asked: int
    relation: int
    description: int
    common: int
    name: int
    replaced: float
    topical: bool = False


EASY_TO_HARD = (
    Dial(6, 4, 7, 2, 2, 0.0, True),
    Dial(5, 3, 6, 2, 2, 0.3, True),
    Dial(4, 3, 6, 2, 1, 0.6, True),
    Dial(3, 2, 5, 2, 0, 1.0, True),
    Dial(3, 2, 5, 1, 0, 0.3),
    Dial(2, 1, 4, 1, 0, 0.6),
    Dial(1, 1, 3, 0, 0, 1.0),
)


@dataclass(frozen=True, slots=True)
class Wording:
    """A question's text; of the words of its clues the `quoted`, those `replaced` (word → word), those `left_out`."""

    draft: Draft
    text: str
    quoted: tuple[str, ...]
    replaced: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]


class Phraser:
    """Wordings of drafts over one corpus. The rarest words go first: they are left out, then replaced."""

    def __init__(self, evidence: Evidence, near: NearWords, rng: Random) -> None:
        self._evidence, self._near, self._rng = evidence, near, rng

    def wording(self, draft: Draft, dial: Dial) -> Wording | None:
        """The draft in words; None where the text would name a bridge or say nothing of its evidence."""
        quoted: list[str] = []
        replaced: list[tuple[str, str]] = []
        left_out: list[str] = []
        pieces = []
        said: set[str] = set()
        for part in draft.parts:
            if isinstance(part, str):
                pieces.append(part)
                continue
            chosen, dropped = self._chosen(part, dial)
            left_out += (word.folded for word in dropped)
            if part.role != CONTEXT:
                chosen = [word for word in chosen if word.folded not in said]  # nobody says the same twice
            said |= {word.folded for word in chosen}
            for word, other in self._replacements(chosen, dial.replaced, draft.hidden):
                pieces.append(other or word.text)
                if other:
                    replaced.append((word.folded, other))
                else:
                    quoted.append(word.folded)
        text = _tidy(pieces)
        if not quoted and not replaced and draft.clues and draft.steps:
            return None
        if draft.hidden & {word.folded for word in tokens(text)}:
            return None
        return Wording(draft, text, tuple(quoted), tuple(replaced), tuple(left_out))

    def _chosen(self, clue: Clue, dial: Dial) -> tuple[list[Token], list[Token]]:
        """The words of a clue that stay, in their order, and those left out: mostly the rarest."""
        if clue.role == CONTEXT:
            return list(clue.words), []
        most = int(getattr(dial, clue.role))
        distinct = list({word.folded: word for word in clue.words}.values())
        if len(distinct) <= most:
            return distinct, []
        words = [word.folded for word in distinct]
        kept = set(self._most_topical(clue, words, most) if dial.topical else self._mostly_common(words, most))
        return [word for word in distinct if word.folded in kept], [
            word for word in distinct if word.folded not in kept
        ]

    def _most_topical(self, clue: Clue, words: Sequence[str], most: int) -> list[str]:
        closeness = self._near.closeness(words, clue.chunk, self._evidence.chunks[clue.chunk].content)
        order = sorted(range(len(words)), key=lambda place: -closeness[place])
        return [words[place] for place in order[:most]]

    def _mostly_common(self, words: Sequence[str], most: int) -> list[str]:
        """A sample without replacement, of weights that fall with a word's rarity."""
        left, drawn = list(words), []
        for _ in range(most):
            weights = [1.0 / (1.0 + self._evidence.idf(word)) for word in left]
            drawn.append(left.pop(self._rng.choices(range(len(left)), weights)[0]))
        return drawn

    def _replacements(
        self, words: Sequence[Token], share: float, hidden: frozenset[str]
    ) -> Iterable[tuple[Token, str]]:
        """Each word with the near word in its place, the rarest first; empty where it stays."""
        count = int(share * len(words) + self._rng.random())
        rarest = sorted(words, key=lambda word: (-self._evidence.idf(word.folded), word.folded))[:count]
        for word in words:
            if word.capital:  # of a name
                yield word, ""
                continue
            near = [other for other in self._near.near(word.folded) if other not in hidden] if word in rarest else []
            yield word, self._rng.choice(near) if near else ""


def _tidy(pieces: Sequence[str]) -> str:
    """One sentence with single spaces: "of the of" has lost what stood between, and becomes "of"."""
    words = " ".join(piece for piece in pieces if piece).split()
    kept: list[str] = []
    for word in words:
        while word == "of" and kept and kept[-1] in {"of", "the"}:
            kept.pop()
        kept.append(word)
    return " ".join(kept).replace(" ,", ",") + "?"
