"""Phonotactic names: every stem is an integer written in syllables, so stems are unique without a memory of them."""

from __future__ import annotations

from math import gcd
from random import Random

# No coda followed by an onset spells another onset, and no onset is empty: a spelling has one division into syllables.
_ONSETS = tuple("b br d dr f fl g gl h j k kr l m n p pr qu r s t th tr v z vr sk".split())
_VOWELS = ("a", "e", "i", "o", "u")
_CODAS = ("", "l", "n", "r", "m")
_SYLLABLES = tuple(o + v + c for o in _ONSETS for v in _VOWELS for c in _CODAS)
# Worlds whose seeds differ modulo _WORLDS take disjoint sets of stems.
_WORLDS = 16

_GIVEN = {"he": ("o", "an", "ek", "us", "in"), "she": ("a", "ia", "elle", "ys", "ene")}
_SURNAME = ("sen", "ov", "ell", "ard", "ine", "quist", "mere", "ick", "otti", "aru", "wyn", "ez")
_TOWN = ("vale", "wick", "mouth", "stead", "haven", "holm", "by", "field", "gate", "combe", "ow", "ona")
_REGION = (("ia", "ian"), ("esh", "eshi"), ("una", "unan"), ("and", "ander"), ("ora", "oran"), ("eth", "ethine"))


def coprime(start: int, modulus: int) -> int:
    """Smallest integer ≥ `start` that shares no factor with `modulus`: multiplying by it permutes 0..modulus−1."""
    while gcd(start, modulus) != 1:
        start += 1
    return start


class Namer:
    """Draws names for one world. `capacity` is the number of stems the world may need; it sets the syllables."""

    def __init__(self, seed: int, capacity: int) -> None:
        self._syllables = 2
        while len(_SYLLABLES) ** self._syllables < capacity * _WORLDS:
            self._syllables += 1
        self._space = len(_SYLLABLES) ** self._syllables
        self._step = coprime(int(self._space * 0.6180339887), self._space)
        self._shift = (seed // _WORLDS) * 7919
        self._world = seed % _WORLDS
        self._count = 0
        self._rng = Random(seed)
        self._given = {p: tuple(self.stem() + self._rng.choice(ends) for _ in range(90)) for p, ends in _GIVEN.items()}

    def stem(self) -> str:
        """The next unused stem, capitalised."""
        code = self._count * _WORLDS + self._world
        self._count += 1
        rest = (code * self._step + self._shift) % self._space
        parts = []
        for _ in range(self._syllables):
            rest, digit = divmod(rest, len(_SYLLABLES))
            parts.append(_SYLLABLES[digit])
        return "".join(parts).capitalize()

    def given(self, pronoun: str, rng: Random) -> str:
        """A given name; a world shares 180 of them among all its people."""
        return rng.choice(self._given[pronoun])

    def surname(self, rng: Random) -> str:
        """An unused surname."""
        return self.stem() + rng.choice(_SURNAME)

    def town(self, rng: Random) -> str:
        """An unused name of a town or hill."""
        return self.stem() + rng.choice(_TOWN)

    def region(self, rng: Random) -> tuple[str, str]:
        """An unused region with the adjective of its people."""
        stem = self.stem()
        ending, demonym = rng.choice(_REGION)
        return stem + ending, stem + demonym
