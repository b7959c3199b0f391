"""`hopbench synthesize`, `judge-check` and `train hoprank`: make a benchmark, compare judges, learn weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbench.flows.cli import complete
from hopbench.flows.cli.flags import (
    BudgetUsd,
    CompletionTokens,
    Config,
    DryRun,
    Embedder,
    JudgeMetrics,
    Llm,
    ReasoningEffort,
    option,
    with_flags,
)
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.options import metric_names
from hopbench.flows.settings.setting import DATA, EXECUTION, MODELS, OUTPUT, STRATEGIES, Setting, declared
from hopbench.flows.studies.train_options import TrainOptions
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.answering.judge.outcome import Estimated
    from hopbench.eval.synthesize.generate import Recipe
    from hopbench.eval.synthesize.quality import Quality
    from hopbench.flows.studies.judge_check import Checked
    from hopbench.flows.studies.synthesis import CheckOutcome
    from hopbench.flows.studies.synthesize import Written
    from hopbench.flows.studies.training import Trained


@dataclass(frozen=True, kw_only=True)
class SynthesizeOptions:
    """What to make of which corpus; with `check`, the labelled set that synthetic questions are compared with."""

    corpus: Annotated[
        str | None,
        Setting("The corpus: a folder of documents or tables, a file, a name.", values="datasets", flag="--dataset"),
    ] = None
    out: Annotated[Path | None, Setting("The folder to write; with --check, a JSON file.", group=OUTPUT)] = None
    count: Annotated[int, Setting("How many questions.", low=1, flag="--questions")] = 300
    types: Annotated[
        str, Setting("Types of questions: bridge,compositional,intersection,comparison,bridge-comparison.")
    ] = "all"
    role: Annotated[
        str,
        Setting(
            "What the set is for: tune, report, or halves: one for each, which share no evidence.", values="set_roles"
        ),
    ] = "report"
    seed: Annotated[int, Setting("Equal seeds give equal questions.", low=0)] = 0
    force: Annotated[bool, Setting("Write a set that fails its self-check; no run on it names a best label.")] = False
    check: Annotated[
        str | None,
        Setting("A labelled set: compare what synthetic and its own questions say of the labels.", values="datasets"),
    ] = None
    seeds: Annotated[int, Setting("With --check: how many synthetic sets.", low=1, group=EXECUTION)] = 3
    strategies: Annotated[str, Setting("With --check: the labels to compare.", values="labels", group=STRATEGIES)] = (
        "all,all:tuned"
    )
    by: Annotated[
        str,
        Setting(
            "Who writes: rules (with --llm, a model words the rules' paths), or ragas: its generator, with --llm.",
            values="question_writers",
            group=MODELS,
        ),
    ] = "rules"

    def __post_init__(self) -> None:
        """Refuse to make and to check at once, and to do neither."""
        if (self.corpus is None) == (self.check is None):
            raise InputError("name a corpus with --dataset, or a labelled set with --check (one of the two)")

    @property
    def dataset(self) -> str:
        """The data set whose corpus questions are made from."""
        return str(self.corpus if self.check is None else self.check)

    def recipe(self) -> Recipe:
        """What the generator is to make. Raises InputError for a type that is none."""
        from hopbench.eval.synthesize.generate import TYPES, Recipe

        named = TYPES if self.types == "all" else tuple(name.strip() for name in self.types.split(",") if name.strip())
        return Recipe(questions=self.count, types=named, seed=self.seed)


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
        _check_set(options, graph, budget)
    else:
        _make(options, graph, budget, dry_run)


def _refuse_unused(options: SynthesizeOptions, graph: GraphOptions, given: Mapping[str, bool]) -> None:
    """Raise InputError for what --check would not heed: a model reads the graph at most, and no data set is written."""
    more = {
        "--by": options.by != "rules",
        "--role": options.role != "report",
        "--force": options.force,
        "--llm": graph.llm is not None and graph.extractor != "llm",
    }
    if unused := [flag for flag, is_given in {**given, **more}.items() if is_given]:
        raise InputError(
            f"--check compares questions that rules make, so {', '.join(unused)} cannot be used: leave them out"
        )


def _check_set(options: SynthesizeOptions, graph: GraphOptions, budget: float | None) -> None:
    recipe = options.recipe()
    from hopbench.flows.orchestration.steps import terminal_progress
    from hopbench.flows.studies.synthesis import CheckOptions, check

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
    from hopbench.eval.synthesize.quality import UnfitError
    from hopbench.flows.orchestration.steps import terminal_progress
    from hopbench.flows.studies.synthesize import MakeOptions, synthesize

    making = MakeOptions(
        graph=graph,
        recipe=recipe,
        out=options.out,
        role=options.role,
        by=options.by,
        budget=budget,
        force=options.force,
    )
    if dry_run:
        from hopbench.flows.cli.output import print_estimate
        from hopbench.flows.studies.synthesis import ASSUMED, estimate

        print_estimate(estimate(making), ASSUMED)
        return
    try:
        with terminal_progress() as progress:
            written = synthesize(making, progress)
    except UnfitError as error:
        for check in error.checks:
            _print_quality(check)
        raise
    for each in written:
        _print_written(each)


def _print_written(written: Written) -> None:
    count = sum(written.types.values())
    typer.echo(f"written   {written.folder}  ({count:,} questions, role {written.role})")
    typer.echo("types     " + ", ".join(f"{kind} {number:,}" for kind, number in written.types.items()))
    for example in written.examples:
        typer.echo(f"such as   {example}")
    _print_quality(written.check)
    if faults := written.check.faults():
        typer.echo(f"warning: these questions would not measure anything: {'; '.join(faults)}", err=True)
    if written.dropped:
        typer.echo("left out  " + ", ".join(f"{reason} {number:,}" for reason, number in written.dropped.items()))
    if count < written.wanted:
        typer.echo(f"warning: only {count:,} of {written.wanted:,}: the corpus yields no more", err=True)


def _print_quality(check: Quality) -> None:
    from hopbench.eval.synthesize.quality import LIMITS, MEANING
    from hopbench.flows.cli.output import add_row, console, table

    rows = table("self-check", "questions", "share", "at least", right=("questions", "share", "at least"))
    for part, share in check.shares.items():
        add_row(rows, MEANING[part], f"{share.good:,} of {share.of:,}", f"{share.value:.0%}", f"{LIMITS[part]:.0%}")
    console().print(rows)


def _print_check(outcome: CheckOutcome) -> None:
    from hopbench.eval.synthesize.trust import spread
    from hopbench.flows.cli.output import add_row, console, number, table

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


def judge_check_command(
    judge: Annotated[str, option(MODELS, "--judge", help="The judge's model, MODEL[@URL].")],
    out: Annotated[Path, option(OUTPUT, help="Folder for judge-check.json and what is finished of the check.")],
    dataset: Annotated[
        str, option(DATA, help="Whose questions: a benchmark's name, folder or file.", complete=complete.datasets)
    ] = "hopworld-tune",
    samples: Annotated[int, option(DATA, min=1, help="How many questions.")] = 20,
    llm: Llm = None,
    reasoning_effort: ReasoningEffort = None,
    completion_tokens: CompletionTokens = None,
    judge_metrics: JudgeMetrics = "all",
    embedder: Embedder = "wordllama",
    budget: BudgetUsd = None,
    seed: Annotated[int, option(EXECUTION, min=0, help="Seed of the intervals.")] = 0,
    config: Config = None,
) -> None:
    """Compare the compact judge profile with RAGAS's full prompts on your own model: cost and agreement."""
    from hopbench.flows.settings.graph_options import GraphOptions
    from hopbench.flows.settings.models import ModelOptions
    from hopbench.flows.studies.judge_check import judge_check

    models = ModelOptions(
        llm=llm,
        reasoning_effort=reasoning_effort,
        completion_tokens=completion_tokens,
        judge=judge,
        judge_metrics=metric_names(judge_metrics),
        budget=budget,
    )
    _print_checked(judge_check(GraphOptions(dataset=dataset, embedder=embedder), models, samples, out, seed))
    for warning in models.warnings(answered=True):
        typer.echo(f"warning: {warning}")


