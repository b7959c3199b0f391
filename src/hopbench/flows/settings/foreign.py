"""`--runs NAME=FILE` and `--retriever NAME=URL`: the labels of a run that are not ours."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.eval.types import Benchmark
    from hopbench.retrieval.external import ExternalRetriever, Function
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.strategies.base import Strategy
    from hopbench.retrieval.types import Question

KEY, HEADERS = "HOPBENCH_API_KEY_", "HOPBENCH_SECRET_HEADERS_"
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,79}", re.ASCII)
FORM = "has up to 80 letters, digits, '.', '_', '+' or '-' and begins with a letter or digit"
_TAKEN = ("all", "champion", "closed_book")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def named(flag: str, text: str) -> tuple[str, str]:
    """`NAME=VALUE` → (NAME, VALUE). Raises InputError for a name that cannot be a label beside ours."""
    name, equals, value = text.partition("=")
    if not equals or not value or not _NAME.fullmatch(name):
        wanted = "URL" if flag == "--retriever" else "FILE"
        raise InputError(f"{flag}: write NAME={wanted}, where the name {FORM}")
    _refuse_taken(flag, name)
    return name, value


def _refuse_taken(flag: str, name: str) -> None:
    from hopbench.retrieval.strategies.registry import registry  # loads scipy

    if name in registry().names() or name in _TAKEN:
        raise InputError(f"{flag} {name}: that is the name of one of HopBench's own: choose another, such as my-{name}")


def foreign_labels(
    runs: Sequence[str], retrievers: Sequence[str], functions: Mapping[str, Function], changes: Sequence[str]
) -> tuple[dict[str, ExternalRetriever], list[str]]:
    """The labels that the flags name, and `functions` as they are, with the changes of `--set NAME.field=value`.

    Also returns the changes that name none of them.
    """
    found: dict[str, ExternalRetriever] = {}

    def add(flag: str, more: Mapping[str, ExternalRetriever]) -> None:
        if twice := next((label for label in more if label in found), None):
            raise InputError(f"{flag} {twice}: two retrievers have that name: give each a name of its own")
        found.update(more)

    for text in runs:
        name, place = named("--runs", text)
        add("--runs", recorded_labels(name, place))
    keys: dict[str, str] = {}
    for text in retrievers:
        name, url = named("--retriever", text)
        if (other := keys.setdefault(_suffix(name), name)) != name:
            raise InputError(
                f"--retriever {name}: {other} reads the same keys from the environment (…_{_suffix(name)}), and each "
                "endpoint must get its own only: give one of them another name"
            )
        add("--retriever", {name: _endpoint(name, url)})
    for name, function in functions.items():
        if not _NAME.fullmatch(name):
            raise InputError(f"function {name!r}: choose another name, one that {FORM}")
        _refuse_taken("function", name)
        add("function", {name: function})
    ours = [change for change in changes if change.partition("=")[0].partition(".")[0] not in found]
    return (dict(_changed(*one, changes) for one in found.items()) if len(ours) < len(changes) else found), ours


def recorded_labels(name: str, place: str) -> dict[str, ExternalRetriever]:
    """The label of a file of rankings; of an earlier run's folder, `NAME:LABEL` for each of its labels.

    `FOLDER:LABEL` takes that one label alone, and calls it NAME; so is the only label of a folder called.
    """
    from hopbench.eval.benchmarks import load_rankings
    from hopbench.eval.runs.external import folder_rankings, recorded
    from hopbench.retrieval.support.errors import UnknownNameError

    folder, _, chosen = place, "", ""
    if not Path(place).exists() and ":" in place:
        cuts = [i for i, mark in enumerate(place) if mark == ":" and Path(place[:i]).is_dir()]
        if cuts:
            folder, chosen = place[: cuts[-1]], place[cuts[-1] + 1 :]
    if not Path(folder).is_dir():
        return {name: recorded(load_rankings(place))}
    labels = folder_rankings(Path(folder))
    if chosen and chosen not in labels:
        raise UnknownNameError(f"label in {folder}", chosen, labels)
    taken = {chosen: labels[chosen]} if chosen else labels
    return {name if len(taken) == 1 else f"{name}:{label}": recorded(file) for label, file in taken.items()}


def check_foreign(strategies: Mapping[str, Strategy], benchmark: Benchmark) -> None:
    """Raise InputError for a run of other questions or other passages."""
    from hopbench.eval.runs.external import refuse_other_benchmark
    from hopbench.retrieval.external import Recorded

    for label, strategy in strategies.items():
        if isinstance(strategy, Recorded):
            refuse_other_benchmark(label, strategy, benchmark)


def tie_notes(strategies: Mapping[str, Strategy]) -> list[str]:
    """A line for each run whose file has passages of equal scores."""
    from hopbench.retrieval.external import Recorded

    return [
        f"--runs {label}: {one.ties:,} {'tie' if one.ties == 1 else 'ties'}, ordered as trec_eval orders them (by id, "
        "descending)"
        for label, one in strategies.items()
        if isinstance(one, Recorded) and one.ties
    ]


def close_foreign(strategies: Iterable[Strategy]) -> None:
    """Close the connections of endpoints."""
    from hopbench.retrieval.external import ExternalRetriever

    for strategy in strategies:
        if isinstance(strategy, ExternalRetriever):
            strategy.close()


def changed_answers(
    strategies: Mapping[str, Strategy], trials: Mapping[str, TrialOutcome], questions: Sequence[Question], index: Index
) -> list[str]:
    """A warning for each endpoint that answers one question of the finished run otherwise when it is asked again."""
    from hopbench.retrieval.external_endpoint import Endpoint
    from hopbench.retrieval.index import Batch
    from hopbench.retrieval.types import DETAILED, Counters

    found = []
    for label, strategy in strategies.items():
        ranked = trials[label].rankings
        question = next((one for one in questions if one.id in ranked and ranked[one.id].failure is None), None)
        if not isinstance(strategy, Endpoint) or question is None:
            continue
        (again,) = strategy.rank(Batch(index, [question]), Counters())
        before = [hit.chunk_id for hit in trials[label].hits[question.id]]
        if again.failure is None and before != [hit.chunk_id for hit in again.hits[:DETAILED]]:
            found.append(
                f"{label}: the endpoint answered question {question.id} otherwise when it was asked again: its answers "
                "change within a run, so its figures are of no one state and cannot be repeated"
            )
    return found


def _endpoint(name: str, url: str) -> ExternalRetriever:
    from hopbench.retrieval.external_endpoint import Endpoint, check_url

    return Endpoint(url=check_url(url, f"--retriever {name}"), headers=headers_of(name, os.environ))


def headers_of(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The headers for requests to the endpoint `name`: for `my-one`, the variables `…_MY_ONE` hold key and headers.

    Raises InputError, which shows no value.
    """
    suffix = _suffix(name)
    found: dict[str, str] = {}
    if key := environment.get(KEY + suffix):
        found["Authorization"] = f"Bearer {key}"
    if text := environment.get(HEADERS + suffix):
        try:
            given: Any = json.loads(text)
        except ValueError:
            given = None
        fits = isinstance(given, dict) and all(_HEADER.fullmatch(k) and isinstance(v, str) for k, v in given.items())
        if not fits:
            raise InputError(
                f'{HEADERS}{suffix}: not a JSON object of header names and texts, such as {{"X-Api-Key": "…"}}'
            )
        found |= given
    for header, value in found.items():
        if not (value.isascii() and value.isprintable()):
            raise InputError(f"{KEY}{suffix} or {HEADERS}{suffix}: the value of {header} is no printable ASCII text")
    return found


def _suffix(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII).upper()


def _changed(label: str, strategy: ExternalRetriever, changes: Sequence[str]) -> tuple[str, ExternalRetriever]:
    """The label and its strategy with the changes that name it, which the label shows."""
    from hopbench.retrieval.strategies.label import Label
    from hopbench.retrieval.strategies.parameters import field_named
    from hopbench.retrieval.strategies.registry import parse_value

    values: dict[str, str] = {}
    for change in changes:
        target, _, value = change.partition("=")
        name, _, field = target.partition(".")
        if name == label:
            values[field_named(type(strategy), field.strip())] = value
    if not values:
        return label, strategy
    parsed: dict[str, Any] = {name: parse_value(type(strategy), name, value) for name, value in values.items()}
    return str(Label(label, None, values)), replace(strategy, **parsed)
