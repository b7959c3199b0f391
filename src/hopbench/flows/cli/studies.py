"""`hopbench synthesize`, `judge-check` and `train hoprank`: make a benchmark, compare judges, learn weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbench.flows.cli.flags import Config, option, with_flags
from hopbench.flows.cli.output import Grid, console, echo, number, print_estimate, reserved
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.models import ModelOptions
from hopbench.flows.settings.options import RunOptions
from hopbench.flows.settings.setting import DATA, EXECUTION, MODELS, OUTPUT, values_for
from hopbench.flows.studies.options import SynthesizeOptions, TrainOptions
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.synthesize.quality import Quality
    from hopbench.flows.studies.judge_check import Checked
    from hopbench.flows.studies.synthesize import CheckOutcome, Written


@with_flags(SynthesizeOptions, without=("questions", "limit"))
@with_flags(RunOptions, only=("budget", "dry_run"))
def synthesize_command(config: Config = None, **flags: Any) -> None:
    """Make a benchmark from a corpus alone: multi-hop questions whose evidence is known, by rules.

    The folder is a data set like any other: run, sweep, train and explain take it. docs/synthesize.md says how far to
    trust it; --check measures that on a labelled set of yours.
    """
    dry_run, options = flags.pop("dry_run"), SynthesizeOptions(**flags)
    if options.check is not None:
        _refuse_unused(options, dry_run)
        _check_set(options)
    else:
        _make(options, dry_run)


def _refuse_unused(options: SynthesizeOptions, dry_run: bool) -> None:
    """Raise InputError for what --check would not heed: a model reads the graph at most, and no data set is written."""
    reads = options.extractor == "llm"
    given = {
        "--budget": options.budget is not None and not reads,
        "--dry-run": dry_run,
        "--by": options.by != "rules",
        "--role": options.role != "report",
        "--force": options.force,
        "--llm": options.llm is not None and not reads,
    }
    if unused := [flag for flag, is_given in given.items() if is_given]:
        raise InputError(
            f"--check compares questions that rules make, so {', '.join(unused)} cannot be used: leave them out"
        )


def _check_set(options: SynthesizeOptions) -> None:
    _ = options.recipe  # refuses an unknown type
    from hopbench.flows.orchestration.steps import terminal_progress
    from hopbench.flows.studies.synthesize import check

    with terminal_progress() as progress:
        outcome = check(options, progress)
    _print_check(outcome)


def _make(options: SynthesizeOptions, dry_run: bool) -> None:
    _ = options.recipe, options.folder  # refuses an unknown type, and no folder
    from hopbench.eval.synthesize.quality import UnfitError
    from hopbench.flows.orchestration.steps import terminal_progress
    from hopbench.flows.studies.synthesize import synthesize

    if dry_run:
        from hopbench.flows.studies.synthesize import ASSUMED, estimate

        print_estimate(estimate(options), ASSUMED)
        return
    try:
        with terminal_progress() as progress:
            written = synthesize(options, progress)
    except UnfitError as error:
        for check in error.checks:
            _print_quality(check)
        raise
    for each in written:
        _print_written(each)


def _print_written(written: Written) -> None:
    count = sum(written.types.values())
    echo(f"written   {written.folder}  ({count:,} questions, role {written.role})")
    echo("types     " + ", ".join(f"{kind} {number:,}" for kind, number in written.types.items()))
    for example in written.examples:
        echo(f"such as   {example}")
    _print_quality(written.check)
    if faults := written.check.faults():
        echo(f"warning: these questions would not measure anything: {'; '.join(faults)}", err=True)
    if written.dropped:
        echo("left out  " + ", ".join(f"{reason} {number:,}" for reason, number in written.dropped.items()))
    if count < written.wanted:
        echo(f"warning: only {count:,} of {written.wanted:,}: the corpus yields no more", err=True)


def _print_quality(check: Quality) -> None:
    from hopbench.eval.synthesize.quality import LIMITS, MEANING

    rows = Grid("self-check", "questions", "share", "at least", right=("questions", "share", "at least"))
    for part, share in check.shares.items():
        rows.add_row(MEANING[part], f"{share.good:,} of {share.of:,}", f"{share.value:.0%}", f"{LIMITS[part]:.0%}")
    console().print(rows)


def _print_check(outcome: CheckOutcome) -> None:
    from hopbench.eval.synthesize.trust import spread

    rows = Grid("label", "real", "synthetic", right=("real", "synthetic"))
    for label, (real, synthetic) in sorted(outcome.means.items(), key=lambda each: -each[1][0]):
        rows.add_row(label, number(real), number(synthetic))
    console().print(rows)
    first = outcome.agreements[0]
    echo(f"{outcome.benchmark}: {first.real:,} real questions, {first.synthetic:,} synthetic, {first.labels} labels")
    names = {"tau": "Kendall's tau", "verdicts": "same verdict on two labels", "regret": "regret"}
    for field, name in names.items():
        mean, least, most = spread([getattr(each, field) for each in outcome.agreements])
        echo(f"{name:<28}{mean:.3f}  [{least:.3f}, {most:.3f}] over {len(outcome.agreements)} seeds")
    chosen = ", ".join(dict.fromkeys(each.chosen for each in outcome.agreements))
    echo(f"the best label is {first.best}; chosen by synthetic questions: {chosen}")


JUDGED = ("llm", "reasoning_effort", "completion_tokens", "judge_metrics", "budget")


@with_flags(GraphOptions, ModelOptions, only=("embedder", *JUDGED))
def judge_check_command(
    judge: Annotated[str, option(MODELS, "--judge", help="The judge's model, MODEL[@URL].")],
    out: Annotated[Path, option(OUTPUT, help="Folder for judge-check.json and what is finished of the check.")],
    dataset: Annotated[
        str, option(DATA, help="Whose questions: a benchmark's name, folder or file.", values="datasets")
    ] = "hopworld-tune",
    samples: Annotated[int, option(DATA, min=1, help="How many questions.")] = 20,
    seed: Annotated[int, option(EXECUTION, min=0, help="Seed of the intervals.")] = 0,
    config: Config = None,
    **flags: Any,
) -> None:
    """Compare the compact judge profile with RAGAS's full prompts on your own model: cost and agreement."""
    from hopbench.flows.studies.judge_check import judge_check

    models = ModelOptions(**values_for(ModelOptions, flags), judge=judge)
    _print_checked(judge_check(GraphOptions(dataset=dataset, embedder=flags["embedder"]), models, samples, out, seed))
    for warning in models.warnings(answered=True):
        echo(f"warning: {warning}")


