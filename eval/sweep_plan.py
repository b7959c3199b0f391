"""From a sweep file to its trials: every combination of parameters, once, with the ablations it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from eval.sweep_file import Entry, Scalar, SweepFile, dataset_of, expanded_path, read_file
from retrieval.errors import HopBenchError, InputError, UnknownNameError
from retrieval.strategies.base import Strategy
from retrieval.strategies.registry import label_of, make


@dataclass(frozen=True)
class Candidate:
    """A configuration to try on every data set.

    `label` is what `run` makes the same strategy from. An ablation has the label of the configuration it changes, `of`,
    and `without` names the edge types it removes. `varied` are the values that the grid gave it.
    """

    strategy: Strategy
    label: str
    varied: Mapping[str, Scalar] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    of: Strategy | None = None


@dataclass(frozen=True)
class SweepPlan:
    """A validated sweep: `candidates` are in the file's order, each once; `named` are the fields that the file sets."""

    file: Path
    content: SweepFile
    datasets: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    named: frozenset[str]

    @property
    def trials(self) -> int:
        """A trial is a candidate on a data set."""
        return len(self.candidates) * len(self.datasets)

    @property
    def preset(self) -> Path | None:
        """Where the best parameters go, if anywhere."""
        wanted = self.content.write_preset
        return None if wanted is None else (self.file.parent / expanded_path(wanted, self.file)).resolve()


def read_sweep(file: Path) -> SweepPlan:
    """Parse and check a sweep file. Raises InputError with the file, the field, the value and the remedy."""
    content = read_file(file)
    candidates: list[Candidate] = []
    for entry in content.strategy:
        try:
            candidates += _expand(entry, content.ablations)
        except HopBenchError as error:
            raise InputError(f"{file}: {error}") from error
    datasets = tuple(dict.fromkeys(dataset_of(name, file) for name in content.datasets))
    named = frozenset(name for entry in content.strategy for name in (*entry.base, *entry.grid))
    return SweepPlan(file, content, datasets, tuple(_distinct(candidates)), named)


def _expand(entry: Entry, ablations: bool) -> list[Candidate]:
    """Every combination of an entry's grid, each followed by its ablations."""
    start = make(entry.strategy)
    kind, name = type(start), start.name
    both = sorted(set(entry.base) & set(entry.grid))
    if both:
        raise InputError(f"{name}: {', '.join(both)} stands in base and in grid: leave it in one of them")
    for parameter in (*entry.base, *entry.grid):
        if parameter not in kind.parameters():
            raise UnknownNameError(f"parameter of {name}", parameter, kind.parameters())
    found = []
    for values in product(*entry.grid.values()):
        varied = dict(zip(entry.grid, values, strict=True))
        whole = _made(kind, {**start.spec(), **entry.base, **varied})
        label = label_of(entry.strategy, None, {one: str(value) for one, value in {**entry.base, **varied}.items()})
        found.append(Candidate(whole, label, varied))
        if ablations:
            found += [Candidate(less, label, varied, edges, whole) for less, edges in ablated(whole).items()]
    return found


def ablated(whole: Strategy) -> dict[Strategy, tuple[str, ...]]:
    """The strategy without each of its edge types: variant → the types it lacks.

    Types that can only go together make one variant; the strategy itself is the variant without a type it does not use.
    """
    found: dict[Strategy, tuple[str, ...]] = {}
    for edge, changes in whole.ablations.items():
        less = replace(whole, **changes)
        found[less] = (*found.get(less, ()), edge)
    return found


def _made(kind: type[Strategy], parameters: Mapping[str, Any]) -> Strategy:
    """The strategy; a whole number for a real parameter counts as that real, so that 1 and 1.0 are one trial."""
    real = {spec.name for spec in fields(kind) if isinstance(spec.default, float)}
    values: dict[str, Any] = {n: float(v) if n in real and type(v) is int else v for n, v in parameters.items()}
    return kind(**values)


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Each configuration once; one that is an ablation of another as well counts as what the file asks for."""
    wanted = {candidate.strategy for candidate in candidates if candidate.of is None}
    first: dict[Strategy, Candidate] = {}
    for candidate in candidates:
        if candidate.of is None or candidate.strategy not in wanted:
            first.setdefault(candidate.strategy, candidate)
    return list(first.values())
