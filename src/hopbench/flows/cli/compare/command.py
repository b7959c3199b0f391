"""`hopbench compare A B [C …]`: which differences between labels, of one run or of several, are real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.declare import DATA, EXECUTION, OUTPUT, STRATEGIES, argument, option
from hopbench.flows.cli.printing.output import print_csv, print_json
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.compare import Comparison
    from hopbench.eval.statistics import Interval
    from hopbench.flows.cli.compare.sides import Side
    from hopbench.flows.cli.compare.sources import Source


def compare_command(
    sides: Annotated[
        list[str] | None,
        argument(
            metavar="A B …",
            help="DIR (a run's folder, all its labels) or DIR:LABEL (DIR:pagerank:tuned); an MLflow run id; a label "
            "(its newest tracked run); champion.",
            complete=complete.sides,
        ),
    ] = None,
    runs: Annotated[
        list[str] | None,
        option(
            STRATEGIES,
            "--runs",
            help="NAME=FILE: rankings made elsewhere as one more side: a TREC run, JSON rankings, or an earlier run's "
            "folder. May be repeated.",
        ),
    ] = None,
    metric: Annotated[
        str | None, option(STRATEGIES, help="The metric to compare on (default: the benchmark's primary metric).")
    ] = None,
    baseline: Annotated[
        str | None,
        option(STRATEGIES, help="Compare all others with this one (default: A if it is one label, else every two)."),
    ] = None,
    by_type: Annotated[bool, option(OUTPUT, "--by-type", help="Also by question type.")] = False,
    listed: Annotated[bool, option(OUTPUT, "--list", help="Print the questions won and lost.")] = False,
    as_json: Annotated[bool, option(OUTPUT, "--json", help="Print JSON for machines.")] = False,
    as_csv: Annotated[bool, option(OUTPUT, "--csv", help="Print the pairs as CSV, with a heading.")] = False,
    dataset: Annotated[str | None, option(DATA, help="Where the runs' benchmark is now (for --by-type).")] = None,
    seed: Annotated[int, option(EXECUTION, min=0, help="Seed of the resampling.")] = 0,
) -> None:
    """Compare labels question by question: effect, interval, p after Holm, verdict, wins and losses."""
    from hopbench.eval.compare import compare
    from hopbench.flows.cli.compare.sides import choose_baseline, refuse_unmeasured, resolve_sides
    from hopbench.flows.cli.compare.sources import Sources
    from hopbench.flows.run.folder import RunFolder
    from hopbench.flows.settings.home import Home

    sources, sides = Sources(Home.resolve(), dataset), sides or []
    found = resolve_sides(sides, sources, runs or ())
    chosen = choose_baseline(sides, found, baseline, sources)
    if sources.note:
        typer.echo(f"note: {sources.note}", err=True)
    first = next((side.run for side in found if isinstance(side.run, RunFolder)), found[0].run)
    types = {q.id: q.type for q in first.benchmark(dataset).questions} if by_type else None
    metric = metric or _primary(found)
    refuse_unmeasured(found, metric)
    comparison = compare({side.name: side.rows for side in found}, chosen, metric, seed=seed, types=types)
    if as_json:
        print_json(_plain(comparison, found, first, seed))
    elif as_csv:
        print_csv(_flat(comparison))
    else:
        _print(comparison, found, first, seed, listed=listed)


def _print(comparison: Comparison, sides: list[Side], first: Source, seed: int, *, listed: bool) -> None:
    from hopbench.flows.cli.compare.printing import print_comparison, print_questions, print_types

    screen = print_comparison(comparison, sides, first, {side.name: side.rows for side in sides}, seed)
    if any(pair.by_type for pair in comparison.pairs):
        print_types(screen, comparison)
    if listed:
        for pair in comparison.pairs:
            print_questions(screen, pair)


def _primary(sides: list[Side]) -> str:
    """The primary metric of the sides' benchmark. Raises InputError where it has none."""
    from hopbench.eval.metrics import PRIMARY, lacking, primary_of

    results = [side.run.results for side in sides]
    scored = [result for result in results if "primary_metric" in result["benchmark"]]
    found = primary_of(scored[0]) if scored else primary_of(results[0]) or PRIMARY
    if found is None:
        raise InputError(f"nothing to compare on: {lacking(None)}; or name a judged metric with --metric")
    return found


def _flat(comparison: Comparison) -> list[dict[str, Any]]:
    """A row for each pair, with the names of a run's comparisons; wins and losses are counted."""
    return [
        {
            "label": pair.label,
            "baseline": pair.baseline,
            "metric": comparison.metric,
            "questions": pair.n,
            "effect": pair.difference,
            **_limits(pair.ci, "ci"),
            **_limits(pair.ci_family, "family"),
            **{name: getattr(pair, name) for name in ("p", "p_holm", "minimum_detectable", "verdict", "ties")},
            "wins": len(pair.wins),
            "losses": len(pair.losses),
        }
        for pair in comparison.pairs
    ]


def _limits(interval: Interval | None, name: str) -> dict[str, float | None]:
    return {f"{name}_low": interval.low if interval else None, f"{name}_high": interval.high if interval else None}


def _plain(comparison: Comparison, sides: list[Side], first: Source, seed: int) -> dict[str, Any]:
    result = {
        side.name: {"folder": side.run.display_name, "label": side.label, "run": side.run.description, **side.about}
        for side in sides
    }
    benchmark = first.results["benchmark"]
    return {"benchmark": benchmark, "seed": seed, "sides": result, **comparison.to_dict()}