def _print_checked(checked: Checked) -> None:
    from hopbench.flows.cli.output import add_row, console, table

    costs = ("prompt tokens", "calls", "seconds", "faster")
    rows = table("metric", "samples", *costs, "Spearman", "mean difference", "failed", right=("samples", *costs))
    for agreement in checked.agreements:
        full, compact = agreement.full, agreement.compact
        pairs = [(full.tokens_in, compact.tokens_in), (full.calls, compact.calls), (full.seconds, compact.seconds)]
        cells = [f"{a:,.0f} → {b:,.0f}" for a, b in pairs]
        faster = f"{full.seconds / compact.seconds:.1f} ×" if compact.seconds else "–"
        of = f" ({agreement.ranked} of {len(checked.agreements) - 1})" if agreement.metric == "all" else ""
        agreed = [_interval(agreement.spearman) + of, _interval(agreement.difference)]
        add_row(
            rows,
            agreement.metric,
            str(agreement.samples),
            *cells,
            faster,
            *agreed,
            f"{full.failures} → {compact.failures}",
        )
    screen = console()
    screen.print(f"full → compact, judge {checked.judge}, answers by {checked.reader}", markup=False, soft_wrap=True)
    screen.print(rows)
    screen.print("It holds for this model and these questions only.")
    screen.print(f"wrote  {checked.file}", markup=False, soft_wrap=True)


def _interval(found: Estimated) -> str:
    if found.value is None:
        return "–"
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


train_app = typer.Typer(help="Learn the weights of a strategy from questions with gold passages.", no_args_is_help=True)


@train_app.callback()
def train() -> None:
    """Learn the weights of a strategy from questions with gold passages."""


@train_app.command("hoprank")
@with_flags(TrainOptions)
def hoprank_command(**flags: Any) -> None:
    """Learn hoprank's weights; print their scores on held-out folds and held-out data sets."""
    from hopbench.flows.orchestration.steps import terminal_progress
    from hopbench.flows.studies.training import train as run

    options = TrainOptions(**flags)
    with terminal_progress() as progress:
        trained = run(options, progress)
    _print_trained(trained)
    if trained.unwritten is not None:
        raise trained.unwritten
    typer.echo(
        f"{trained.numbers} numbers and {trained.trees} trees learned, written to {options.out}"
        if options.out
        else "figures alone; --out FILE learns from all questions and keeps the weights"
    )


def _print_trained(trained: Trained) -> None:
    from hopbench.flows.cli.output import add_row, console, table

    rows = table(
        "tested on", "model", "data set", "embedder", "questions", "recall@5", "all_gold@10", right=("questions",)
    )
    for figure in trained.figures:
        recall = f"{figure.recall_at_5:.3f} [{figure.recall_interval[0]:.3f}, {figure.recall_interval[1]:.3f}]"
        complete = f"{figure.all_gold_at_10:.3f} [{figure.all_gold_interval[0]:.3f}, {figure.all_gold_interval[1]:.3f}]"
        add_row(
            rows,
            figure.setting,
            figure.model,
            figure.dataset + (" with triples" if figure.triples else ""),
            figure.embedder.partition(":")[0],
            str(figure.questions),
            recall,
            complete,
        )
    console().print(rows)
    for warning in trained.warnings:
        typer.echo(f"warning: {warning}", err=True)
