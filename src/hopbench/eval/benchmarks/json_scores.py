"""Scores by question and passage in JSON, `{"q1": {"p1": 0.7}}`, as ranx, pytrec_eval and BEIR write runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from math import inf, isfinite
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks.fields import Place, id_value, kind
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import regular, unreadable

_SPACE = re.compile(r"\s*")


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON with its names in their order; one may come twice."""


def read_scores(path: Path) -> dict[str, dict[str, float]] | None:
    """The scores of one object, or one a line, whose values are all objects of scores; None for another form."""
    objects = _objects(path)
    first = next(objects, None)
    if not isinstance(first, _Pairs) or not all(isinstance(scores, _Pairs) for _, scores in first):
        return None
    found: dict[str, dict[str, float]] = {}
    for number, (key, scores) in enumerate(_named(path, chain([first], objects)), start=1):
        place = Place(str(path), "question", number)
        question = id_value(place, "question", key)
        if question in found:
            raise place.error(f"{question!r} comes a second time: give each question's passages once")
        if not isinstance(scores, _Pairs):
            raise place.error(f"{question!r} has {kind(scores)}, must have an object of scores by passage")
        found[question] = _scores_of(scores, question, place)
    return found


def _named(path: Path, values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for value in values:
        if not isinstance(value, _Pairs):
            raise InputError(f"{path}: holds {kind(value)} after an object of scores: write one object in all")
        yield from value


def _scores_of(pairs: _Pairs, question: str, place: Place) -> dict[str, float]:
    scores: dict[str, float] = {}
    for key, value in pairs:
        passage = id_value(place, "passage", key)
        if passage in scores:
            raise place.error(f"{question!r} names {passage!r} twice: a ranking names each passage once")
        scores[passage] = number_value(value, place, f"{question!r} has for {passage!r}")
    return scores


def _objects(path: Path) -> Iterator[Any]:
    """The JSON values of a file, one after another, up to what is none; its first line alone may be a value."""
    try:
        text = regular(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise unreadable(str(path), error) from error
    except UnicodeDecodeError:
        return  # the reader of lines names the place
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    at = start = _after_space(text, 0)
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:  # ValueError also for a number of thousands of digits
            if at == start and text[at:].split("\n", 1)[0].strip() != "{":
                return  # not one object over several lines; the reader of lines names the place
            raise InputError(f"{path}: not JSON that can be read ({error}): correct it") from error
        yield value
        at = _after_space(text, at)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def number_value(value: object, place: Place, what: str) -> float:
    """A finite number; `what` begins the message where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.error(f"{what} {kind(value)}, must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = inf
    if not isfinite(number):
        raise place.error(f"{what} {number}, must be a finite number")
    return number
