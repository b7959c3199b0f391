"""Of what kind the things are that passages are about: "film", "village", by the first "is a" of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hopbench.retrieval.types import Chunk

HEAD = 400  # characters of a text in which its kind is looked for
KIND_LIMIT = 3  # passages of a kind, below which the word is taken for an accident of the sentence
ONE_KIND = 0.4  # share of chunks with a kind, from which on things are described by it and compared
_KIND = re.compile(r"\b(?:is|was|are|were) (?:an?|the|one of the) ([^,.;:()]{3,80})")
_KIND_ENDS = frozenset(
    """by of in from for who which that whose based located to at on with directed written produced and set about
    starring released born known as is was near along between recorded performed""".split()
)


@dataclass(frozen=True)
class Kinds:
    """`of_chunk`: chunk → its kind, for words that return. `chunks` is the number of all chunks."""

    of_chunk: Mapping[int, str]
    chunks: int

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> Kinds:
        """Read the kind of every chunk with a title."""
        found = {row: kind for row, chunk in enumerate(chunks) if chunk.title and (kind := _kind(chunk.text))}
        counts = Counter(found.values())
        return cls({row: kind for row, kind in found.items() if counts[kind] >= KIND_LIMIT}, len(chunks))

    @property
    def alike(self) -> float:
        """The share of chunks with a kind beyond `ONE_KIND`: how far the corpus is of things that can be compared."""
        return max(len(self.of_chunk) / self.chunks - ONE_KIND, 0.0)

    @cached_property
    def groups(self) -> Mapping[str, Sequence[int]]:
        """Kind → its chunks."""
        result: dict[str, list[int]] = {}
        for row, kind in self.of_chunk.items():
            result.setdefault(kind, []).append(row)
        return result


def _kind(text: str) -> str:
    """The last word of what follows the first "is a": "X is a 1999 American film by Y" is a film; empty without."""
    match = _KIND.search(text[:HEAD])
    phrase: list[str] = []
    for word in match.group(1).split() if match else ():
        if word.lower() in _KIND_ENDS:
            break
        phrase.append(word.lower())
    return phrase[-1] if phrase and phrase[-1].isalpha() and len(phrase[-1]) > 2 else ""
