"""A configuration of a sweep: a strategy with its parameters, on a graph with its build settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hopbench.eval.sweep.values import Scalar
from hopbench.retrieval.graph.construction.plan import build_numbers
from hopbench.retrieval.strategies.base import Strategy

BUILD = "build."


@dataclass(frozen=True)
class Build:
    """The build settings of the graph that a configuration is tried on; None is the builder's default."""

    embedder: str = "wordllama"
    extractor: str = "rules"
    similar_top_k: int | None = None
    similar_floor: float | None = None
    max_tokens: int | None = None

    def settings(self) -> dict[str, int | float]:
        """The settings that differ from the builder's defaults."""
        return {name: value for name in build_numbers() if (value := getattr(self, name)) is not None}

    def changed(self, settings: Mapping[str, Scalar]) -> Build:
        """The build with some of its fields set to other values."""
        return replace(self, **settings)  # type: ignore[arg-type] # the sweep file's schema has checked them

    def __str__(self) -> str:
        parts = [self.embedder, self.extractor, *(f"{name}={value}" for name, value in self.settings().items())]
        return ", ".join(parts)


@dataclass(frozen=True)
class Candidate:
    """A configuration to try on every data set.

    `label` is what `run` makes the same strategy from. An ablation names the strategy it changes, `of`, and the edge
    types that it is `without`. `varied` are the values that the search gave it, those of build
    settings under `build.NAME`.
    """

    strategy: Strategy
    label: str
    varied: Mapping[str, Scalar] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    of: Strategy | None = None
    build: Build = Build()

    @property
    def key(self) -> tuple[Strategy, Build]:
        """Equal for equal configurations."""
        return self.strategy, self.build

    @property
    def title(self) -> str:
        """Its label, with what it lacks and the build settings that vary."""
        build = [f"{name}={value}" for name, value in self.varied.items() if name.startswith(BUILD)]
        return " without ".join([" ".join([self.label, *build]), *self.without])
