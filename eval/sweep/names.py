"""The source documents' names of parameters in a sweep file, read as the fields' own."""

from __future__ import annotations

from typing import Any

from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.strategies.naming import by_field
from hopbench.retrieval.strategies.registry import canonical_label, registry
from hopbench.retrieval.support.errors import HopBenchError


def with_own_names(entry: Any) -> Any:
    """An entry of a sweep file as it was written, with aliases replaced; what is no entry or unknown stays as it is.

    Raises ValueError, as a validator does, where two names mean one parameter.
    """
    if not isinstance(entry, dict) or not isinstance(entry.get("strategy"), str):
        return entry
    name = Label.of_any(entry["strategy"]).name
    if name not in registry().names():
        return entry
    kind = registry().get(name)

    def own(values: Any) -> Any:
        return by_field(kind, values) if isinstance(values, dict) else values

    try:
        given = {field: own(entry[field]) for field in ("base", "grid", "space", "when") if field in entry}
        if isinstance(given.get("when"), dict):
            given["when"] = {parameter: own(others) for parameter, others in given["when"].items()}
        return {**entry, "strategy": canonical_label(entry["strategy"]), **given}
    except HopBenchError as error:
        raise ValueError(str(error)) from error
