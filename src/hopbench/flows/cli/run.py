"""`hopbench run` with its result table, and `hopbench report DIR`, which makes a run's report again from its files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hopbench.flows.cli.flags import Config, argument, option, with_flags
from hopbench.flows.cli.output import Grid, console, echo, number, print_estimate
from hopbench.flows.settings.options import RunOptions
from hopbench.flows.settings.setting import DATA, OUTPUT

if TYPE_CHECKING:
    from hopbench.eval.runs.files import ComparisonEntry, StrategyEntry
    from hopbench.eval.runs.targets import TargetResult
    from hopbench.flows.run.finished import Finished

    Entries = Mapping[str, StrategyEntry]

PIPED_WIDTH = 180


def print_finished(finished: Finished, out: Path) -> None:
    """The leaderboard with kinds, coverage, costs and verdicts, its notes, then the files' paths."""
    from hopbench.eval.runs.results import comparisons, results
    from hopbench.eval.runs.targets import check_targets

    screen = console(PIPED_WIDTH)
    evaluation = finished.evaluation
    entries = results(evaluation)
    benchmark = entries["benchmark"]
    primary = benchmark["primary_metric"]
    strategies = _best_first(entries["strategies"], primary)
    screen.print(
        f"{benchmark['name']} · {benchmark['questions']} questions · {benchmark['passages']} passages · "
        f"graph {entries['graph']['fingerprint'][:12]}",
        markup=False,
    )
    screen.print(_table(strategies, {pair["label"]: pair for pair in comparisons(evaluation)}, primary))
    if (said := _said(strategies)) is not None:
        screen.print(said)
    for line in [*_notes(strategies, primary), *_targets(check_targets(evaluation.plan.targets, strategies))]:
        screen.print(line, markup=False)
    for warning in finished.warnings:
        screen.print(f"warning: {warning}", markup=False, style="yellow")
    for line in [f"report  {out / 'report.html'}", *(f"mlflow  {name}: {url}" for name, url in finished.links.items())]:
        screen.print(line, markup=False, soft_wrap=True)


def _table(strategies: Entries, verdicts: Mapping[str, ComparisonEntry], primary: str | None) -> Grid:
    """The metrics that any label has, the primary one first; `has_answer@5` only beside `has_answer@10`."""
    from hopbench.eval.metrics import shown_in, shown_metrics

    baseline = next((str(pair["baseline"]) for pair in verdicts.values()), "")
    shown = shown_metrics("terminal", sorted({name for one in strategies.values() for name in one["metrics"]}), primary)
    metrics = [name for name in shown if name != "has_answer@5" or primary == "has_answer@10"]
    costs = ("coverage", "ms/q", "p50 ms")
    against = (f"against {baseline}", "95% interval") if baseline else ()
    heads = ("strategy", "kind", *metrics[:1], *against, *metrics[1:], *costs)
    dropped = ("p50 ms", "ms/q", *shown_in("dropped"), "coverage", "95% interval")
    rows = Grid(*heads, right=(*metrics, *costs), drop=dropped, fold=("strategy",))
    for label, entry in strategies.items():
        means = [number(entry["metrics"].get(name)) for name in metrics]
        compared = _verdict(verdicts.get(label), label == baseline) if baseline else ()
        questions = sum(group["questions"] for group in entry["by_type"].values())
        spent = entry["seconds"]  # None where rankings were made elsewhere
        speed = None if spent is None else 1000 * float(spent) / questions if questions else 0.0
        spent_on = f"{float(entry['coverage']):.0%}", number(speed, 2), number(entry["latency_ms_p50"], 1)
        kind = f"{entry['kind']} *" if entry["in_sample"] else str(entry["kind"])
        rows.add_row(label, kind, *means[:1], *compared, *means[1:], *spent_on)
    return rows


def _best_first(strategies: Entries, primary: str | None) -> Entries:
    from hopbench.eval.metrics import rank_key

    name = primary or ""
    order = sorted(strategies, key=lambda label: rank_key(name, strategies[label]["metrics"].get(name)))
    return {label: strategies[label] for label in order}


def _verdict(pair: ComparisonEntry | None, is_baseline: bool) -> tuple[str, str]:
    """The verdict with the difference, and the interval that holds for all comparisons together."""
    from hopbench.eval.report.data import shown_interval
    from hopbench.eval.statistics import limit

    if pair is None:
        return "the baseline" if is_baseline else "–", ""
    if pair["effect"] is None:
        return str(pair["verdict"]), ""
    interval = shown_interval(pair)
    beside = f"[{limit(interval[0])}, {limit(interval[1])}]" if interval else ""
    return f"{pair['verdict']} {pair['effect']:+.3f}", beside


