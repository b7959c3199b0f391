"""How `hopbench compare` prints: the runs, a row per pair, RAGAS's metrics, question types, wins and losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hopbench.flows.cli.printing.output import add_row, console, number, table

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from hopbench.eval.compare import Comparison, PairResult
    from hopbench.flows.cli.compare.sides import Side
    from hopbench.flows.cli.compare.sources import Source


def print_comparison(
    comparison: Comparison, sides: list[Side], first: Source, rows: Mapping[str, pd.DataFrame], seed: int
) -> Console:
    """Everything but question types and questions; returns the console. `first` names the benchmark."""
    screen, benchmark = console(), first.results["benchmark"]
    screen.print(f"{benchmark['name']} · {benchmark['questions']} questions · {comparison.metric}", markup=False)
    _print_runs(screen, sides)
    _print_pairs(screen, comparison)
    _print_ragas(screen, rows, comparison.baseline, comparison.metric, seed)
    _print_kinds(screen, sides)
    return screen


def _print_ragas(
    screen: Console, rows: Mapping[str, pd.DataFrame], baseline: str | None, metric: str, seed: int
) -> None:
    """The same pairs on those of RAGAS's metrics that all labels have, each metric a family of its own."""
    from hopbench.eval.compare import BREAKDOWN_RESAMPLES, compare
    from hopbench.eval.metrics import ragas_metrics

    shared = set.intersection(*(set(table.columns) for table in rows.values()))
    names = [name for name in ragas_metrics(shared) if name != metric]
    if not names:
        return
    results = [compare(rows, baseline, name, seed=seed, resamples=BREAKDOWN_RESAMPLES) for name in names]
    results = [item for item in results if any(pair.n for pair in item.pairs)]  # the rest needs gold that nobody has
    if not results:
        return
    names = [item.metric for item in results]
    shown = table("RAGAS: label", "against", *names, right=tuple(names), fold=("RAGAS: label", "against"), keys=2)
    for pairs in zip(*(item.pairs for item in results), strict=True):
        cells = [f"{number(pair.difference, sign=True)} {pair.verdict}" for pair in pairs]
        add_row(shown, pairs[0].label, pairs[0].baseline, *cells)
    screen.print(shown)


def _print_runs(screen: Console, sides: list[Side]) -> None:
    """Which runs the labels are of: a bare label means its newest tracked one."""
    runs = {side.run.place: side.run for side in sides}
    for run in runs.values():
        labels = [side.name for side in sides if side.run.place == run.place]
        whose = f"{', '.join(labels)}: " if len(runs) > 1 else ""
        screen.print(f"{whose}{run.description}", markup=False, soft_wrap=True)


def _print_pairs(screen: Console, comparison: Comparison) -> None:
    """A row per pair: effect, interval, corrected p, verdict, wins and losses; then how to read them."""
    right = ("effect", "p (Holm)", "detectable", "won", "lost", "tied")
    interval = f"{1 - comparison.alpha:.0%} interval"
    heads = ("label", "against", "effect", interval, "p (Holm)", "detectable", "verdict", "won", "lost", "tied")
    drop = ("detectable", "tied", "won", "lost", "p (Holm)")
    rows = table(*heads, right=right, drop=drop, fold=("label", "against"), keys=2)
    for pair in comparison.pairs:
        verdict = pair.verdict + (" (incomplete)" if pair.incomplete else "")
        p = "–" if pair.n == 0 else f"{pair.p_holm:.4f}"
        add_row(
            rows,
            pair.label,
            pair.baseline,
            number(pair.difference, sign=True),
            _interval(pair),
            p,
            number(pair.minimum_detectable),
            verdict,
            str(len(pair.wins)),
            str(len(pair.losses)),
            str(pair.ties),
        )
    screen.print(rows)
    fewest = min((pair.n for pair in comparison.pairs), default=0)
    screen.print(
        f"Paired over the questions both answered (at least {fewest}). effect: mean of label − against. detectable: "
        f"the true difference that this many questions show four times in five. p is corrected for "
        f"{len(comparison.pairs)} comparisons, and the intervals hold for all of them together: one excludes 0 exactly "
        "where the verdict is better or worse. “not distinguishable” is not “equal”.",
        markup=False,
    )


def _print_kinds(screen: Console, sides: list[Side]) -> None:
    """Like with like: where each label's numbers come from, and which are scored on what chose them."""
    from hopbench.eval.report.summary import in_sample_words

    known = {side.name: side.about for side in sides if side.about}
    kinds: dict[str, list[str]] = {}
    for name, about in known.items():
        kinds.setdefault(about["kind"], []).append(name)
    if kinds:
        listing = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items())
        screen.print(f"Where their numbers come from: {listing}.", markup=False)
    for name, about in known.items():
        if about["in_sample"]:
            words = in_sample_words(about["in_sample"], about["kind"])
            screen.print(f"warning: {name} is {words}, whose questions are asked here.", markup=False, style="yellow")


def _interval(pair: PairResult) -> str:
    """The interval that holds together with those of the whole family."""
    from hopbench.eval.statistics import limit

    return f"{limit(pair.ci_family.low)} … {limit(pair.ci_family.high)}" if pair.ci_family else "–"


def print_types(screen: Console, comparison: Comparison) -> None:
    """A row per pair and question type."""
    right = ("n", "effect", "won", "lost", "tied")
    rows = table("label", "against", "type", *right[:2], "interval", *right[2:], right=right)
    for pair in comparison.pairs:
        for kind, part in pair.by_type.items():
            interval = f"{part.ci.low:+.3f} … {part.ci.high:+.3f}" if part.ci else "–"
            won = str(part.wins), str(part.losses), str(part.ties)
            add_row(rows, pair.label, pair.baseline, kind, str(part.n), f"{part.difference:+.3f}", interval, *won)
    screen.print()
    screen.print(rows)
    screen.print("By type: exploratory, outside the corrected family.", markup=False)


def print_questions(screen: Console, pair: PairResult) -> None:
    """The ids of the questions that a pair won and lost."""
    screen.print(f"\n{pair.label} against {pair.baseline}", markup=False)
    for word, ids in (("won", pair.wins), ("lost", pair.losses)):
        screen.print(f"  {word} {len(ids)}: {' '.join(ids) or '–'}", markup=False)
