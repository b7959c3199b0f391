"""`hopbench synthesize`: a benchmark from a corpus alone, and how far such a benchmark may be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.declare import DATA, EXECUTION, MODELS, OUTPUT, STRATEGIES, Config, option, with_flags
from hopbench.flows.cli.flags.shared import BudgetUsd, DryRun
from hopbench.flows.settings.graph_options import GraphOptions

if TYPE_CHECKING:
    from hopbench.flows.studies.synthesize.check import CheckOutcome
    from hopbench.flows.studies.synthesize.make import Written


@with_flags(GraphOptions, without=("dataset", "questions", "limit"))
def synthesize_command(
    dataset: Annotated[
        str | None,
        option(DATA, help="The corpus: a folder of documents or tables, a file, a name.", complete=complete.datasets),
    ] = None,
    out: Annotated[Path | None, option(OUTPUT, help="The folder to write; with --check, a JSON file.")] = None,
    questions: Annotated[int, option(DATA, min=1, help="How many questions.")] = 300,
    types: Annotated[
        str,
        option(DATA, help="Types of questions: bridge,compositional,intersection,comparison,bridge-comparison."),
    ] = "all",
    role: Annotated[
        str,
        option(
            DATA,
            help="What the set is for: tune, report, or halves: one for each, which share no evidence.",
            complete=complete.one_of("tune", "report", "halves"),
        ),
    ] = "report",
    seed: Annotated[int, option(DATA, min=0, help="Equal seeds give equal questions.")] = 0,
    check: Annotated[
        str | None,
        option(
            DATA,
            help="A labelled set: compare what synthetic and its own questions say of the labels.",
            complete=complete.datasets,
        ),
    ] = None,
    seeds: Annotated[int, option(EXECUTION, min=1, help="With --check: how many synthetic sets.")] = 3,
    strategies: Annotated[
        str, option(STRATEGIES, help="With --check: the labels to compare.", complete=complete.label)
    ] = "all,all:tuned",
    by: Annotated[
        str,
        option(
            MODELS,
            help="Who writes: rules (with --llm, a model words the rules' paths), or ragas: its generator, with --llm.",
            complete=complete.one_of("rules", "ragas"),
        ),
    ] = "rules",
    budget: BudgetUsd = None,
    dry_run: DryRun = False,
    config: Config = None,
    **flags: Any,
) -> None:
    """Make a benchmark from a corpus alone: multi-hop questions whose evidence is known, by rules.

    The folder is a data set like any other: run, sweep, train and explain take it. docs/synthesize.md says how far to
    trust it; --check measures that on a labelled set of yours.
    """
    from hopbench.eval.synthesize.generate import TYPES, Recipe
    from hopbench.flows.cli.printing.progress import terminal_progress
    from hopbench.retrieval.support.errors import InputError

    named = TYPES if types == "all" else tuple(name.strip() for name in types.split(",") if name.strip())
    recipe = Recipe(questions=questions, types=named, seed=seed)
    if (dataset is None) == (check is None):
        raise InputError("name a corpus with --dataset, or a labelled set with --check (one of the two)")
    if check is not None:
        from hopbench.flows.studies.synthesize.check import check as run_check

        with terminal_progress() as progress:
            outcome = run_check(GraphOptions(dataset=check, **flags), recipe, seeds, strategies, out, progress)
        _print_check(outcome)
        return
    if out is None:
        raise InputError("--out is missing: name the folder to write")
    from hopbench.flows.studies.synthesize.make import MakeOptions, synthesize

    graph = GraphOptions(dataset=str(dataset), **flags)
    options = MakeOptions(graph=graph, recipe=recipe, out=out, role=role, by=by, budget=budget)
    if dry_run:
        from hopbench.flows.cli.printing.estimate import print_estimate
        from hopbench.flows.studies.synthesize.estimate import ASSUMED, estimate

        print_estimate(estimate(options), ASSUMED)
        return
    with terminal_progress() as progress:
        written = synthesize(options, progress)
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
