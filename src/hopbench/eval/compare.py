"""Compare labels pair by pair on one metric: which differences are real."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from hopbench.eval.metrics.registry import PRIMARY, get_metric, rank_key
from hopbench.eval.statistics import (
    ALPHA,
    DECIMALS,
    RESAMPLES,
    FloatArray,
    Interval,
    Seed,
    check_settings,
    clean,
    compatible,
    holm,
    mean_ci,
    mean_cis,
    minimum_detectable,
    sign_flip_p,
)
from hopbench.eval.types import too_many_failed
from hopbench.retrieval.strategies.label import HOP_FREE, Label
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["better", "worse", "not distinguishable"]
BREAKDOWN_RESAMPLES = 1_999
"""Enough for the intervals by type, on which no verdict stands, and for metrics beside the primary one."""


@dataclass(frozen=True, slots=True)
class LabelCoverage:
    """How much of the questions a label answered; `incomplete` if too many failed."""

    questions: int
    failures: int

    @property
    def coverage(self) -> float:
        """Share of the questions answered."""
        return 1 - self.failures / self.questions

    @property
    def incomplete(self) -> bool:
        """Whether too many questions failed for its means to be trusted."""
        return too_many_failed(self.failures, self.questions)


@dataclass(frozen=True, slots=True)
class TypeBreakdown:
    """A pair on the questions of one type; exploratory, outside the corrected family."""

    n: int
    difference: float
    ci: Interval | None
    wins: int
    losses: int
    ties: int


@dataclass(frozen=True, slots=True)
class PairResult:
    """`label` against `baseline` on the `n` questions that both answered.

    `difference` is the mean of label − baseline; `ci` is its own bootstrap interval, `ci_family` the one that holds
    together with all others of the family (see `statistics.compatible`); None where n is too small. `p` is the
    sign-flip test's, `p_holm` after Holm over the family. `verdict` is not "not distinguishable" exactly if p_holm is
    below alpha, which is exactly if `ci_family` excludes 0; better and worse heed the metric's direction, as do `wins`
    and `losses` (question ids, largest difference first). `minimum_detectable` is the true difference that this many
    questions would show four times in five.
    """

    label: str
    baseline: str
    n: int
    difference: float | None
    ci: Interval | None
    ci_family: Interval | None
    p: float
    p_holm: float
    minimum_detectable: float | None
    verdict: Verdict
    incomplete: bool
    wins: tuple[str, ...]
    losses: tuple[str, ...]
    ties: int
    by_type: Mapping[str, TypeBreakdown]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pairs of one family, corrected together; `baseline` is None when every pair of labels was compared."""

    metric: str
    baseline: str | None
    alpha: float
    resamples: int
    pairs: tuple[PairResult, ...]
    labels: Mapping[str, LabelCoverage]

    def pair(self, label: str, baseline: str | None = None) -> PairResult | None:
        """Look up the comparison of a label with a baseline (default: the family's); None if there is none."""
        wanted = (label, baseline or self.baseline)
        return next((p for p in self.pairs if (p.label, p.baseline) == wanted), None)

    def to_frame(self) -> pd.DataFrame:
        """Make a row per pair: label, baseline, n, difference, low, high, p (Holm), verdict, won, lost, tied.

        `low` and `high` are the interval that holds for all pairs together; it excludes 0 exactly where the verdict is
        better or worse.
        """
        import pandas as pd

        rows = [
            (
                *(pair.label, pair.baseline, pair.n, pair.difference),
                *((pair.ci_family.low, pair.ci_family.high) if pair.ci_family else (None, None)),
                *(pair.p_holm, pair.verdict, len(pair.wins), len(pair.losses), pair.ties),
            )
            for pair in self.pairs
        ]
        columns = ["label", "baseline", "n", "difference", "low", "high", "p", "verdict", "won", "lost", "tied"]
        return pd.DataFrame(rows, columns=columns)

    def _repr_html_(self) -> str:
        """Render the table of pairs for a notebook."""
        table: str = self.to_frame().to_html(index=False, float_format=lambda value: f"{value:.3f}", na_rep="–")
        return table

    def to_dict(self) -> dict[str, object]:
        """Convert to plain JSON types; tuples become lists when written."""
        coverage = {
            name: {**asdict(c), "coverage": round(c.coverage, 6), "incomplete": c.incomplete}
            for name, c in self.labels.items()
        }
        return {**asdict(self), "labels": coverage}


