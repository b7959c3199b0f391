"""Errors a user can act on: each names what was wrong, the value, the limit and the remedy.

The command line prints the message of a `HopBenchError` without a traceback and exits with its `exit_code`.
Anything else that escapes is a defect of the program and keeps its traceback (exit code 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from copyreg import __newobj__  # type: ignore[attr-defined]  # what pickle itself makes an object by
from typing import Any

_WORDS = re.compile(r"[^\W_]+")
SHORTEST = 4  # a shorter beginning of a name does not say which name is meant


class HopBenchError(Exception):
    """Base of every error that HopBench raises on purpose."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """As its message and attributes: a constructor that takes other arguments is not called again."""
        return __newobj__, (type(self), *self.args), self.__dict__


class InputError(HopBenchError):
    """A file, flag, parameter or environment variable that cannot be used as given."""

    exit_code = 2


class ParameterError(InputError):
    """A strategy or build parameter outside its bounds."""


class UnknownNameError(InputError):
    """An unknown name; the message lists all known ones and suggests the one that may have been meant.

    `also` are names that are known too and not listed.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], also: Iterable[str] = ()) -> None:
        names = sorted(known)
        near = closest_name(name, [*names, *also])
        hint = f" Did you mean {near!r}?" if near else ""
        super().__init__(f"unknown {kind} {name!r}.{hint} Known: {', '.join(names)}")


class MissingExtraError(InputError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the optional packages of {extra!r}: pip install 'hopbench[{extra}]'")


class RegressionError(HopBenchError):
    """A nightly run is significantly worse than the run it is compared with."""

    exit_code = 3


class TargetError(HopBenchError):
    """A figure misses a target that it was to keep."""

    exit_code = 3


class IncompleteError(HopBenchError):
    """The work stopped before its end and can be continued by the same command."""

    exit_code = 4


class StrategyError(HopBenchError):
    """A strategy failed on a question that a program asked it."""


class StoreError(HopBenchError):
    """The graph store refused, failed or is gone; finished work is saved."""

    exit_code = 4


class DamagedGraphError(StoreError):
    """The file of an embedded graph does not read as it was written; it can be built again."""


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` misspells: the fewest edits, then the same letters; None without one.

    >>> closest_name("max_dpeth", ["max_depth", "max_tags"])
    'max_depth'
    >>> closest_name("similarity_threshold", ["synonym_threshold"]) is None
    True
    """
    candidates = [
        (distance, sorted(candidate) != sorted(name), candidate)
        for candidate in known
        if (distance := _distance(name.lower(), candidate.lower())) is not None
    ]
    return min(candidates)[2] if candidates else None


def _distance(name: str, known: str) -> int | None:
    """Edits between two spellings of one name, None where they are two names.

    Names are read word by word, so that no word is taken for another: `max_entities` does not mean `min_entities`.
    """
    from rapidfuzz.distance import OSA

    ours, theirs = _WORDS.findall(name), _WORDS.findall(known)
    if len(ours) != len(theirs):  # "maxdepth", "page_rank"
        ours, theirs = ["".join(ours)], ["".join(theirs)]
    edits = [OSA.distance(one, other) for one, other in zip(ours, theirs, strict=True)]
    slips = [max(1, max(len(one), len(other)) // 4) for one, other in zip(ours, theirs, strict=True)]
    if all(edit <= slip for edit, slip in zip(edits, slips, strict=True)):
        return sum(edits)
    shorter, longer = sorted((name, known), key=len)
    cut = longer.startswith(shorter) and len(shorter) >= max(SHORTEST, len(longer) / 2)
    return len(longer) - len(shorter) if cut else None
