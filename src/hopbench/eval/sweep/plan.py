"""From a sweep file to its plan: the spaces of its entries, and the configurations of a search that lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hopbench.eval.sweep.fields import MAX_LISTED, MAX_TRIALS, Range, Scalar
from hopbench.eval.sweep.file import SweepFile, dataset_of, expanded_path, read_file
from hopbench.eval.sweep.space import Build, Candidate, Dimension, Space
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.registry import changed_label
from hopbench.retrieval.support.errors import HopBenchError, InputError

ATTEMPTS = 50  # draws for each configuration wanted, before a random search takes the space for exhausted


@dataclass(frozen=True)
class SweepPlan:
    """A validated sweep: `candidates` are in the file's order, each once (none where the search finds them itself).

    `named` are the fields that the file sets.
    """

    file: Path
    content: SweepFile
    datasets: tuple[str, ...]
    spaces: tuple[Space, ...]
    candidates: tuple[Candidate, ...]
    named: frozenset[str]
    report_on: str | None = None

    @property
    def configurations(self) -> int:
        """How many configurations will be tried."""
        return len(self.candidates) or self.content.trials or 0

    @property
    def each(self) -> int:
        """Trials of one configuration: a trial is a configuration on a data set with a seed, repeated or not."""
        return len(self.datasets) * len(self.content.all_seeds) * self.content.repeats

    @property
    def trials(self) -> int:
        """All trials, were none dropped."""
        return self.configurations * self.each

    @property
    def builds(self) -> tuple[Build, ...]:
        """Every build that a configuration may ask for."""
        if self.candidates:
            return tuple(dict.fromkeys(candidate.build for candidate in self.candidates))
        return tuple(dict.fromkeys(build for space in self.spaces for build in space.builds()))

    @property
    def floors(self) -> dict[tuple[str, str], float]:
        """The lowest threshold of each kind that a trial may ask for, by (strategy, parameter)."""
        lowest: dict[tuple[str, str], float] = {}
        for space in self.spaces:
            varied = {dimension.name: dimension.ends() for dimension in space.dimensions}
            for name in space.start.thresholds:
                values = varied.get(name, [getattr(space.start, name)])
                place = space.start.name, name
                lowest[place] = min(lowest.get(place, 1.0), *map(float, values))
        return lowest

    @property
    def preset(self) -> Path | None:
        """Where the best parameters go, if anywhere."""
        wanted = self.content.write_preset
        return (
            None if wanted is None else (self.file.parent / expanded_path(wanted, self.file, "write_preset")).resolve()
        )


def read_sweep(file: Path, flags: Mapping[str, object] | None = None) -> SweepPlan:
    """Parse and check a sweep file, some of whose fields `flags` replace.

    Raises InputError with the file, the field, the value and the remedy.
    """
    content = read_file(file, flags)
    spaces = tuple(Space(entry, content) for entry in content.strategy)
    try:
        for space in spaces:
            space.check()
        candidates = _distinct(_listed(spaces, content))
    except HopBenchError as error:
        raise InputError(f"{file}: {error}") from error
    datasets = tuple(dict.fromkeys(dataset_of(name, file) for name in content.datasets))
    report_on = None if content.report_on is None else dataset_of(content.report_on, file, "report_on")
    if content.write_preset is not None:
        expanded_path(content.write_preset, file, "write_preset")
    if report_on in datasets:
        raise InputError(f"{file}: report_on: {content.report_on!r} is among the datasets that choose the winner")
    named = frozenset(name for entry in content.strategy for name in (*entry.base, *entry.grid, *entry.space))
    plan = SweepPlan(file, content, datasets, spaces, tuple(candidates), named, report_on)
    if plan.trials > MAX_TRIALS:
        size = f"{plan.configurations:,} configurations × {plan.each:,} (datasets × seeds × repeats)"
        raise InputError(f"{file}: {size} are over {MAX_TRIALS:,} trials, which is the limit: ask for fewer")
    return plan


def _listed(spaces: Sequence[Space], content: SweepFile) -> Iterator[Candidate]:
    """List the configurations of the search, each followed by its ablations; none for a Bayesian search."""
    found: Iterable[Candidate] = ()
    match content.search:
        case "grid":
            if sum(space.combinations for space in spaces) > MAX_LISTED:
                names = ", ".join(dict.fromkeys(space.start.name for space in spaces))
                raise InputError(
                    f"{names}: the grid has over {MAX_LISTED:,} combinations, the limit: use search: random"
                )
            found = (candidate for space in spaces for candidate in space.grid())
        case "ofat":
            found = (candidate for space in spaces for candidate in space.one_at_a_time())
        case "random":
            found = _drawn(spaces, content.trials or 0, content.seed)
    for candidate in found:
        yield candidate
        whole = candidate.strategy
        for less, edges in ablated(whole).items() if content.ablations else ():
            changes = {name: value for name, value in less.spec().items() if value != whole.spec()[name]}
            label = changed_label(candidate.label, changes)
            yield replace(candidate, strategy=less, label=label, without=edges, of=whole)


def _drawn(spaces: Sequence[Space], count: int, seed: int) -> list[Candidate]:
    """Draw `count` distinct random configurations, or all where there are no more; all entries are equally likely."""
    rng = np.random.default_rng(seed)
    drawn: dict[object, Candidate] = {}
    since = 0  # draws since the last new one
    for _ in range(count * ATTEMPTS):
        if len(drawn) == count or since > ATTEMPTS * (len(drawn) + ATTEMPTS):
            break
        space = spaces[int(rng.integers(len(spaces)))]
        candidate = space.candidate(lambda dimension: _drawn_value(dimension, rng))
        since = since + 1 if candidate.key in drawn else 0
        drawn.setdefault(candidate.key, candidate)
    return list(drawn.values())


def _drawn_value(dimension: Dimension, rng: np.random.Generator) -> Scalar:
    """Draw a value of the dimension uniformly (a logarithmic range: uniformly by magnitude)."""
    span = dimension.values
    if not isinstance(span, Range):
        return span[int(rng.integers(len(span)))]
    if span.step is not None:
        return span.values()[int(rng.integers(len(span.values())))]
    if span.log:
        drawn = float(np.exp(rng.uniform(np.log(span.low), np.log(span.high))))
        return round(drawn) if span.whole else float(f"{drawn:.4g}")
    if span.whole:
        return int(rng.integers(int(span.low), int(span.high) + 1))
    return round(float(rng.uniform(span.low, span.high)), 4)


def ablated(whole: Strategy) -> dict[Strategy, tuple[str, ...]]:
    """Remove each edge type from the strategy: variant → the types it lacks.

    Types that can only go together make one variant; the strategy itself is the variant without a type it does not use.
    """
    variants: dict[Strategy, tuple[str, ...]] = {}
    for edge, changes in whole.ablations.items():
        less = replace(whole, **changes)
        variants[less] = (*variants.get(less, ()), edge)
    return variants


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Each configuration once; one that is an ablation of another as well counts as what the file asks for."""
    every = list(candidates)
    wanted = {candidate.key for candidate in every if candidate.of is None}
    first: dict[object, Candidate] = {}
    for candidate in every:
        if candidate.of is None or candidate.key not in wanted:
            first.setdefault(candidate.key, candidate)
    return list(first.values())
