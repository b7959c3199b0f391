"""The data sets on which numbers were tuned or from which they were learned, and how their questions are recognised."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from hopbench.retrieval.support.errors import InputError

HASH_DIGITS = 10
"""Hexadecimal digits of a question's hash, 40 bits: of 500 known and 10,000 asked questions, 5 · 10⁶ / 2⁴⁰ collide."""

_NOT_HEX = re.compile(r"[^0-9a-f]")
_DIGEST = re.compile(r"^[0-9a-f]{64}$")


@dataclass(frozen=True, slots=True)
class FittedOn:
    """A data set by name, digest and the hashes of its questions (empty where they are unknown)."""

    name: str
    digest: str
    questions: frozenset[str] = frozenset()

    @classmethod
    def read(cls, text: str) -> FittedOn | None:
        """The set of a text that `str` made; None for any other text."""
        name, _, rest = text.strip().partition(" ")
        digest, _, hashes = rest.partition(" ")
        if not _DIGEST.match(digest):
            return None
        return cls(name, digest, unpacked(hashes.strip() or shipped_hashes().get(digest, "")))

    def __str__(self) -> str:
        hashes = "" if self.digest in shipped_hashes() else "".join(sorted(self.questions))
        return " ".join([self.name.replace(" ", "_"), self.digest, hashes]).strip()


def question_hash(text: str) -> str:
    """Hash a question, equally for texts that differ only in case, punctuation, spaces or the form of their letters."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:HASH_DIGITS]


def packed(texts: Iterable[str]) -> str:
    """The sorted hashes of questions as one string: the form of `question_hashes` in a provenance."""
    return "".join(sorted({question_hash(text) for text in texts}))


def unpacked(hashes: str) -> frozenset[str]:
    """The hashes of a packed string. Raises InputError where it is none."""
    if _NOT_HEX.search(hashes) or len(hashes) % HASH_DIGITS:
        raise InputError(
            f"question_hashes: {hashes[:40]!r}… is no row of hashes of {HASH_DIGITS} hexadecimal digits: have the "
            "sweep or `hopbench train` write the file again"
        )
    return frozenset(hashes[place : place + HASH_DIGITS] for place in range(0, len(hashes), HASH_DIGITS))


def sets_of(provenance: Mapping[str, Any]) -> tuple[FittedOn, ...]:
    """The data sets of a provenance, by its own words: name → digest and `question_hashes`.

    Those of the shipped numbers share one file of hashes.
    """
    sets = []
    for name, about in provenance.items():
        digest = str(about.get("digest", ""))
        hashes = about.get("question_hashes") or shipped_hashes().get(digest, "")
        sets.append(FittedOn(str(name), digest, unpacked(str(hashes))))
    return tuple(sets)


@cache
def shipped_hashes() -> Mapping[str, str]:
    """Digest → packed hashes of the sets on which the shipped presets and weights were tuned or learned."""
    text = (files("hopbench.retrieval.strategies") / "tuning_sets.json").read_text(encoding="utf-8")
    return {str(digest): str(about["question_hashes"]) for digest, about in json.loads(text).items()}
