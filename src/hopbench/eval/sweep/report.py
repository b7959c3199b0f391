"""The report of a sweep: the winner and what its lead is worth, what each parameter does, quality against cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hopbench.eval.files import write_atomically
from hopbench.eval.report import render_page
from hopbench.eval.sweep.figures import curves, front, pareto_figure, varied
from hopbench.eval.sweep.plan import SweepPlan, ablated
from hopbench.eval.sweep.readers import model_scores, readers_of, scored_columns
from hopbench.eval.sweep.response import responses
from hopbench.eval.sweep.results import Result
from hopbench.eval.sweep.selection import Selection

SHOWN = 200


@dataclass(frozen=True)
class SweepReport:
    """What the page shows; results are best first, `calls` are those to language models by purpose."""

    plan: SweepPlan
    results: Sequence[Result]
    reported: Result | None
    bias: Selection | None
    warnings: Sequence[str]
    best_yaml: str
    calls: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def metric(self) -> str:
        """The objective."""
        return self.plan.content.objective.metric

    @property
    def whole(self) -> list[Result]:
        """The results on all questions."""
        return [result for result in self.results if result.dropped_at is None]


def write_sweep_report(report: SweepReport, path: Path) -> None:
    """Write the page, whole or not at all."""
    answers = responses(report.results, report.metric, report.plan.content.seed)
    timed = report.plan.content.timed
    places = front(report.whole, report.metric, timed)
    figures = [pareto_figure(report.metric, places, timed), *curves(report.metric, answers)]
    read = [(result, scores) for result in report.results if (scores := model_scores(result))]
    page = render_page(
        "sweep.html.j2",
        report=report,
        best=report.results[0],
        places={place.result.candidate.key: place for place in places},
        responses=answers,
        figures=[figure for figure in figures if figure["traces"]],
        varied=varied,
        ablations=_ablations(report),
        timed=timed,
        shown=SHOWN,
        ragas=list(report.results[0].ragas),
        read=read[:SHOWN],
        columns=scored_columns(report.results),
        reader=readers_of(read[0][0]) if read else ("", ""),
    )
    write_atomically(path, page.encode())


def _ablations(report: SweepReport) -> list[tuple[str, str, float, float | None]]:
    """(configuration, without, value, change) of each ablation; a change of None: the edges are not used."""
    by_key = {result.candidate.key: result for result in report.results}
    rows: list[tuple[str, str, float, float | None]] = []
    for candidate in report.plan.candidates if report.plan.content.ablations else ():
        if candidate.of is not None:
            continue
        whole = by_key[candidate.key].mean(report.metric)
        for variant, edges in ablated(candidate.strategy).items():
            value = by_key[variant, candidate.build].mean(report.metric)
            change = None if variant == candidate.strategy else value - whole
            rows.append((candidate.title, ", ".join(edges), value, change))
    return rows
