"""`hopbench sweep FILE`: search a space of configurations; what is finished is kept and reused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hopbench.flows.cli.flags import argument, option, with_flags
from hopbench.flows.cli.output import Grid, console, echo, number, print_estimate
from hopbench.flows.settings.options import RunOptions, WorkerOptions
from hopbench.flows.settings.setting import EXECUTION, OUTPUT, values_for
from hopbench.retrieval.support.errors import IncompleteError, InputError

if TYPE_CHECKING:
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.results import ModelScore, Result
    from hopbench.flows.sweeps.publisher import SweepOutcome

SHOWN = 10


def print_swept(swept: SweepOutcome) -> None:
    """The best configurations (or the ablations), what their lead is worth, warnings, and the files."""
    from hopbench.eval.sweep.results import model_scores

    out = console()
    if swept.plan.content.ablations:
        out.print(_ablations(swept))
    else:
        out.print(_best(swept))
        for line in _winner(swept):
            out.print(line, markup=False, soft_wrap=True)
    if read := [(result, scores) for result in swept.results[:SHOWN] if (scores := model_scores(result))]:
        out.print(_model_scores(read))
    if swept.reused:
        out.print(f"{swept.reused} of {swept.trials} trials were finished before")
    failed = sum(result.failures for result in swept.results)
    if failed:
        out.print(f"warning: {failed} questions failed; trials.parquet counts them by trial", style="yellow")
    for warning in swept.warnings:
        out.print(f"warning: {warning}", markup=False, style="yellow", soft_wrap=True)
    for written in swept.files:
        out.print(f"wrote  {written}", markup=False, soft_wrap=True)
    for name, url in swept.links.items():
        out.print(f"mlflow  {name}: {url}", markup=False, soft_wrap=True)


def _best(swept: SweepOutcome) -> Grid:
    """The best configurations, by what the search varied."""
    content = swept.plan.content
    metrics = list(dict.fromkeys((content.objective.metric, content.objective.also)))
    costs = ["latency_ms_p95"] if content.timed else []
    costs += [name for name in content.constraints if name not in costs and name != "seconds"]
    ragas = [name for name in swept.results[0].ragas if name not in metrics]
    numbers = (*metrics, *ragas, *costs, "s")
    rows = Grid("strategy", "varied", *numbers, right=numbers, drop=("s", *reversed(ragas)), fold=("varied",))
    for result in swept.results[:SHOWN]:
        varied = ", ".join(f"{name}={value}" for name, value in result.candidate.varied.items()) or "–"
        notes = [f"dropped after {result.dropped_at} questions"] if result.dropped_at else []
        notes += [f"over its limit: {', '.join(broken)}"] if (broken := result.violated(content.constraints)) else []
        settings = f"{varied} ({'; '.join(notes)})" if notes else varied
        cells = [number(value) for value in map(result.mean, metrics)]
        cells += [number(result.ragas.get(name)) for name in ragas]
        spent = ["–" if (cost := result.cost(name)) is None else number(cost, 1) for name in costs]
        rows.add_row(
            result.candidate.strategy.name,
            settings,
            *cells,
            *spent,
            number(sum(one.seconds for one in result.records.values()), 1),
        )
    return rows


def _model_scores(read: list[tuple[Result, dict[str, ModelScore]]]) -> Grid:
    """Answers and judgements: a column for each of the best configurations that were read, a row for each metric."""
    from hopbench.eval.sweep.results import coverage_of, scored_columns

    places = [f"{place}." for place in range(1, len(read) + 1)]
    rows = Grid("answers and judges, best configurations", *places, right=tuple(places))
    for name in scored_columns([one for one, _ in read]):
        cells = [scores.get(name) for _, scores in read]
        rows.add_row(name, *(number(cell.mean if cell else None) for cell in cells))
    shares = [coverage_of(one) for one, _ in read]
    rows.add_row("covered", *("–" if share is None else f"{share:.0%}" for share in shares))
    return rows


def _winner(swept: SweepOutcome) -> list[str]:
    """The winner on each data set, and what its lead is worth."""
    metric, best = swept.plan.content.objective.metric, swept.results[0]
    parts = [f"{name} {number(best.on(name, metric))}" for name in best.by_dataset]
    lines = [f"best {metric} by data set: {', '.join(parts)}"]
    if swept.bias is not None:
        bias = swept.bias
        lines.append(
            f"chosen on these questions it scores {number(bias.shown)}; on questions left out of the choice "
            f"{number(bias.honest)} [{number(bias.low)}, {number(bias.high)}]: {number(bias.optimism, sign=True)} is "
            f"selection bias, their difference; it wins {bias.chosen:.0%} of the resamples, ties shared"
        )
    if swept.reported is not None:
        name = next(iter(swept.reported.by_dataset))
        lines.append(f"on {name}, on which it was not chosen: {metric} {number(swept.reported.mean(metric))}")
    return lines


def _ablations(swept: SweepOutcome) -> Grid:
    """Every configuration, with and without each of its edge types; in the order of the file."""
    from hopbench.eval.sweep.plan import ablated

    metric = swept.plan.content.objective.metric
    by_key = {result.candidate.key: result for result in swept.results}
    rows = Grid("configuration", "without", metric, "change", right=(metric, "change"))
    for candidate in swept.plan.candidates:
        if candidate.of is not None:
            continue
        whole = by_key[candidate.key].mean(metric)
        rows.add_row(candidate.title, "–", number(whole), "")
        for variant, edges in ablated(candidate.strategy).items():
            found = by_key[variant, candidate.build].mean(metric)
            change = "not used" if variant == candidate.strategy else number(found - whole, sign=True)
            rows.add_row("", ", ".join(edges), number(found), change)
    return rows


FIELDS = ("llm", "judge", "reasoning_effort", "completion_tokens", "budget", "min_grade", "strict")
"""The settings of a run that take the place of the sweep file's."""


