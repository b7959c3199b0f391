"""Compare labels pair by pair on one metric: which differences are real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

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
"""Enough for the intervals by type, on which no verdict stands, and for metrics other than the primary one."""


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
    """All pairs of one family, corrected together; `baseline` is None when every pair of labels was compared.

    `labels` has for each label how many of the `questions` are its `failures`, its `coverage` (the share answered), and
    whether it is `incomplete`: too many failed for its means to be trusted.
    """

    metric: str
    baseline: str | None
    alpha: float
    resamples: int
    pairs: tuple[PairResult, ...]
    labels: Mapping[str, Mapping[str, Any]]

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

        names = {"label": "label", "baseline": "baseline", "n": "n", "effect": "difference", "family_low": "low"}
        names |= {"family_high": "high", "p_adjusted": "p", "verdict": "verdict"}
        names |= {"wins": "won", "losses": "lost", "ties": "tied"}
        return pd.DataFrame(self.entries(), columns=list(names)).rename(columns=names)

    def _repr_html_(self) -> str:
        """Render the table of pairs for a notebook."""
        table: str = self.to_frame().to_html(index=False, float_format=lambda value: f"{value:.3f}", na_rep="–")
        return table

    def to_dict(self) -> dict[str, object]:
        """Convert to plain JSON types; tuples become lists when written."""
        return asdict(self)

    def entries(self) -> list[dict[str, Any]]:
        """Make the entry of each pair in details.json, in the metric's own unit; None where n is too small.

        `ci_low` and `ci_high` are the difference's own 95% interval, `family_low` and `family_high` the one that holds
        together with those of all `family` comparisons and agrees with the verdict.
        """
        return [
            {
                "label": pair.label,
                "baseline": pair.baseline,
                "metric": self.metric,
                "effect": pair.difference,
                "ci_low": pair.ci.low if pair.ci else None,
                "ci_high": pair.ci.high if pair.ci else None,
                "family_low": pair.ci_family.low if pair.ci_family else None,
                "family_high": pair.ci_family.high if pair.ci_family else None,
                "family": len(self.pairs),
                "p": pair.p,
                "p_adjusted": pair.p_holm,
                "mde": pair.minimum_detectable,
                "verdict": pair.verdict,
                "incomplete": pair.incomplete,
                "n": pair.n,
                "wins": len(pair.wins),
                "losses": len(pair.losses),
                "ties": pair.ties,
            }
            for pair in self.pairs
        ]


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
    ids = sorted(set().union(*(rows.index for rows in rows_by_label.values())))
    scores: dict[str, FloatArray] = {}
    coverage: dict[str, dict[str, Any]] = {}
    for label in sorted(rows_by_label):
        rows = rows_by_label[label]
        answered = rows.loc[rows["failure"].isna(), metric]
        scores[label] = answered.reindex(ids).to_numpy(dtype=float)
        failures = len(ids) - len(answered)
        coverage[label] = {
            "questions": len(ids),
            "failures": failures,
            "coverage": round(1 - failures / len(ids), 6),
            "incomplete": too_many_failed(failures, len(ids)),
        }
    if pairs is None and baseline is None:
        pairs = list(combinations(scores, 2))
    family = [(label, str(baseline)) for label in scores if label != baseline] if pairs is None else pairs
    seed = int(np.random.default_rng(seed).integers(2**63))
    types_of = np.array([(types or {}).get(i, "") for i in ids], dtype=object)
    questions = _Questions(np.array(ids, dtype=object), types_of, sign, seed, resamples, alpha)
    tested = []
    for label, against in family:
        incomplete = bool(coverage[label]["incomplete"] or coverage[against]["incomplete"])
        both = scores[label] - scores[against]
        tested.append(questions.pair(label, against, both, len(family), incomplete=incomplete))
    corrected = zip(tested, holm([pair.p for pair in tested]), strict=True)
    decided = tuple(_judge(pair, p_holm, sign, alpha) for pair, p_holm in corrected)
    return Comparison(metric, baseline, alpha, resamples, decided, coverage)


def best_baseline(means: Mapping[str, Mapping[str, float]], metric: str = PRIMARY) -> str | None:
    """Choose the hop-free label with the best zero-filled mean (label → metric → mean), if any was scored.

    Of equally good ones the first of `HOP_FREE`, and its plain label before tuned and changed ones.
    """
    labels = {label: Label.of_any(label) for label, scores in means.items() if metric in scores}
    scored = sorted((HOP_FREE.index(parts.name), label) for label, parts in labels.items() if parts.is_hop_free)
    return min((label for _, label in scored), key=lambda label: rank_key(metric, means[label][metric]), default=None)


@dataclass(frozen=True)
class _Questions:
    """The questions' sorted `ids` with their `types`, and how pairs of labels are compared on them."""

    ids: npt.NDArray[np.object_]
    types: npt.NDArray[np.object_]
    sign: float
    seed: int
    resamples: int
    alpha: float

    def pair(self, label: str, baseline: str, both: FloatArray, family: int, *, incomplete: bool) -> PairResult:
        """Compare a pair by its differences (NaN: not both answered), without the family's correction and verdict."""
        used = ~np.isnan(both)
        d, ids, types = np.round(both[used], DECIMALS), self.ids[used], self.types[used]
        gain = d * self.sign
        largest_first = np.argsort(-np.abs(d), kind="stable")
        p = sign_flip_p(d, self.seed, resamples=self.resamples)
        # The interval of the mean alone, and Bonferroni's for the whole family.
        levels = [self.alpha, self.alpha / family]
        alone, corrected = mean_cis(d, levels, self.seed, resamples=self.resamples) or (None, None)
        return PairResult(
            label=label,
            baseline=baseline,
            n=len(d),
            difference=float(clean(d).mean()) if len(d) else None,
            ci=alone,
            ci_family=corrected,
            p=p,
            p_holm=p,
            minimum_detectable=minimum_detectable(d, alpha=self.alpha),
            verdict="not distinguishable",
            incomplete=incomplete,
            wins=tuple(str(ids[i]) for i in largest_first if gain[i] > 0),
            losses=tuple(str(ids[i]) for i in largest_first if gain[i] < 0),
            ties=int((d == 0).sum()),
            by_type={name: self._breakdown(d[types == name]) for name in sorted(set(types) - {""})},
        )

    def _breakdown(self, d: FloatArray) -> TypeBreakdown:
        gain, resamples = d * self.sign, min(self.resamples, BREAKDOWN_RESAMPLES)
        return TypeBreakdown(
            n=len(d),
            difference=float(clean(d).mean()),
            ci=mean_ci(d, self.seed, resamples=resamples, alpha=self.alpha),
            wins=int((gain > 0).sum()),
            losses=int((gain < 0).sum()),
            ties=int((gain == 0).sum()),
        )


def _judge(pair: PairResult, p_holm: float, sign: float, alpha: float) -> PairResult:
    if pair.ci_family is None or pair.difference is None:
        return replace(pair, p_holm=p_holm)
    rejected = p_holm < alpha
    interval = compatible(pair.ci_family, pair.difference, rejected)
    verdict: Verdict = "not distinguishable"
    if rejected:
        verdict = "better" if pair.difference * sign > 0 else "worse"
    return replace(pair, p_holm=p_holm, verdict=verdict, ci_family=interval)


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