def _targets(found: Sequence[TargetResult]) -> list[str]:
    """A line for each target: pass, or fail with the labels that miss it."""
    by_target: dict[str, list[TargetResult]] = {}
    for item in found:
        by_target.setdefault(str(item.target), []).append(item)
    lines = []
    for target, items in by_target.items():
        values = {one.label: "not measured" if one.value is None else number(one.value) for one in items}
        missed = [f"{one.label} {values[one.label]}" for one in items if not one.passed]
        passed = f"pass, {len(items)} of {len(items)} labels"
        failed = f"fail, {len(missed)} of {len(items)} labels: {', '.join(missed)}"
        lines.append(f"target  {target}: {failed if missed else passed}")
    return lines


def _said(strategies: Entries) -> Grid | None:
    """RAGAS, answers and judgements: the mean of the scores there are, and their share where it is not all."""
    from hopbench.eval.metrics import all_metrics

    names = [*all_metrics("ragas"), *all_metrics("answer"), *all_metrics("judge")]
    shown = [name for name in names if any(name in entry["measured"] for entry in strategies.values())]
    rows = Grid("RAGAS, answers", *shown, right=shown)
    for label, entry in strategies.items():
        shares = {name: entry["measured"].get(name) for name in shown}
        cells = {name: number(entry["answered"].get(name)) for name in shown}
        rows.add_row(label, *(cells[n] + (f" ({s:.0%})" if s is not None and s < 1 else "") for n, s in shares.items()))
    return rows if shown else None


def _notes(strategies: Entries, primary: str | None) -> list[str]:
    """What the benchmark lacks, and which labels are scored on the questions they were fitted on."""
    from hopbench.eval.metrics import lacking
    from hopbench.eval.report.summary import in_sample_words

    found = [f"note: {missing}"] if (missing := lacking(primary)) else []
    lines: dict[str, list[str]] = {}
    for label, entry in strategies.items():
        if entry["in_sample"]:
            lines.setdefault(in_sample_words(entry["in_sample"], entry["kind"]), []).append(label)
    return found + [
        f"* {', '.join(labels)}: {words}, whose questions are asked here: no evidence for other questions, and not "
        "called the best"
        for words, labels in lines.items()
    ]


def estimate(options: RunOptions) -> None:
    """Print what the models of a run will cost, instead of running it."""
    from hopbench.flows.run.estimate import estimate_run

    print_estimate(estimate_run(options))


def command_line(name: str) -> str:
    """The command as it was typed, without the webhook's URL, which may carry a token."""
    shown: list[str] = []
    for word in sys.argv[2:]:
        hidden = shown[-1:] == ["--webhook"] or word.startswith("--webhook=")
        shown.append(word.partition("=")[0] + "=…" if hidden and "=" in word[:10] else "…" if hidden else word)
    return " ".join(["hopbench", name, *shown])


@with_flags(RunOptions)
def run_command(
    out: Annotated[Path, option(OUTPUT, help="Folder for results.json, questions.parquet and report.html.")],
    force: Annotated[
        bool, option(OUTPUT, "--force", help="Replace another benchmark's finished run in --out.")
    ] = False,
    config: Config = None,
    **flags: Any,
) -> None:
    """Run strategies over a benchmark: rank, score, compare, track, report."""
    options = RunOptions(**flags, out=out, command=command_line("run"))
    if options.dry_run:
        estimate(options)
        return
    from hopbench.flows.orchestration.steps import terminal_progress
    from hopbench.flows.run.evaluate import run
    from hopbench.flows.run.finished import refuse

    with terminal_progress() as progress:
        finished = run(options, "evaluate", progress, force=force)
    print_finished(finished, options.out)
    refuse(finished)


def report_command(
    folder: Annotated[Path, argument(metavar="DIR", help="The --out folder of a run.")],
    dataset: Annotated[
        str | None, option(DATA, help="Where the run's benchmark is now (default: where it was).")
    ] = None,
) -> None:
    """Make a run's report.html again, from results.json, questions.parquet and details.json.gz."""
    from hopbench.eval.report import read_run, write_report
    from hopbench.flows.run.finished import RunFolder

    benchmark = RunFolder.read(folder).benchmark(dataset)
    target = folder / "report.html"
    write_report(read_run(folder, benchmark), target)
    echo(f"report  {target}")
