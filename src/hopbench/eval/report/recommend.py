"""Which label to take: the best within limits of time, context and cost, and what is as good and cheaper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from hopbench.eval.answering.answers import CLOSED_BOOK
from hopbench.eval.compare import BREAKDOWN_RESAMPLES, PairResult, compare
from hopbench.eval.metrics import lacking, primary_of, rank_key
from hopbench.eval.report.data import ReportData
from hopbench.eval.report.summary import in_sample_words, listed, meaning, points, points_limit
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

CHEAPER = 0.8
"""A label is called cheaper if its median latency is at most this share of the best one's: less may be noise."""

MAX_FAILED = 0.05
SHOWN_REASONS = 3


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on a label: p95 latency (ms), mean context (tokens), and whether it may call a language model."""

    latency_ms: float | None = None
    context_tokens: float | None = None
    llm: bool = True

    def __post_init__(self) -> None:
        """Refuse limits that no label can meet."""
        for flag, value in (("--latency-ms", self.latency_ms), ("--context-tokens", self.context_tokens)):
            if value is not None and not value > 0:
                raise InputError(f"{flag} {value}: the limit must be above 0")

    def broken_by(self, entry: Mapping[str, Any], questions: int) -> list[str]:
        """List the reasons why a label's entry in results.json is outside the limits; none if it meets them."""
        reasons = []
        if self.latency_ms is not None:
            latency = entry.get("latency_ms_p95")
            if latency is None:
                reasons.append("its latency is not known")
            elif latency > self.latency_ms:
                reasons.append(f"p95 latency {latency:.1f} ms is above {self.latency_ms:g}")
        if self.context_tokens is not None and (entry.get("context_tokens") or 0.0) > self.context_tokens:
            reasons.append(f"context of {entry['context_tokens']:.0f} tokens is above {self.context_tokens:g}")
        if not self.llm and entry.get("llm_calls"):
            reasons.append(f"asks a language model {entry['llm_calls'] / max(1, questions):.2g} times a question")
        return reasons

    def __str__(self) -> str:
        """The limits in words; empty without any."""
        parts = [
            "" if self.latency_ms is None else f"p95 latency up to {self.latency_ms:g} ms",
            "" if self.context_tokens is None else f"context up to {self.context_tokens:g} tokens",
            "" if self.llm else "no language model",
        ]
        return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class Option:
    """A label with what decides: its mean of the metric, its costs, how it compares with the best, why it is left out.

    `latency_ms` and `latency_ms_p95` are milliseconds a question, None where they were not measured; `against_best` is
    None for the best label itself and for labels that are left out.
    """

    label: str
    value: float | None
    latency_ms: float | None
    latency_ms_p95: float | None
    context_tokens: float | None
    llm_calls: float
    against_best: PairResult | None = None
    excluded: Sequence[str] = ()
    cheaper: bool = False

    @property
    def as_good(self) -> bool:
        """Whether the run's questions cannot distinguish it from the best."""
        return self.against_best is not None and self.against_best.verdict == "not distinguishable"


@dataclass(frozen=True)
class Recommendation:
    """The result of `recommend`. `best` is None where no label is within the limits; `options` are best first.

    `unfit` says why the questions measure nothing, so that none is best.
    """

    metric: str
    questions: int
    limits: Limits
    best: Option | None
    options: Sequence[Option]
    unfit: str = ""

    @property
    def alternatives(self) -> list[Option]:
        """Labels that are not distinguishable from the best and cheaper, cheapest first."""
        cheaper = [option for option in self.options if option.as_good and option.cheaper]
        return sorted(cheaper, key=lambda option: (option.latency_ms or 0.0, option.label))

    def _repr_html_(self) -> str:
        """The sentence and the table, as a notebook shows them."""
        table = self.to_frame().to_html(index=False, float_format=lambda value: f"{value:.3f}", na_rep="–")
        return f"<p>{escape(self.sentence())}</p>{table}"

    def sentence(self) -> str:
        """The recommendation in plain words."""
        if self.unfit:
            return f"No label can be recommended: the questions measure nothing ({self.unfit})."
        within = f" (limits: {self.limits})" if str(self.limits) else ""
        if self.best is None:
            reasons = [f"{option.label}: {', '.join(option.excluded)}" for option in self.options[:SHOWN_REASONS]]
            if len(self.options) > SHOWN_REASONS:
                reasons.append(f"and {len(self.options) - SHOWN_REASONS} more")
            return f"No label can be recommended{within}: {'; '.join(reasons) or 'none was run'}."
        best = self.best
        costs = [] if best.latency_ms is None else [f"{best.latency_ms:.2g} ms a question"]
        costs += [f"{best.llm_calls:.2g} calls of a language model"] if best.llm_calls else []
        cost = f", for {' and '.join(costs)}" if costs else ""
        text = f"Take {best.label}{within}: it {meaning(self.metric, best.value or 0.0)}{cost}."
        equal = [option.label for option in self.options if option.as_good]
        if self.alternatives:
            return f"{text} {self._cheaper(best, *self.alternatives)}"
        if equal:
            questions = f"These {self.questions} questions cannot tell it from {listed(equal)}"
            return f"{text} {questions}, of which none is cheaper."
        only = len(self.options) < 2
        return text if only else f"{text} Every other label here is worse, and the difference is real."

    def _cheaper(self, best: Option, first: Option, *others: Option) -> str:
        pair = first.against_best
        assert pair is not None  # alternatives were compared
        times = (best.latency_ms or 0.0) / (first.latency_ms or 1.0)
        interval = pair.ci_family
        bounds = f" [{points_limit(interval.low)}, {points_limit(interval.high)}]" if interval else ""
        detectable = pair.minimum_detectable
        shows = "" if detectable is None else f"; {pair.n} questions would reliably show {100 * detectable:.1f} points"
        text = (
            f"{first.label} is {times:.1f} times as fast ({first.latency_ms:.2g} ms against "
            f"{best.latency_ms:.2g}) and cannot be told from it ({points(pair.difference)} points{bounds}{shows})."
        )
        names = [f"{option.label} ({option.latency_ms:.2g} ms)" for option in others]
        return f"{text} So are, at lower cost than the best, {listed(names)}." if names else text

    def to_frame(self) -> pd.DataFrame:
        """A row per label, best first, with the columns of the printed table."""
        import pandas as pd

        rows = []
        for option in self.options:
            pair = option.against_best
            interval = pair.ci_family if pair else None
            row = {
                "label": option.label,
                self.metric: option.value,
                "difference": pair.difference if pair else None,
                "low": interval.low if interval else None,
                "high": interval.high if interval else None,
                "verdict": pair.verdict if pair else "",
                "ms (p50)": option.latency_ms,
                "ms (p95)": option.latency_ms_p95,
                "context tokens": option.context_tokens,
                "LLM calls": option.llm_calls,
                "cheaper": option.cheaper,
                "left out because": "; ".join(option.excluded),
            }
            rows.append(row)
        return pd.DataFrame(rows)