def _print_checked(checked: Checked) -> None:
    costs = ("prompt tokens", "calls", "seconds", "faster")
    rows = Grid("metric", "samples", *costs, "Spearman", "mean difference", "failed", right=("samples", *costs))
    for agreement in checked.agreements:
        full, compact = agreement.full, agreement.compact
        pairs = [(full.tokens_in, compact.tokens_in), (full.calls, compact.calls), (full.seconds, compact.seconds)]
        cells = [f"{a:,.0f} → {b:,.0f}" for a, b in pairs]
        faster = f"{full.seconds / compact.seconds:.1f} ×" if compact.seconds else "–"
        of = f" ({agreement.ranked} of {len(checked.agreements) - 1})" if agreement.metric == "all" else ""
        spearman, difference = (
            "–" if one.value is None else f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]"
            for one in (agreement.spearman, agreement.difference)
        )
        rows.add_row(
            agreement.metric,
            str(agreement.samples),
            *cells,
            faster,
            spearman + of,
            difference,
            f"{full.failures} → {compact.failures}",
        )
    screen = console()
    screen.print(f"full → compact, judge {checked.judge}, answers by {checked.reader}", markup=False, soft_wrap=True)
    screen.print(rows)
    screen.print("It holds for this model and these questions only.")
    screen.print(f"wrote  {checked.file}", markup=False, soft_wrap=True)


train_app = typer.Typer(help="Learn the weights of a strategy from questions with gold passages.", no_args_is_help=True)


@train_app.callback()
def train() -> None:
    """Learn the weights of a strategy from questions with gold passages."""


@train_app.command("hoprank")
@reserved
@with_flags(TrainOptions)
def hoprank_command(**flags: Any) -> None:
    """Learn hoprank's weights; print their scores on held-out folds and held-out data sets."""
    from hopbench.flows.orchestration.steps import terminal_progress
    from hopbench.flows.studies.training import train as run

    options = TrainOptions(**flags)
    with terminal_progress() as progress:
        trained = run(options, progress)
    head = ("tested on", "model", "data set", "embedder", "questions", "recall@5", "all_gold@10")
    rows = Grid(*head, right=("questions",))
    for one in trained.figures:
        recall = f"{one.recall_at_5:.3f} [{one.recall_interval[0]:.3f}, {one.recall_interval[1]:.3f}]"
        complete = f"{one.all_gold_at_10:.3f} [{one.all_gold_interval[0]:.3f}, {one.all_gold_interval[1]:.3f}]"
        name, embedder = one.dataset + (" with triples" if one.triples else ""), one.embedder.partition(":")[0]
        rows.add_row(one.setting, one.model, name, embedder, str(one.questions), recall, complete)
    console().print(rows)
    for warning in trained.warnings:
        echo(f"warning: {warning}", err=True)
    if trained.unwritten is not None:
        raise trained.unwritten
    echo(
        f"{trained.numbers} numbers and {trained.trees} trees learned, written to {options.out}"
        if options.out
        else "figures alone; --out FILE learns from all questions and keeps the weights"
    )