def compare(
    rows_by_label: Mapping[str, pd.DataFrame],
    baseline: str | None = None,
    metric: str = PRIMARY,
    *,
    pairs: Sequence[tuple[str, str]] | None = None,
    seed: Seed = 0,
    resamples: int = RESAMPLES,
    alpha: float = ALPHA,
    types: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare every label with the baseline, or every two labels if `baseline` is None, on one metric.

    `pairs` names the (label, against) to compare instead: a night's labels, each with itself on an earlier night.

    `rows_by_label` holds what `score` returned for each label, `types` each question's type for the breakdown. Pairs
    are formed by question id over the questions both answered; a question that a label has no row for counts as its
    failure. All comparisons of the call are one family for Holm's correction. The result depends neither on the
    order of labels nor of rows. Raises InputError (or a subclass) for unknown names and unusable settings.
    """
    check_settings(resamples, alpha)
    sign = get_metric(metric).sign
    _check(rows_by_label, baseline, metric)
    table = _table(rows_by_label, metric, types or {})
    family = _family(table.labels, baseline) if pairs is None else pairs
    settings = _Settings(sign, int(np.random.default_rng(seed).integers(2**63)), resamples, alpha, len(family))
    tested = [_pair(table, a, b, settings) for a, b in family]
    adjusted = holm([p.p for p in tested])
    judged = tuple(_judge(p, p_holm, settings) for p, p_holm in zip(tested, adjusted, strict=True))
    return Comparison(metric, baseline, alpha, resamples, judged, table.coverage)


def best_baseline(means: Mapping[str, Mapping[str, float]], metric: str = PRIMARY) -> str | None:
    """Choose the hop-free label with the best zero-filled mean (label → metric → mean), if any was scored.

    Of equally good ones the first of `HOP_FREE`, and its plain label before tuned and changed ones.
    """
    labels = {label: Label.of_any(label) for label, scores in means.items() if metric in scores}
    scored = sorted((HOP_FREE.index(parts.name), label) for label, parts in labels.items() if parts.is_hop_free)
    return min((label for _, label in scored), key=lambda label: rank_key(metric, means[label][metric]), default=None)


@dataclass(frozen=True)
class _Settings:
    sign: float
    seed: int
    resamples: int
    alpha: float
    family: int

    def intervals(self, values: FloatArray) -> tuple[Interval | None, Interval | None]:
        """Compute the interval of a mean alone, and Bonferroni's for the whole family."""
        levels = [self.alpha, self.alpha / self.family]
        alone, *together = mean_cis(values, levels, self.seed, resamples=self.resamples) or (None, None)
        return alone, together[0]

    def interval(self, values: FloatArray, most: int = sys.maxsize) -> Interval | None:
        return mean_ci(values, self.seed, resamples=min(self.resamples, most), alpha=self.alpha)


@dataclass(frozen=True)
class _Table:
    """Align scores: `values[label]` has one number (NaN: none) for each of the sorted `ids`, as has `type_of`."""

    ids: npt.NDArray[np.object_]
    type_of: npt.NDArray[np.object_]
    values: Mapping[str, FloatArray]
    coverage: Mapping[str, LabelCoverage]

    @property
    def labels(self) -> list[str]:
        return list(self.values)


def _table(rows_by_label: Mapping[str, pd.DataFrame], metric: str, types: Mapping[str, str]) -> _Table:
    ids = sorted(set().union(*(rows.index for rows in rows_by_label.values())))
    values, coverage = {}, {}
    for label in sorted(rows_by_label):
        rows = rows_by_label[label]
        answered = rows.loc[rows["failure"].isna(), metric]
        values[label] = answered.reindex(ids).to_numpy(dtype=float)
        coverage[label] = LabelCoverage(len(ids), len(ids) - len(answered))
    type_of = np.array([types.get(i, "") for i in ids], dtype=object)
    return _Table(np.array(ids, dtype=object), type_of, values, coverage)


def _family(labels: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return list(combinations(labels, 2))
    return [(label, baseline) for label in labels if label != baseline]


def _pair(table: _Table, label: str, baseline: str, settings: _Settings) -> PairResult:
    """Compare a pair, without the family's correction and the verdict."""
    both = table.values[label] - table.values[baseline]
    used = ~np.isnan(both)
    d, ids = np.round(both[used], DECIMALS), table.ids[used]
    gain = d * settings.sign
    largest_first = np.argsort(-np.abs(d), kind="stable")
    p = sign_flip_p(d, settings.seed, resamples=settings.resamples)
    alone, together = settings.intervals(d)
    return PairResult(
        label=label,
        baseline=baseline,
        n=len(d),
        difference=float(clean(d).mean()) if len(d) else None,
        ci=alone,
        ci_family=together,
        p=p,
        p_holm=p,
        minimum_detectable=minimum_detectable(d, alpha=settings.alpha),
        verdict="not distinguishable",
        incomplete=table.coverage[label].incomplete or table.coverage[baseline].incomplete,
        wins=tuple(str(ids[i]) for i in largest_first if gain[i] > 0),
        losses=tuple(str(ids[i]) for i in largest_first if gain[i] < 0),
        ties=int((d == 0).sum()),
        by_type=_by_type(d, table.type_of[used], settings),
    )


def _by_type(d: FloatArray, type_of: npt.NDArray[np.object_], settings: _Settings) -> dict[str, TypeBreakdown]:
    return {name: _breakdown(d[type_of == name], settings) for name in sorted(set(type_of) - {""})}


def _breakdown(d: FloatArray, settings: _Settings) -> TypeBreakdown:
    gain = d * settings.sign
    return TypeBreakdown(
        n=len(d),
        difference=float(clean(d).mean()),
        ci=settings.interval(d, BREAKDOWN_RESAMPLES),
        wins=int((gain > 0).sum()),
        losses=int((gain < 0).sum()),
        ties=int((gain == 0).sum()),
    )


def _judge(pair: PairResult, p_holm: float, settings: _Settings) -> PairResult:
    if pair.ci_family is None or pair.difference is None:
        return replace(pair, p_holm=p_holm)
    verdict: Verdict = "not distinguishable"
    rejected = p_holm < settings.alpha
    if rejected:
        verdict = "better" if pair.difference * settings.sign > 0 else "worse"
    return replace(
        pair, p_holm=p_holm, verdict=verdict, ci_family=compatible(pair.ci_family, pair.difference, rejected)
    )


def _check(rows_by_label: Mapping[str, pd.DataFrame], baseline: str | None, metric: str) -> None:
    if baseline is not None and baseline not in rows_by_label:
        raise UnknownNameError("label", baseline, rows_by_label)
    if len(rows_by_label) < 2:
        raise InputError(f"{len(rows_by_label)} label to compare; name at least two")
    for label, rows in rows_by_label.items():
        if missing := [c for c in (metric, "failure") if c not in rows.columns]:
            raise InputError(f"the rows of {label!r} have no column {missing[0]!r}; score them with that metric first")
        if not rows.index.is_unique:
            twice = rows.index[rows.index.duplicated()][0]
            raise InputError(f"the rows of {label!r} hold question {twice!r} twice; keep one row per question")
    first, *others = sorted(rows_by_label)
    for label in others:
        if rows_by_label[first].index.intersection(rows_by_label[label].index).empty:
            raise InputError(f"{first!r} and {label!r} share no question; compare runs of the same benchmark")