def recommend(
    results: Mapping[str, Any],
    rows: Mapping[str, pd.DataFrame],
    limits: Limits | None = None,
    seed: int = 0,
    metric: str | None = None,
) -> Recommendation:
    """Choose the best label of a run within limits, by `metric` (default: the benchmark's primary metric).

    Labels that were tuned or learned on the run's questions, and labels that failed on over 5% of them, are left out.
    All others are compared with the best, as one family.

    Args:
        results: The run's results.json.
        rows: Each label's rows of questions.parquet by question id.
        limits: What a label may take; none by default.
        seed: Of the bootstrap.
        metric: The metric to choose by.

    Returns:
        The best label with all others, best first.

    Raises:
        InputError: Nothing says which label is better.
    """
    limits = limits or Limits()
    metric = metric or primary_of(results)
    if metric is None:
        raise InputError(f"{results['benchmark']['name']}: nothing to recommend by: {lacking(None)}")
    questions = int(results["benchmark"]["questions"])
    options = {
        label: _option(label, entry, metric, limits, questions)
        for label, entry in (results.get("strategies") or {}).items()
        if label != CLOSED_BOOK  # which ranks no passages
    }
    unfit = str(results["benchmark"].get("unfit", ""))
    eligible = [option for option in options.values() if not option.excluded and not unfit]
    best = min(eligible, key=lambda o: (rank_key(metric, o.value), o.latency_ms or 0.0, o.label), default=None)
    if best is not None and len(eligible) > 1:
        chosen = {option.label: rows[option.label] for option in eligible}
        for pair in compare(chosen, best.label, metric, seed=seed, resamples=BREAKDOWN_RESAMPLES).pairs:
            own, reference = options[pair.label], best.latency_ms
            faster = own.latency_ms is not None and reference is not None and own.latency_ms <= CHEAPER * reference
            cheaper = faster and own.llm_calls <= best.llm_calls
            options[pair.label] = replace(own, against_best=pair, cheaper=cheaper)
    order = sorted(
        options.values(), key=lambda o: (bool(o.excluded), o is not best, rank_key(metric, o.value), o.label)
    )
    return Recommendation(metric, questions, limits, best, order, unfit)


def recommended(data: ReportData) -> str:
    """Make the recommendation that a report opens with; empty where no label is better."""
    if not data.primary or not data.contenders:
        return ""
    questions = data.questions
    rows = {str(label): part.set_index("question_id") for label, part in questions.groupby("strategy", sort=False)}
    return recommend(data.results, rows, metric=data.primary).sentence()


def _option(label: str, entry: Mapping[str, Any], metric: str, limits: Limits, questions: int) -> Option:
    value = entry["metrics"].get(metric)
    excluded = limits.broken_by(entry, questions)
    if value is None:
        excluded.append(f"has no {metric}")
    if entry.get("in_sample"):
        excluded.append(in_sample_words(entry["in_sample"], entry.get("kind", "tuned")))
    if entry.get("failures", 0) > MAX_FAILED * questions:
        excluded.append(f"{entry['failures']} of {questions} questions failed")
    return Option(
        label,
        value,
        entry.get("latency_ms_p50"),
        entry.get("latency_ms_p95"),
        entry.get("context_tokens"),
        (entry.get("llm_calls") or 0) / max(1, questions),
        excluded=excluded,
    )