@with_flags(RunOptions, only=(*WorkerOptions.model_fields, *FIELDS), min_grade=None, strict=None)
def sweep_command(
    file: Annotated[
        Path | None, argument(help="The sweep: data sets, strategies, values (YAML).", metavar="FILE")
    ] = None,
    out: Annotated[Path | None, option(OUTPUT, help="Folder for trials.parquet, report.html and best.yaml.")] = None,
    dry_run: Annotated[
        bool, option(EXECUTION, "--dry-run", help="Check everything; print trials, rebuilds and an estimated time.")
    ] = False,
    champion: Annotated[
        bool, option(OUTPUT, "--champion", help="Name the winner the champion of the benchmark under report_on.")
    ] = False,
    schema: Annotated[bool, option(OUTPUT, "--schema", help="Print the JSON Schema of sweep files.")] = False,
    **flags: Any,
) -> None:
    """Search a space of configurations (docs/sweeps.md); finished trials are kept and reused.

    Flags that name a field of the file, such as --llm, --budget and --min-grade, replace it.
    """
    if schema:
        from hopbench.eval.sweep.file import schema as sweep_schema

        echo(json.dumps(sweep_schema(), indent=2))
        return
    if file is None:
        raise InputError("FILE is missing: name a sweep file (flows/sweeps has examples), or ask for its --schema")
    if out is None and not dry_run:
        raise InputError("--out is missing: name a folder for trials.parquet, or ask with --dry-run what would run")
    from hopbench.eval.sweep.plan import read_sweep

    plan = read_sweep(file, {name: flags[name] for name in FIELDS if flags[name] is not None})
    spread = WorkerOptions(**values_for(WorkerOptions, flags))
    spread.check_workers(plan.content.llm)
    content = plan.content
    each = [
        f"{plan.configurations} configurations",
        f"{len(plan.datasets)} data sets ({', '.join(Path(name).name for name in plan.datasets)})",
        *([f"{len(content.all_seeds)} seeds"] if len(content.all_seeds) > 1 else []),
        *([f"{content.repeats} repeats"] if content.repeats > 1 else []),
    ]
    echo(f"{plan.trials} trials: {' × '.join(each)}")
    if dry_run or out is None:
        _estimate(plan)
    else:
        _sweep(plan, out, spread, champion)


def _sweep(plan: SweepPlan, out: Path, spread: WorkerOptions, champion: bool) -> None:
    from hopbench.eval.types import MAX_FAILED
    from hopbench.flows.orchestration.steps import terminal_progress
    from hopbench.flows.sweeps.flow import sweep

    with terminal_progress() as progress:
        swept = sweep(plan, out, prefect=not spread.no_prefect, champion=champion, progress=progress, spread=spread)
    print_swept(swept)
    if swept.incomplete:
        raise IncompleteError(
            f"over {MAX_FAILED:.0%} of the questions failed, or were not answered or judged, in "
            f"{len(swept.incomplete)} trials: these are not kept, and the same command does again what is missing"
        )


def _estimate(plan: SweepPlan) -> None:
    from hopbench.flows.settings.home import Home
    from hopbench.flows.sweeps.inputs import (
        estimate_models,
        estimate_sweep,
        load_benchmarks,
        open_embedders,
        warnings_of_plan,
    )

    benchmarks = load_benchmarks(plan)
    open_embedders(plan, Home.resolve())
    found = estimate_sweep(plan, benchmarks)
    source = "from the ledger's trials" if found.known_pace else "a guess until the ledger knows these strategies"
    if plan.content.halving:
        echo(f"halving makes that {found.trials} trials, most of them on few questions")
    echo(f"{found.graphs} graphs, {found.rebuilds} of them to be built")
    minutes = found.seconds / 60
    duration = f"{found.seconds:.0f} seconds" if minutes < 1.5 else f"{minutes:.0f} minutes"
    duration = duration if minutes < 90 else f"{minutes / 60:.1f} hours"
    echo(f"about {duration} ({source}); finished trials are not repeated")
    models = estimate_models(plan, benchmarks)
    if models is not None:
        print_estimate(
            models, "An estimate_sweep from a few questions, if all contexts differ: equal ones are read once."
        )
    for warning in warnings_of_plan(plan, benchmarks):
        if models is None or warning not in models.warnings:
            echo(f"warning: {warning}")
