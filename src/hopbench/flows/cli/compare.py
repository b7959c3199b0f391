"""`hopbench compare A B [C …]`: which differences are real; `hopbench recommend RUN`: which label to take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hopbench.flows.cli.flags import Json, argument, option
from hopbench.flows.cli.output import Grid, console, number, print_csv, print_json
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.setting import DATA, EXECUTION, OUTPUT, STRATEGIES
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from hopbench.eval.compare import Comparison
    from hopbench.eval.report.recommend import Option, Recommendation
    from hopbench.flows.cli._compare_sides import Side, Source


def print_comparison(comparison: Comparison, sides: list[Side], first: Source, seed: int, *, listed: bool) -> None:
    """Everything; `first` names the benchmark, `listed` shows the questions won and lost."""
    screen, benchmark = console(), first.results["benchmark"]
    screen.print(f"{benchmark['name']} · {benchmark['questions']} questions · {comparison.metric}", markup=False)
    runs = {side.run.place: side.run for side in sides}
    for run in runs.values():  # a bare label means its newest tracked run
        labels = [side.name for side in sides if side.run.place == run.place]
        whose = f"{', '.join(labels)}: " if len(runs) > 1 else ""
        screen.print(f"{whose}{run.description}", markup=False, soft_wrap=True)
    _print_pairs(screen, comparison)
    _print_ragas(screen, {side.name: side.rows for side in sides}, comparison.baseline, comparison.metric, seed)
    _print_kinds(screen, sides)
    if any(pair.by_type for pair in comparison.pairs):
        _print_types(screen, comparison)
    for pair in comparison.pairs if listed else ():
        screen.print(f"\n{pair.label} against {pair.baseline}", markup=False)
        for word, ids in (("won", pair.wins), ("lost", pair.losses)):
            screen.print(f"  {word} {len(ids)}: {' '.join(ids) or '–'}", markup=False)


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
    shown = Grid("RAGAS: label", "against", *names, right=tuple(names), fold=("RAGAS: label", "against"), keys=2)
    for pairs in zip(*(item.pairs for item in results), strict=True):
        cells = [f"{number(pair.difference, sign=True)} {pair.verdict}" for pair in pairs]
        shown.add_row(pairs[0].label, pairs[0].baseline, *cells)
    screen.print(shown)


def _print_pairs(screen: Console, comparison: Comparison) -> None:
    """A row per pair: effect, interval, corrected p, verdict, wins and losses; then how to read them."""
    from hopbench.eval.statistics import limit

    right = ("effect", "p (Holm)", "detectable", "won", "lost", "tied")
    heads = (
        "label",
        "against",
        "effect",
        f"{1 - comparison.alpha:.0%} interval",
        "p (Holm)",
        "detectable",
        "verdict",
        "won",
        "lost",
        "tied",
    )
    drop = ("detectable", "tied", "won", "lost", "p (Holm)")
    rows = Grid(*heads, right=right, drop=drop, fold=("label", "against"), keys=2)
    for pair in comparison.pairs:
        verdict = pair.verdict + (" (incomplete)" if pair.incomplete else "")
        together = pair.ci_family
        interval = f"{limit(together.low)} … {limit(together.high)}" if together else "–"
        p = "–" if pair.n == 0 else f"{pair.p_holm:.4f}"
        rows.add_row(
            pair.label,
            pair.baseline,
            number(pair.difference, sign=True),
            interval,
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


def _print_types(screen: Console, comparison: Comparison) -> None:
    """A row per pair and question type."""
    right = ("n", "effect", "won", "lost", "tied")
    rows = Grid("label", "against", "type", *right[:2], "interval", *right[2:], right=right)
    for pair in comparison.pairs:
        for kind, part in pair.by_type.items():
            interval = f"{part.ci.low:+.3f} … {part.ci.high:+.3f}" if part.ci else "–"
            won = str(part.wins), str(part.losses), str(part.ties)
            rows.add_row(pair.label, pair.baseline, kind, str(part.n), f"{part.difference:+.3f}", interval, *won)
    screen.print()
    screen.print(rows)
    screen.print("By type: exploratory, outside the corrected family.", markup=False)


def compare_command(
    sides: Annotated[
        list[str] | None,
        argument(
            metavar="A B …",
            help="DIR (a run's folder, all its labels) or DIR:LABEL (DIR:pagerank:tuned); an MLflow run id; a label "
            "(its newest tracked run); champion.",
            values="sides",
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
    as_json: Json = False,
    as_csv: Annotated[bool, option(OUTPUT, "--csv", help="Print the pairs as CSV, with a heading.")] = False,
    dataset: Annotated[str | None, option(DATA, help="Where the runs' benchmark is now (for --by-type).")] = None,
    seed: Annotated[int, option(EXECUTION, min=0, help="Seed of the resampling.")] = 0,
) -> None:
    """Compare labels question by question: effect, interval, p after Holm, verdict, wins and losses."""
    from hopbench.eval.compare import compare
    from hopbench.flows.cli._compare_sides import Sources, choose_baseline, resolve_sides

    sources, sides = Sources(Home.resolve(), dataset), sides or []
    found = resolve_sides(sides, sources, runs or ())
    chosen = choose_baseline(sides, found, baseline, sources)
    first = next((side.run for side in found if "passages" in side.run.results["benchmark"]), found[0].run)
    types = {q.id: q.type for q in first.benchmark(dataset).questions} if by_type else None
    measured = _measured(found, metric)
    comparison = compare({side.name: side.rows for side in found}, chosen, measured, seed=seed, types=types)
    if as_json:
        print_json(_plain(comparison, found, first, seed))
    elif as_csv:
        print_csv(_flat(comparison))
    else:
        print_comparison(comparison, found, first, seed, listed=listed)


def _measured(sides: list[Side], metric: str | None) -> str:
    """The metric, or the primary one of the sides' benchmark. Raises InputError where a side has none."""
    from hopbench.eval.metrics import PRIMARY, lacking, primary_of
    from hopbench.flows.cli._compare_sides import refuse_unmeasured

    results = [side.run.results for side in sides]
    scored = [result for result in results if "primary_metric" in result["benchmark"]]
    found = metric or (primary_of(scored[0]) if scored else primary_of(results[0]) or PRIMARY)
    if found is None:
        raise InputError(f"nothing to compare on: {lacking(None)}; or name a judged metric with --metric")
    refuse_unmeasured(sides, found)
    return found


