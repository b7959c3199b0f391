"""Who is called the best, and that lower is better where it is: the report's headline, bold figures, order and axes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hopbench.eval.report import ReportData, write_report
from hopbench.eval.report._render import _signed
from hopbench.eval.report._tables import breakdowns, filled
from hopbench.eval.report.charts import figures
from hopbench.eval.report.data import shown_interval
from hopbench.eval.report.summary import conclusion

MakeReport = Callable[..., ReportData]
HERE = {"sets": ["musique-train100"], "questions": 100}


def with_entries(data: ReportData, change: Callable[[str, dict[str, Any]], Mapping[str, Any]]) -> ReportData:
    """The report with another part of results.json for each label."""
    strategies = {label: change(label, dict(entry)) for label, entry in data.strategies.items()}
    return replace(data, results={**data.results, "strategies": strategies})


def scored(data: ReportData, metric: str, values: Mapping[str, float]) -> ReportData:
    """Only one metric, which decides."""
    questions = data.questions[["question_id", "strategy", "ranked_ids", "scores", "failure"]].copy()
    questions[metric] = questions["strategy"].map(values)
    one = {label: {"metrics": {metric: value}, "answered": {metric: value}} for label, value in values.items()}
    changed = with_entries(data, lambda label, entry: entry | one[label])
    told = {"label": data.labels[0], "baseline": "bm25", "metric": metric, "verdict": "not distinguishable", "n": 3}
    unknown = dict.fromkeys(("effect", "ci_low", "ci_high", "family_low", "family_high", "mde"))
    counts = {"p": 1.0, "p_adjusted": 1.0, "wins": 0, "losses": 0, "ties": 3}
    benchmark = {**changed.results["benchmark"], "primary_metric": metric}
    results = {**changed.results, "benchmark": benchmark}
    return replace(changed, results=results, questions=questions, comparisons=[told | unknown | counts], intervals={})


def page_of(data: ReportData, folder: Path) -> str:
    write_report(data, folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


def test_a_label_that_was_tuned_here_says_so_and_takes_no_headline(make_report: MakeReport, tmp_path: Path) -> None:
    def tuned(label: str, entry: dict[str, Any]) -> dict[str, Any]:
        here = label == "pagerank"
        return entry | {"kind": "tuned" if here else "documented", "in_sample": HERE if here else None}

    data = with_entries(make_report(), tuned)
    assert "pagerank" == data.labels[0]
    text = conclusion(data)
    assert text.startswith(f"{data.labels[1]} ")
    assert (
        "pagerank was tuned or learned on questions of this benchmark (musique-train100): its scores here say nothing "
        "of other questions, and take no part in this." in text
    )
    page = page_of(data, tmp_path)
    assert "tuned on musique-train100</span>" in page
    assert 4 == page.count('title="Where its numbers come from">documented</span>')
    assert "pagerank *" in {trace["name"] for figure in figures(data, breakdowns(data)) for trace in figure["traces"]}


def test_where_all_were_tuned_here_nobody_is_the_best(make_report: MakeReport) -> None:
    data = with_entries(make_report(), lambda _, entry: entry | {"kind": "tuned", "in_sample": HERE})
    assert conclusion(data).startswith("No label here may be called the best. ")


def test_without_gold_and_answers_nobody_is_ahead_and_nothing_is_drawn(make_report: MakeReport, tmp_path: Path) -> None:
    shares = {"vector": 0.9, "bm25": 0.1, "hybrid": 0.2, "graph_expansion": 0.3, "pagerank": 0.4}
    data = scored(make_report(), "reach_share@0", shares)
    results = {**data.results, "benchmark": {**data.results["benchmark"], "primary_metric": None}}
    data = replace(data, results=results, comparisons=[])
    assert list(shares) == data.labels  # the order of the run
    assert "No label is ahead of another: this benchmark has nothing to score by." == conclusion(data)
    assert [] == figures(data, breakdowns(data))
    page = page_of(data, tmp_path)
    assert "What this benchmark lacks" in page
    assert "qrels/test.tsv" in page
    assert "Leaderboard" not in page


def test_answers_alone_are_the_headline_and_what_is_missing_is_said(make_report: MakeReport, tmp_path: Path) -> None:
    values = {"vector": 0.1, "bm25": 0.2, "hybrid": 0.3, "graph_expansion": 0.4, "pagerank": 0.5}
    data = replace(scored(make_report(), "has_answer@10", values), comparisons=[])
    assert "has_answer@10" == data.primary
    assert conclusion(data).startswith("pagerank has the answer in the top 10 for 50.0% of questions")
    assert "no question has gold passages, so has_answer@10 decides" in page_of(data, tmp_path).replace("No q", "no q")


def test_where_lower_is_better_the_lowest_is_first_bold_and_at_the_better_end(
    make_report: MakeReport, tmp_path: Path
) -> None:
    values = {"vector": 0.9, "bm25": 0.1, "hybrid": 0.2, "graph_expansion": 0.3, "pagerank": 0.4}
    data = scored(make_report(), "noise_sensitivity", values)
    assert ["bm25", "hybrid", "graph_expansion", "pagerank", "vector"] == data.labels
    page = page_of(data, tmp_path)
    row = re.search(r'<tr><th scope="row"><span class="label">bm25</span></th>(.*?)</tr>', page)
    worst = re.search(r'<tr><th scope="row"><span class="label">vector</span></th>(.*?)</tr>', page)
    assert row
    assert worst
    assert ('number best">0.100', True) == (row[1].split('<td class="')[1].split("</td>")[0], "best" not in worst[1])
    heading = re.search(r"<th [^>]*><button[^>]*>noise_sensitivity</button>", page)
    assert heading
    assert 'aria-sort="ascending" data-first="ascending"' in heading[0]
    drawn = {figure["id"]: figure["layout"] for figure in figures(data, breakdowns(data))}
    assert "reversed" == drawn["latency"]["yaxis"]["autorange"]
    assert [1.02, 0] == drawn["types"]["xaxis"]["range"]
    for axis in (drawn["latency"]["yaxis"], drawn["types"]["xaxis"]):
        assert "noise_sensitivity (lower is better)" == axis["title"]["text"]


def test_a_failed_question_counts_as_the_worst() -> None:
    assert 0.5 == filled([1.0, None], worst=0.0)
    assert 1.0 == filled([1.0, None], worst=1.0)
    assert filled([None]) is None


def test_the_interval_beside_a_verdict_never_contradicts_it() -> None:
    alone = {"ci_low": 0.04, "ci_high": 0.24}
    pair = {**alone, "family_low": -0.01, "family_high": 0.29, "verdict": "not distinguishable"}
    assert (-0.01, 0.29) == shown_interval(pair)
    assert shown_interval({**alone, "verdict": "not distinguishable"}) is None


def test_a_limit_that_rounds_to_zero_shows_its_side() -> None:
    assert [">0.000", "<0.000", "0.000", "+0.033", "−0.037"] == [
        _signed(value) for value in (0.0004, -0.0004, 0.0, 0.033, -0.037)
    ]
