"""Why a flow cannot take the parameters that it was sent, in words that say what to send instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from inspect import Parameter
from reprlib import Repr
from typing import Any

from hopbench.flows.settings.parameters import Described

_shown = Repr()
_shown.maxstring = _shown.maxother = 100


def refusal(flow: str, parameters: Sequence[Described], values: Mapping[str, Any]) -> str | None:
    """What is wrong with the values sent to a flow, and the remedy; None where each fits its parameter."""
    reasons = list(_reasons(parameters, values))
    if not reasons:
        return None
    return f"{flow} did not run: {'; '.join(reasons)}. Correct the parameters and start it again"


def _reasons(parameters: Sequence[Described], values: Mapping[str, Any]) -> Iterator[str]:
    known = {one.name: one for one in parameters}
    for name in values:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            instead = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            yield f"parameter {name} (sent: {_shown.repr(values[name])}) is unknown, {instead}"
    for name, one in known.items():
        if name in values:
            yield from _misfits(one, values[name])
        elif one.parameter.default is Parameter.empty:
            yield f"parameter {name} is missing: {one.about}"


def _misfits(one: Described, value: Any) -> Iterator[str]:
    from pydantic import ConfigDict, TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError

    try:
        adapter = TypeAdapter(one.parameter.annotation, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:  # a model's own configuration holds
        adapter = TypeAdapter(one.parameter.annotation)
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        limits = dict.fromkeys(part["msg"] for part in error.errors())
        yield f"parameter {one.name}={_shown.repr(value)}: {', or '.join(limits)} ({one.about.rstrip('.')})"