def _flat(comparison: Comparison) -> list[dict[str, Any]]:
    """A row for each pair, with the names of a run's comparisons; wins and losses are counted."""
    rows = []
    for pair in comparison.pairs:
        row: dict[str, Any] = {"label": pair.label, "baseline": pair.baseline, "metric": comparison.metric}
        row |= {"questions": pair.n, "effect": pair.difference}
        for name, interval in (("ci", pair.ci), ("family", pair.ci_family)):
            row[f"{name}_low"] = interval.low if interval else None
            row[f"{name}_high"] = interval.high if interval else None
        row |= {name: getattr(pair, name) for name in ("p", "p_holm", "minimum_detectable", "verdict", "ties")}
        rows.append({**row, "wins": len(pair.wins), "losses": len(pair.losses)})
    return rows


def _plain(comparison: Comparison, sides: list[Side], first: Source, seed: int) -> dict[str, Any]:
    result = {
        side.name: {"folder": side.run.display_name, "label": side.label, "run": side.run.description, **side.about}
        for side in sides
    }
    benchmark = first.results["benchmark"]
    return {"benchmark": benchmark, "seed": seed, "sides": result, **comparison.to_dict()}


COSTS = ("ms p50", "ms p95", "tokens", "LLM calls")


def recommend_command(
    run: Annotated[Path, argument(metavar="RUN", help="The --out folder of a finished run.")],
    latency_ms: Annotated[
        float | None, option(STRATEGIES, help="The most that 95 of 100 questions may take, in milliseconds.")
    ] = None,
    context_tokens: Annotated[
        float | None, option(STRATEGIES, help="The most tokens of context that a reader may get, a mean.")
    ] = None,
    no_llm: Annotated[bool, option(STRATEGIES, "--no-llm", help="Leave out labels that ask a language model.")] = False,
    seed: Annotated[int, option(EXECUTION, min=0, help="Seed of the resampling.")] = 0,
    as_json: Json = False,
    csv: Annotated[Path | None, option(OUTPUT, help="Also write the table into this CSV file.")] = None,
) -> None:
    """Say which label to take: the best within the limits, and what is statistically as good and cheaper.

    Labels that were tuned or learned on the run's own questions are left out, as are those that failed on over 5%.
    """
    from hopbench.eval.files import write_atomically
    from hopbench.eval.report.recommend import Limits, recommend
    from hopbench.flows.run.finished import RunFolder

    limits = Limits(latency_ms=latency_ms, context_tokens=context_tokens, llm=not no_llm)
    folder = RunFolder.read(run)
    found = recommend(folder.results, {label: folder.rows(label) for label in folder.labels}, limits, seed)
    if csv is not None:
        write_atomically(csv, found.to_frame().to_csv(index=False).encode())
    if as_json:
        print_json(
            {**asdict(found), "sentence": found.sentence(), "alternatives": [o.label for o in found.alternatives]}
        )
        return
    screen = console()
    screen.print(found.sentence(), markup=False)
    heads = ("label", found.metric, "difference", "interval", "verdict", *COSTS, "note")
    drop = ("LLM calls", "ms p50", "interval", "tokens")
    rows = Grid(*heads, right=(found.metric, "difference", *COSTS), drop=drop, fold=("label", "note"))
    for each in found.options:
        rows.add_row(*_cells(each, found))
    screen.print(rows)
    screen.print(
        "difference: mean of label − the best; its interval holds for all labels together. “as good” means that these "
        "questions cannot tell the two apart, not that they are equal. tokens: context that a reader gets, a mean.",
        markup=False,
    )


def _cells(entry: Option, found: Recommendation) -> list[str]:
    pair = entry.against_best
    interval = pair.ci_family if pair else None
    verdict = "as good" if entry.as_good else pair.verdict if pair else "the best" if entry is found.best else "–"
    costs = (entry.latency_ms, 1), (entry.latency_ms_p95, 1), (entry.context_tokens, 0), (entry.llm_calls, 2)
    return [
        entry.label,
        number(entry.value),
        number(pair.difference, sign=True) if pair else "–",
        f"{interval.low:+.3f} … {interval.high:+.3f}" if interval else "–",
        verdict,
        *(number(value, digits) for value, digits in costs),
        "; ".join(entry.excluded) or ("cheaper" if entry.cheaper else ""),
    ]
