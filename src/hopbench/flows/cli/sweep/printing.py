"""What `hopbench sweep` prints at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hopbench.eval.sweep.plan import ablated
from hopbench.eval.sweep.results import ModelScore, Result, coverage_of, model_scores, scored_columns
from hopbench.flows.cli.printing.output import add_row, console, number, table

if TYPE_CHECKING:
    from hopbench.flows.cli.printing.grid import Grid
    from hopbench.flows.sweeps.flow import SweepOutcome

SHOWN = 10


def print_swept(swept: SweepOutcome) -> None:
    """The best configurations (or the ablations), what their lead is worth, warnings, and the files."""
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
    rows = table("strategy", "varied", *numbers, right=numbers, drop=("s", *reversed(ragas)), fold=("varied",))
    for result in swept.results[:SHOWN]:
        varied = ", ".join(f"{name}={value}" for name, value in result.candidate.varied.items()) or "–"
        notes = [f"dropped after {result.dropped_at} questions"] if result.dropped_at else []
        notes += [f"over its limit: {', '.join(broken)}"] if (broken := result.violated(content.constraints)) else []
        settings = f"{varied} ({'; '.join(notes)})" if notes else varied
        cells = [number(value) for value in map(result.mean, metrics)]
        cells += [number(result.ragas.get(name)) for name in ragas]
        spent = ["–" if (cost := result.cost(name)) is None else number(cost, 1) for name in costs]
        add_row(rows, result.candidate.strategy.name, settings, *cells, *spent, number(_seconds(result), 1))
    return rows


def _model_scores(read: list[tuple[Result, dict[str, ModelScore]]]) -> Grid:
    """Answers and judgements: a column for each of the best configurations that were read, a row for each metric."""
    places = [f"{place}." for place in range(1, len(read) + 1)]
    rows = table("answers and judges, best configurations", *places, right=tuple(places))
    for name in scored_columns([one for one, _ in read]):
        cells = [scores.get(name) for _, scores in read]
        add_row(rows, name, *(number(cell.mean if cell else None) for cell in cells))
    shares = [coverage_of(one) for one, _ in read]
    add_row(rows, "covered", *("–" if share is None else f"{share:.0%}" for share in shares))
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
    metric = swept.plan.content.objective.metric
    by_key = {result.candidate.key: result for result in swept.results}
    rows = table("configuration", "without", metric, "change", right=(metric, "change"))
    for candidate in swept.plan.candidates:
        if candidate.of is not None:
            continue
        whole = by_key[candidate.key].mean(metric)
        add_row(rows, candidate.title, "–", number(whole), "")
        for variant, edges in ablated(candidate.strategy).items():
            found = by_key[variant, candidate.build].mean(metric)
            change = "not used" if variant == candidate.strategy else number(found - whole, sign=True)
            add_row(rows, "", ", ".join(edges), number(found), change)
    return rows


def _seconds(result: Result) -> float:
    return sum(record.seconds for record in result.records.values())
