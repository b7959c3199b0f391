"""Which differences are real: paired bootstrap, sign-flip test, Holm's correction, verdicts."""

from hopbench.eval.compare.pairs import BREAKDOWN_RESAMPLES, best_baseline, compare
from hopbench.eval.compare.statistics import RESAMPLES, Interval, holm, limit, mean_ci, minimum_detectable, sign_flip_p
from hopbench.eval.compare.types import Comparison, LabelCoverage, PairResult, TypeBreakdown, Verdict

__all__ = [
    "BREAKDOWN_RESAMPLES",
    "RESAMPLES",
    "Comparison",
    "Interval",
    "LabelCoverage",
    "PairResult",
    "TypeBreakdown",
    "Verdict",
    "best_baseline",
    "compare",
    "holm",
    "limit",
    "mean_ci",
    "minimum_detectable",
    "sign_flip_p",
]
