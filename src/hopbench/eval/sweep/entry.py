"""An entry of a sweep file: a strategy with what its trials vary, and the build settings to try."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from hopbench.eval.sweep.values import MOST_VALUES, Range, Scalar, Section
from hopbench.retrieval.graph.construction.plan import build_numbers
from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.strategies.parameters import by_field
from hopbench.retrieval.strategies.registry import canonical_label, registry
from hopbench.retrieval.support.errors import HopBenchError


class Entry(Section):
    """A strategy with the values that its trials take: `base` for all of them, `grid` and `space` for what varies.

    `strategy` is a label as `run` takes it (`NAME`, `NAME:tuned`); fields that stand nowhere here keep its values. A
    parameter of `when` varies only where the other parameters named there have one of the values listed. Names that the
    source documents have for parameters become the fields' own.
    """

    strategy: str = Field(description="a label as `hopbench run` takes it: NAME or NAME:tuned")
    base: dict[str, Scalar] = Field(default_factory=dict, description="parameter: the value that all trials take")
    grid: dict[str, list[Scalar]] = Field(default_factory=dict, description="parameter: the values to try")
    space: dict[str, Range] = Field(default_factory=dict, description="parameter: the range to try values of")
    when: dict[str, dict[str, list[Scalar] | Scalar]] = Field(
        default_factory=dict, description="parameter: {other parameter: value or values} under which it varies at all"
    )

    @field_validator("grid")
    @classmethod
    def _filled(cls, grid: dict[str, list[Scalar]]) -> dict[str, list[Scalar]]:
        if empty := [name for name, values in grid.items() if not values]:
            raise ValueError(f"no values for {', '.join(empty)}: list at least one")
        if long := [name for name, values in grid.items() if len(values) > MOST_VALUES]:
            raise ValueError(f"{', '.join(long)}: over {MOST_VALUES:,} values, which is the limit: list fewer")
        return grid

    @model_validator(mode="before")
    @classmethod
    def _own_names(cls, content: Any) -> Any:
        return with_own_names(content)


def _limits(name: str) -> Any:
    number = build_numbers()[name]
    return Field(ge=number.low, le=number.high)


def _values(name: str) -> Any:
    return Field(default_factory=list, description=build_numbers()[name].help)


class BuildValues(Section):
    """Build settings to try, each combination a graph of its own."""

    embedder: list[str] = Field(default_factory=list, description="as --embedder of run")
    extractor: list[str] = Field(default_factory=list, description="as --extractor of run")
    similar_top_k: list[Annotated[int, _limits("similar_top_k")]] = _values("similar_top_k")
    similar_floor: list[Annotated[float, _limits("similar_floor")]] = _values("similar_floor")
    max_tokens: list[Annotated[int, _limits("max_tokens")]] = _values("max_tokens")


def with_own_names(entry: Any) -> Any:
    """An entry of a sweep file as it was written, with aliases replaced; what is no entry or unknown stays as it is.

    Raises ValueError, as a validator does, where two names mean one parameter.
    """
    if not isinstance(entry, dict) or not isinstance(entry.get("strategy"), str):
        return entry
    parts = Label.of_any(entry["strategy"])
    if parts.reranker:
        raise ValueError(f"strategy: a sweep varies one strategy: leave out +{parts.reranker}")
    name = parts.name
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
