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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from hopbench.eval.files import write_atomically
from hopbench.eval.trials.trial import TrialOutcome, UnitOutcome
from hopbench.eval.types import PassageRanking
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.types import UNKNOWN_SOURCE, Counters, Hit, Source, Step

_NUMBERS = "biuf"  # NumPy's kinds of numbers that JSON can hold
_COUNTS = tuple(field.name for field in fields(Counters) if field.type == "int")
_COUNTS_BY_NAME = ("terminations", "stage_seconds", "observed")
_PLAIN = frozenset((type(None), bool, int, float, str))  # nearly all values; of subclasses `_value` asks below
_RANKING = tuple(field.name for field in fields(PassageRanking))

Json = Any
"""A value as `json.loads` returns it, of a shape that only the strategy knows."""

StepRow = tuple[str, str, str, float, float]
SourceRow = tuple[int | str | None, str, str]
HitRow = tuple[str, float, str, Mapping[str, float], Sequence[StepRow], SourceRow | None]
FORMAT = "hopbench.unfinished/1"
SUFFIX = ".trial"


class TrialContent(TypedDict):
    """A `TrialOutcome`; a ranking is the list of its fields' values, `counters` are by the fields' names."""

    label: str
    strategy: str
    parameters: Json
    rankings: Sequence[Sequence[object]]
    hits: Mapping[str, Sequence[HitRow]]
    notes: Mapping[str, Json]
    counters: Mapping[str, Json]
    seconds: float
    once_seconds: float
    latency_ms: Mapping[str, float]
    pace: Mapping[str, float]


class OutcomeContent(TypedDict, total=False):
    """A whole trial's outcome, or that of a `unit` with what its batch cost for all labels."""

    trial: TrialContent
    unit: TrialContent
    shared_seconds: float


def encoded(outcome: TrialOutcome | UnitOutcome) -> OutcomeContent:
    """The outcome as values that `json.dumps` writes. Raises TypeError for a strategy's note of an unknown type."""
    if isinstance(outcome, UnitOutcome):
        return {"unit": _trial(outcome.outcome), "shared_seconds": outcome.shared_seconds}
    return {"trial": _trial(outcome)}


def decoded(content: OutcomeContent) -> TrialOutcome | UnitOutcome:
    """The outcome that `encoded` wrote. Raises ValueError, TypeError, KeyError or AttributeError for anything else."""
    if "unit" in content:
        return UnitOutcome(_trial_of(content["unit"]), float(content["shared_seconds"]))
    return _trial_of(content["trial"])


def _trial(outcome: TrialOutcome) -> TrialContent:
    return {
        "label": outcome.label,
        "strategy": outcome.strategy,
        "parameters": _value(dict(outcome.parameters)),
        "rankings": [[getattr(ranking, name) for name in _RANKING] for ranking in outcome.rankings.values()],
        "hits": {question: [_hit(hit) for hit in hits] for question, hits in outcome.hits.items()},
        "notes": {question: _value(dict(notes)) for question, notes in outcome.notes.items()},
        "counters": _counters(outcome.counters),
        "seconds": outcome.seconds,
        "once_seconds": outcome.once_seconds,
        "latency_ms": outcome.latency_ms,
        "pace": outcome.pace,
    }


def _trial_of(content: TrialContent) -> TrialOutcome:
    rankings = [_ranking_of(row) for row in content["rankings"]]
    return TrialOutcome(
        str(content["label"]),
        str(content["strategy"]),
        _value_of(content["parameters"]),
        {ranking.question_id: ranking for ranking in rankings},
        {question: [_hit_of(row) for row in rows] for question, rows in content["hits"].items()},
        {question: _value_of(notes) for question, notes in content["notes"].items()},
        _counters_of(content["counters"]),
        float(content["seconds"]),
        float(content["once_seconds"]),
        {question: float(value) for question, value in content["latency_ms"].items()},
        {name: float(value) for name, value in content["pace"].items()},
    )


