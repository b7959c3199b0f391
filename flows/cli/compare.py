"""`hopbench compare A B [C …]`: which differences between labels, of one run or of several, are real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import complete
from flows.cli.output import add_row, console, number, print_json, table
from flows.cli.panels import DATA, EXECUTION, OUTPUT, STRATEGIES, argument, option

if TYPE_CHECKING:
    from rich.console import Console

    from eval.compare import Comparison, PairResult
    from flows.cli.compare_sides import Side
    from flows.cli.compare_sources import Source


def compare_command(
    sides: Annotated[
        list[str],
        argument(
            metavar="A B …",
            help="DIR (a run's folder, all its labels) or DIR:LABEL (DIR:pagerank:tuned); an MLflow run id; a label "
            "(its newest tracked run); champion.",
            complete=complete.sides,
        ),
    ],
    metric: Annotated[str, option(STRATEGIES, help="The metric to compare on.")] = "all_gold@10",
    baseline: Annotated[
        str | None,
        option(STRATEGIES, help="Compare all others with this one (default: A if it is one label, else every two)."),
    ] = None,
    by_type: Annotated[bool, option(OUTPUT, "--by-type", help="Also by question type.")] = False,
    listed: Annotated[bool, option(OUTPUT, "--list", help="Print the questions won and lost.")] = False,
    as_json: Annotated[bool, option(OUTPUT, "--json", help="Print JSON for machines.")] = False,
    dataset: Annotated[str | None, option(DATA, help="Where the runs' benchmark is now (for --by-type).")] = None,
    seed: Annotated[int, option(EXECUTION, min=0, help="Seed of the resampling.")] = 0,
) -> None:
    """Compare labels question by question: effect, interval, p after Holm, verdict, wins and losses."""
    from eval.compare import compare
    from flows.cli.compare_sides import choose_baseline, refuse_unmeasured, resolve_sides
    from flows.cli.compare_sources import Sources
    from flows.cli.run_folder import RunFolder
    from flows.home import Home

    sources = Sources(Home.resolve(), dataset)
    found = resolve_sides(sides, sources)
    chosen = choose_baseline(sides, found, baseline, sources)
    if sources.note:
        typer.echo(f"note: {sources.note}", err=True)
    first = next((side.run for side in found if isinstance(side.run, RunFolder)), found[0].run)
    types = {q.id: q.type for q in first.benchmark(dataset).questions} if by_type else None
    rows = {side.name: side.rows for side in found}
    refuse_unmeasured(found, metric)
    comparison = compare(rows, chosen, metric, seed=seed, types=types)
    if as_json:
        print_json(_plain(comparison, found, first, seed))
        return
    screen = console()
    benchmark = first.results["benchmark"]
    screen.print(f"{benchmark['name']} · {benchmark['questions']} questions · {metric}", markup=False)
    _print_runs(screen, found)
    _print_pairs(screen, comparison)
    if by_type:
        _print_types(screen, comparison)
    if listed:
        for pair in comparison.pairs:
            _print_questions(screen, pair)


def _plain(comparison: Comparison, sides: list[Side], first: Source, seed: int) -> dict[str, Any]:
    found = {side.name: {"folder": side.run.shown, "label": side.label, "run": side.run.told} for side in sides}
    benchmark = first.results["benchmark"]
    return {"benchmark": benchmark, "seed": seed, "sides": found, **comparison.to_dict()}


def _print_runs(screen: Console, sides: list[Side]) -> None:
    """Which runs the labels are of: a bare label means its newest tracked one."""
    runs = {side.run.place: side.run for side in sides}
    for run in runs.values():
        labels = [side.name for side in sides if side.run.place == run.place]
        whose = f"{', '.join(labels)}: " if len(runs) > 1 else ""
        screen.print(f"{whose}{run.told}", markup=False, soft_wrap=True)


def _print_pairs(screen: Console, comparison: Comparison) -> None:
    right = ("effect", "p (Holm)", "detectable", "won", "lost", "tied")
    rows = table("label", "against", "effect", "95% interval", *right[1:3], "verdict", *right[3:], right=right)
    rows.columns[3].header = f"{1 - comparison.alpha:.0%} interval"
    for pair in comparison.pairs:
        verdict = pair.verdict + (" (incomplete)" if pair.incomplete else "")
        p = "–" if pair.n == 0 else f"{pair.p_holm:.4f}"
        add_row(
            rows,
            pair.label,
            pair.baseline,
            number(pair.difference, sign=True),
            f"{number(pair.ci.low, sign=True)} … {number(pair.ci.high, sign=True)}" if pair.ci else "–",
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
        f"{len(comparison.pairs)} comparisons. “not distinguishable” is not “equal”.",
        markup=False,
    )


def _print_types(screen: Console, comparison: Comparison) -> None:
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


def _print_questions(screen: Console, pair: PairResult) -> None:
    screen.print(f"\n{pair.label} against {pair.baseline}", markup=False)
    for word, ids in (("won", pair.wins), ("lost", pair.losses)):
        screen.print(f"  {word} {len(ids)}: {' '.join(ids) or '–'}", markup=False)
