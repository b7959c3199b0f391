"""Put drafts into words: which words of a clue a question quotes, replaces by a near word, or leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.eval.synthesize._drafts import CONTEXT, Clue, Draft
from hopbench.eval.synthesize._evidence import Evidence
from hopbench.retrieval.embedding.models import WordLlamaEmbedder
from hopbench.retrieval.index.cache import Memo
from hopbench.retrieval.strategies.hoprank.words import Words
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.text import Token, folded_words, tokens

NEAREST = 4
MIN_COSINE = 0.4  # below it a word's neighbours have little to do with it
MIN_CHUNKS = 3  # that have the word: what is rarer is mostly a name, a number or a slip
MAX_WORDS = 20_000
DECIMALS = 6
Vectors64 = NDArray[np.float64]


class NearWords:
    """The corpus's own words by WordLlama's static vectors, whatever the embedder of the index."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._known = Memo(1 << 16)
        self._embedder = WordLlamaEmbedder()

    def near(self, word: str) -> Sequence[str]:
        """List up to `NEAREST` words with a cosine of `MIN_COSINE` or more, nearest first; none for a rare word."""

        def find() -> Sequence[str]:
            row = self._row.get(word)
            if row is None:
                return ()
            cosines = np.round(self._vectors @ self._vectors[row], DECIMALS)  # exact products: see `on_grid`
            cosines[row] = -1.0
            near = np.flatnonzero(cosines >= MIN_COSINE)
            order = near[np.argsort(-cosines[near], kind="stable")][:NEAREST]
            return tuple(self._vocabulary[other] for other in order)

        return self._known.get(word, find)

    def closeness(self, words: Sequence[str], chunk: int, content: str) -> list[float]:
        """Compute each word's cosine with a chunk's content: how well the word describes the chunk."""
        about = self._known.get(("chunk", chunk), lambda: self._embedded([content])[0])
        vectors = (
            self._vectors[self._row[word]]
            if word in self._row
            else self._known.get(("word", word), partial(self._embedded, [word]))[0]
            for word in words
        )
        return [round(float(vector @ about), DECIMALS) for vector in vectors]

    def _embedded(self, texts: Sequence[str]) -> Vectors64:
        return on_grid(self._embedder.embed(texts)).astype(np.float64)

    @cached_property
    def _vocabulary(self) -> list[str]:
        size = len(self._words.vocabulary)
        capitals = np.bincount(self._words.numbers, weights=self._words.capital, minlength=size)
        all_ = np.bincount(self._words.numbers, minlength=size)
        usable = (self._words.frequency >= MIN_CHUNKS) & (2 * capitals < all_) & ~self._words.stop
        words = [
            (-int(self._words.frequency[number]), word)
            for word, number in self._words.vocabulary.items()
            if usable[number] and len(word) > 2 and word.isalpha()
        ]
        return [word for _, word in sorted(words)[:MAX_WORDS]]

    @cached_property
    def _row(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self._vocabulary)}

    @cached_property
    def _vectors(self) -> Vectors64:
        return self._embedded(self._vocabulary)


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
        """Put the draft into words; None where the text would name a bridge or quote none of its evidence.

        A draft from a hyperlink has its words.
        """
        if draft.sentences:
            text = _tidy([part for part in draft.parts if isinstance(part, str)])
            return Wording(draft, text, tuple(dict.fromkeys(folded_words(text))), (), ())
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
        limit = int(getattr(dial, clue.role))
        distinct = list({word.folded: word for word in clue.words}.values())
        if len(distinct) <= limit:
            return distinct, []
        words = [word.folded for word in distinct]
        if dial.topical:
            closeness = self._near.closeness(words, clue.chunk, self._evidence.chunks[clue.chunk].content)
            chosen = {words[i] for i in sorted(range(len(words)), key=lambda i: -closeness[i])[:limit]}
        else:  # a sample without replacement, of weights that fall with a word's rarity
            chosen = set()
            for _ in range(limit):
                weights = [1.0 / (1.0 + self._evidence.idf(word)) for word in words]
                chosen.add(words.pop(self._rng.choices(range(len(words)), weights)[0]))
        return [word for word in distinct if word.folded in chosen], [
            word for word in distinct if word.folded not in chosen
        ]

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
    chosen: list[str] = []
    for word in words:
        while word == "of" and chosen and chosen[-1] in {"of", "the"}:
            chosen.pop()
        chosen.append(word)
    return " ".join(chosen).replace(" ,", ",") + "?"