def _ranking_of(row: Sequence[object]) -> PassageRanking:
    values = [tuple(value) if isinstance(value, list) else value for value in row]
    named = dict(zip(_RANKING, values, strict=True))
    return PassageRanking(**named)  # type: ignore[arg-type] # the file's checksum says that we wrote it


def _hit(hit: Hit) -> HitRow:
    path = [(step.edge, step.source, step.target, step.weight, step.score) for step in hit.path]
    components = dict(hit.components.items())  # `dict` itself would look up each name
    place = hit.source
    source = (place.page_number, place.document_id, place.document_name) if place else None
    return hit.chunk_id, hit.score, hit.origin, components, path, source


def _hit_of(row: HitRow) -> Hit:
    chunk_id, score, origin, components, path, place = row
    source = UNKNOWN_SOURCE if place is None else Source(*place)
    return Hit(chunk_id, score, origin, dict(components), tuple(Step(*step) for step in path), source)


def _counters(counters: Counters) -> Mapping[str, Json]:
    return {
        **{name: getattr(counters, name) for name in _COUNTS},
        **{name: dict(getattr(counters, name)) for name in _COUNTS_BY_NAME},
        "once": {name: _counters(cost) for name, cost in counters.once.items()},
    }


def _counters_of(content: Mapping[str, Json]) -> Counters:
    counters = Counters(once={name: _counters_of(cost) for name, cost in content["once"].items()})
    for name in _COUNTS:
        setattr(counters, name, int(content[name]))
    for name in _COUNTS_BY_NAME:
        setattr(counters, name, Counter(content[name]))
    return counters


def _value(value: object) -> Json:
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
    for kind, type_ in (("tuple", tuple), ("set", set), ("frozenset", frozenset)):
        if type(value) is type_:
            return {kind: [_value(item) for item in value]}
    raise TypeError(f"a value of type {type(value).__name__} cannot be stored")


def _value_of(value: Json) -> Json:
    if isinstance(value, list):
        return [_value_of(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    return _KINDS[kind](content)


def _number(content: list[Any]) -> np.generic:
    dtype = np.dtype(str(content[0]))
    if dtype.kind not in _NUMBERS:
        raise ValueError(f"{dtype} is not a numeric type")
    number: np.generic = dtype.type(content[1])
    return number


_KINDS: Mapping[str, Callable[[list[Any]], Any]] = {
    "numpy": _number,
    "mapping": lambda pairs: {_value_of(key): _value_of(item) for key, item in pairs},
    "counter": lambda pairs: Counter({_value_of(key): _value_of(item) for key, item in pairs}),
    "tuple": lambda items: tuple(map(_value_of, items)),
    "set": lambda items: set(map(_value_of, items)),
    "frozenset": lambda items: frozenset(map(_value_of, items)),
}


@dataclass(frozen=True)
class Unfinished:
    """The folder `.unfinished` in a run's --out, removed when the run succeeds."""

    folder: Path

    def get(self, key: str) -> TrialOutcome | None:
        """The outcome stored under `key`, or None; a damaged file is reported and ignored."""
        outcome = self._read(key)
        return outcome if isinstance(outcome, TrialOutcome) else None

    def put(self, key: str, outcome: TrialOutcome) -> None:
        """Store an outcome atomically."""
        self._write(key, outcome)

    def get_unit(self, key: str) -> UnitOutcome | None:
        """A part of a trial, as a worker returned it."""
        outcome = self._read(key)
        return outcome if isinstance(outcome, UnitOutcome) else None

    def put_unit(self, key: str, outcome: UnitOutcome) -> None:
        """Store a part of a trial atomically."""
        self._write(key, outcome)

    def _write(self, key: str, outcome: TrialOutcome | UnitOutcome) -> None:
        try:
            body = json.dumps(encoded(outcome), separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as error:  # a plug-in's note may hold anything
            label = outcome.outcome.label if isinstance(outcome, UnitOutcome) else outcome.label
            notice(f"{label} is run again if this run is interrupted: {error}")
            return
        head = f"{FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode()
        write_atomically(self.folder / f"{key}{SUFFIX}", head + body)

    def _read(self, key: str) -> TrialOutcome | UnitOutcome | None:
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

    def clear(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
