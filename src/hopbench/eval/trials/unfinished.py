"""Outcomes of the trials of a run in progress: an interrupted `run` with the same --out does not repeat them.

A file is a line that names the format and the SHA-256 of the rest, then JSON. Reading one runs no code; a damaged or
changed one is reported, and its trial is run again.

JSON writes a double by its shortest exact decimal, so values come back equal to the bit. It has no tuples, no mappings
whose keys are not strings and no NumPy scalars: where a strategy's notes or parameters hold these, they are written as
an object whose one key names the type.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from hopbench.eval.files import write_atomically
from hopbench.eval.trials.trial import TrialOutcome
from hopbench.eval.types import PassageRanking
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.types import UNKNOWN_SOURCE, Counters, Hit, Source, Step

_NUMBERS = "biuf"  # NumPy's kinds of numbers that JSON can hold
_SEQUENCES = {kind.__name__: kind for kind in (tuple, set, frozenset)}
_PLAIN = frozenset((type(None), bool, int, float, str))  # nearly all values; of subclasses `_value` asks below
_RANKING = tuple(field.name for field in fields(PassageRanking))
_COUNTERS = tuple(field.name for field in fields(Counters))

FORMAT = "hopbench.unfinished/2"
SUFFIX = ".trial"


def encoded(outcome: TrialOutcome) -> dict[str, Any]:
    """The outcome as values that `json.dumps` writes. Raises TypeError for a strategy's note of an unknown type."""
    return {
        **vars(outcome),
        "parameters": _value(dict(outcome.parameters)),
        "rankings": [[getattr(ranking, name) for name in _RANKING] for ranking in outcome.rankings.values()],
        "hits": {question: [_hit(hit) for hit in hits] for question, hits in outcome.hits.items()},
        "notes": {question: _value(dict(notes)) for question, notes in outcome.notes.items()},
        "counters": _counters(outcome.counters),
    }


def decoded(content: dict[str, Any]) -> TrialOutcome:
    """The outcome that `encoded` wrote. Raises ValueError, TypeError, KeyError or AttributeError for anything else."""
    rankings = []
    for row in content["rankings"]:
        values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in row]
        rankings.append(PassageRanking(**dict(zip(_RANKING, values, strict=True))))
    read = {
        "parameters": _value_of(content["parameters"]),
        "rankings": {ranking.question_id: ranking for ranking in rankings},
        "hits": {question: [_hit_of(row) for row in rows] for question, rows in content["hits"].items()},
        "notes": {question: _value_of(notes) for question, notes in content["notes"].items()},
        "counters": _counters_of(content["counters"]),
    }
    return TrialOutcome(**{**content, **read})


def _hit(hit: Hit) -> tuple[Any, ...]:
    path = [(step.edge, step.source, step.target, step.weight, step.score) for step in hit.path]
    components = dict(hit.components.items())  # `dict` itself would look up each name
    place = hit.source
    source = (place.page_number, place.document_id, place.document_name) if place else None
    return hit.chunk_id, hit.score, hit.origin, components, path, source


def _hit_of(row: Sequence[Any]) -> Hit:
    chunk_id, score, origin, components, path, place = row
    source = UNKNOWN_SOURCE if place is None else Source(*place)
    return Hit(chunk_id, score, origin, components, tuple(Step(*step) for step in path), source)


def _counters(counters: Counters) -> dict[str, Any]:
    counts = {name: getattr(counters, name) for name in _COUNTERS}
    return {**counts, "once": {name: _counters(cost) for name, cost in counters.once.items()}}


def _counters_of(content: Mapping[str, Any]) -> Counters:
    counts: dict[str, Any] = {n: Counter(value) if isinstance(value, dict) else value for n, value in content.items()}
    return Counters(**{**counts, "once": {name: _counters_of(cost) for name, cost in content["once"].items()}})


def _value(value: object) -> Any:
    """A parameter or note; every object is `{kind: content}`, so that no content is taken for a kind."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic):
        if value.dtype.kind not in _NUMBERS:
            raise TypeError(f"a NumPy value of type {value.dtype} cannot be stored")
        return {"numpy": [value.dtype.str, value.item()]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, Mapping):
        kind = "counter" if isinstance(value, Counter) else "mapping"
        return {kind: [[_value(key), _value(item)] for key, item in value.items()]}
    if type(value) in _SEQUENCES.values():
        return {type(value).__name__: [_value(item) for item in value]}  # type: ignore[attr-defined]
    raise TypeError(f"a value of type {type(value).__name__} cannot be stored")


def _value_of(value: Any) -> Any:
    if isinstance(value, list):
        return [_value_of(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "numpy":
        dtype = np.dtype(str(content[0]))
        if dtype.kind not in _NUMBERS:
            raise ValueError(f"{dtype} is not a numeric type")
        return dtype.type(content[1])
    if kind in {"mapping", "counter"}:
        pairs = {_value_of(key): _value_of(item) for key, item in content}
        return Counter(pairs) if kind == "counter" else pairs
    return _SEQUENCES[kind](map(_value_of, content))


@dataclass(frozen=True)
class Unfinished:
    """The folder `.unfinished` in a run's --out, removed when the run succeeds."""

    folder: Path

    def get(self, key: str) -> TrialOutcome | None:
        """The outcome stored under `key`, or None; a damaged file is reported and ignored."""
        file = self.folder / f"{key}{SUFFIX}"
        try:
            head, _, body = file.read_bytes().partition(b"\n")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            notice(f"{file} cannot be read ({error.strerror}): that trial is run again")
            return None
        if head != f"{FORMAT} {hashlib.sha256(body).hexdigest()}".encode():
            notice(f"{file} is damaged or of another version: that trial is run again")
            return None
        try:
            return decoded(json.loads(body))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            notice(f"{file} holds no trial ({type(error).__name__}: {error}): that trial is run again")
            return None

    def put(self, key: str, outcome: TrialOutcome) -> None:
        """Store an outcome atomically."""
        try:
            body = json.dumps(encoded(outcome), separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as error:  # a plug-in's note may hold anything
            notice(f"{outcome.label} is run again if this run is interrupted: {error}")
            return
        head = f"{FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode()
        write_atomically(self.folder / f"{key}{SUFFIX}", head + body)

    def clear(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
