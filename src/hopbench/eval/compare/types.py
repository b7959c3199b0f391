"""The results of a comparison, as plain values for reports and trackers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from hopbench.eval.compare.statistics import Interval
from hopbench.eval.types import too_many_failed

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["better", "worse", "not distinguishable"]


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
        """The comparison of a label with a baseline (default: the family's); None if it is not in the family."""
        wanted = (label, baseline or self.baseline)
        return next((p for p in self.pairs if (p.label, p.baseline) == wanted), None)

    def to_frame(self) -> pd.DataFrame:
        """A row per pair: label, baseline, n, difference, low, high, p (Holm), verdict, won, lost, tied.

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
        """The table of pairs, as a notebook shows it."""
        table: str = self.to_frame().to_html(index=False, float_format=lambda value: f"{value:.3f}", na_rep="–")
        return table

    def to_dict(self) -> dict[str, object]:
        """Plain JSON types; tuples become lists when written."""
        coverage = {
            name: {**asdict(c), "coverage": round(c.coverage, 6), "incomplete": c.incomplete}
            for name, c in self.labels.items()
        }
        return {**asdict(self), "labels": coverage}
