"""`hopbench recommend RUN`: which label to take, within limits of time, context and cost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hopbench.flows.cli.flags.declare import EXECUTION, OUTPUT, STRATEGIES, argument, option
from hopbench.flows.cli.printing.output import add_row, console, number, print_json, table

if TYPE_CHECKING:
    from hopbench.eval.report.recommend import Option, Recommendation

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
    as_json: Annotated[bool, option(OUTPUT, "--json", help="Print JSON for machines.")] = False,
    csv: Annotated[Path | None, option(OUTPUT, help="Also write the table into this CSV file.")] = None,
) -> None:
    """Say which label to take: the best within the limits, and what is statistically as good and cheaper.

    Labels that were tuned or learned on the run's own questions are left out, as are those that failed on over 5%.
    """
    from hopbench.eval.files import write_atomically
    from hopbench.eval.report.recommend import Limits, recommend
    from hopbench.flows.run.folder import RunFolder

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
    console().print(found.sentence(), markup=False)
    _print_options(found)


def _print_options(found: Recommendation) -> None:
    heads = ("label", found.metric, "difference", "interval", "verdict", *COSTS, "note")
    drop = ("LLM calls", "ms p50", "interval", "tokens")
    rows = table(*heads, right=(found.metric, "difference", *COSTS), drop=drop, fold=("label", "note"))
    for each in found.options:
        add_row(rows, *_cells(each, found))
    console().print(rows)
    console().print(
        "difference: mean of label − the best; its interval holds for all labels together. “as good” means that these "
        "questions cannot tell the two apart, not that they are equal. tokens: context that a reader gets, a mean.",
        markup=False,
    )


def _cells(entry: Option, found: Recommendation) -> list[str]:
    pair = entry.against_best
    interval = pair.ci_family if pair else None
    verdict = "as good" if entry.as_good else pair.verdict if pair else "the best" if entry is found.best else "–"
    note = "; ".join(entry.excluded) or ("cheaper" if entry.cheaper else "")
    return [
        entry.label,
        number(entry.value),
        number(pair.difference, sign=True) if pair else "–",
        f"{interval.low:+.3f} … {interval.high:+.3f}" if interval else "–",
        verdict,
        number(entry.latency_ms, 1),
        number(entry.latency_ms_p95, 1),
        number(entry.context_tokens, 0),
        number(entry.llm_calls, 2),
        note,
    ]
