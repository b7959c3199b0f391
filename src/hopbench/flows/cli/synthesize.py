"""`hopbench synthesize`: a benchmark from a corpus alone, and how far such a benchmark may be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from hopbench.flows.cli.flags.declare import Config, with_flags
from hopbench.flows.cli.flags.shared import BudgetUsd, DryRun
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.setting import declared
from hopbench.flows.studies.synthesize.options import SynthesizeOptions
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.flows.studies.synthesize.check import CheckOutcome
    from hopbench.flows.studies.synthesize.written import Written


@with_flags(SynthesizeOptions, GraphOptions, without=("dataset", "questions", "limit"))
def synthesize_command(budget: BudgetUsd = None, dry_run: DryRun = False, config: Config = None, **flags: Any) -> None:
    """Make a benchmark from a corpus alone: multi-hop questions whose evidence is known, by rules.

    The folder is a data set like any other: run, sweep, train and explain take it. docs/synthesize.md says how far to
    trust it; --check measures that on a labelled set of yours.
    """
    options = SynthesizeOptions(**{one.name: flags.pop(one.name) for one in declared(SynthesizeOptions)})
    graph = GraphOptions(dataset=options.dataset, **flags)
    if options.check is not None:
        _refuse_unused(
            options, graph, {"--budget": budget is not None and graph.extractor != "llm", "--dry-run": dry_run}
        )
        _check(options, graph, budget)
    else:
        _make(options, graph, budget, dry_run)


def _refuse_unused(options: SynthesizeOptions, graph: GraphOptions, given: Mapping[str, bool]) -> None:
    """Raise InputError for what --check would not heed: a model reads the graph at most, and no data set is written."""
    more = {
        "--by": options.by != "rules",
        "--role": options.role != "report",
        "--llm": graph.llm is not None and graph.extractor != "llm",
    }
    if unused := [flag for flag, is_given in {**given, **more}.items() if is_given]:
        raise InputError(
            f"--check compares questions that rules make, so {', '.join(unused)} cannot be used: leave them out"
        )


def _check(options: SynthesizeOptions, graph: GraphOptions, budget: float | None) -> None:
    recipe = options.recipe()
    from hopbench.flows.cli.printing.progress import terminal_progress
    from hopbench.flows.studies.synthesize.check import CheckOptions, check

    checking = CheckOptions(
        graph=graph,
        recipe=recipe,
        seeds=options.seeds,
        strategies=options.strategies,
        out=options.out,
        budget=budget,
    )
    with terminal_progress() as progress:
        outcome = check(checking, progress)
    _print_check(outcome)


def _make(options: SynthesizeOptions, graph: GraphOptions, budget: float | None, dry_run: bool) -> None:
    recipe = options.recipe()
    if options.out is None:
        raise InputError("--out is missing: name the folder to write")
    from hopbench.flows.cli.printing.progress import terminal_progress
    from hopbench.flows.studies.synthesize.make import MakeOptions, synthesize

    making = MakeOptions(graph=graph, recipe=recipe, out=options.out, role=options.role, by=options.by, budget=budget)
    if dry_run:
        from hopbench.flows.cli.printing.estimate import print_estimate
        from hopbench.flows.studies.synthesize.estimate import ASSUMED, estimate

        print_estimate(estimate(making), ASSUMED)
        return
    with terminal_progress() as progress:
        written = synthesize(making, progress)
    for each in written:
        _print(each)


def _print(written: Written) -> None:
    count = sum(written.types.values())
    typer.echo(f"written   {written.folder}  ({count:,} questions, role {written.role})")
    typer.echo("types     " + ", ".join(f"{kind} {number:,}" for kind, number in written.types.items()))
    for example in written.examples:
        typer.echo(f"such as   {example}")
    if written.dropped:
        typer.echo("left out  " + ", ".join(f"{reason} {number:,}" for reason, number in written.dropped.items()))
    if count < written.wanted:
        typer.echo(f"warning: only {count:,} of {written.wanted:,}: the corpus yields no more", err=True)


def _print_check(outcome: CheckOutcome) -> None:
    from hopbench.eval.synthesize.trust import spread
    from hopbench.flows.cli.printing.output import add_row, console, number, table

    rows = table("label", "real", "synthetic", right=("real", "synthetic"))
    for label, (real, synthetic) in sorted(outcome.means.items(), key=lambda each: -each[1][0]):
        add_row(rows, label, number(real), number(synthetic))
    console().print(rows)
    first = outcome.agreements[0]
    typer.echo(
        f"{outcome.benchmark}: {first.real:,} real questions, {first.synthetic:,} synthetic, {first.labels} labels"
    )
    names = {"tau": "Kendall's tau", "verdicts": "same verdict on two labels", "regret": "regret"}
    for field, name in names.items():
        mean, least, most = spread([getattr(each, field) for each in outcome.agreements])
        typer.echo(f"{name:<28}{mean:.3f}  [{least:.3f}, {most:.3f}] over {len(outcome.agreements)} seeds")
    chosen = ", ".join(dict.fromkeys(each.chosen for each in outcome.agreements))
    typer.echo(f"the best label is {first.best}; chosen by synthetic questions: {chosen}")
