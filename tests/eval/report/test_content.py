"""What the report says and embeds, without a browser."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from hopbench.eval.explain import Quote, quote
from hopbench.eval.report import ReportData, read_run, write_details, write_report
from hopbench.eval.report._questions import BATCH, BRIEF_TOP, Batch, found, packed_details, question_index
from hopbench.eval.report._tables import breakdowns, ceiling, failures, filled, observations, reach
from hopbench.eval.report.charts import figures, pareto
from hopbench.eval.report.summary import conclusion, percent, points
from hopbench.eval.types import BenchmarkQuestion, Gold
from hopbench.retrieval.support.errors import IncompleteError, InputError

MakeReport = Callable[..., ReportData]


def embedded(page: str, name: str) -> Any:
    match = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert match, f"no payload {name}"
    return json.loads(match[1])


def unpacked(batch: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(batch)))


@pytest.mark.parametrize(
    ("metric", "gold", "expected"),
    [
        ("all_gold@2", 4, 0.0),  # four passages do not fit in two places
        ("all_gold@5", 4, 1.0),
        ("recall@2", 4, 0.5),  # 2 of 4
        ("recall@5", 3, 1.0),
        ("nDCG@10", 2, None),
        ("all_gold@2", 0, None),  # no gold, no ceiling
    ],
)
def test_ceiling_follows_from_the_number_of_gold_passages(metric: str, gold: int, expected: float | None) -> None:
    ids = [f"p{n}" for n in range(gold)]
    assert ceiling(metric, BenchmarkQuestion("q", "?", gold=Gold(ids)), dict.fromkeys(ids, "")) == expected


def test_missing_values_count_zero_and_an_unmeasured_group_is_none() -> None:
    assert filled([1.0, None, float("nan"), 1.0]) == 0.5  # (1 + 0 + 0 + 1) / 4
    assert filled([None, float("nan")]) is None


def test_breakdown_weighs_back_to_the_mean_of_results(make_report: MakeReport) -> None:
    data = make_report()
    split = next(b for b in breakdowns(data) if b.metric == "all_gold@10")
    for label, entry in data.strategies.items():
        weighed = sum(g.questions * (g.means[label] or 0.0) for g in split.by_type[1:]) / 300
        assert weighed == pytest.approx(entry["metrics"]["all_gold@10"])
        assert split.by_type[0].means[label] == pytest.approx(weighed)
    two = next(b for b in breakdowns(data) if b.metric == "all_gold@2")
    # made-up questions: half have 2 gold passages, a quarter 3, a quarter 4
    assert [(g.name, g.ceiling) for g in two.by_gold] == [("2 gold", 1.0), ("3 gold", 0.0), ("4 gold", 0.0)]
    assert two.by_type[0].ceiling == 0.5


def test_pareto_front_keeps_what_nothing_beats_in_both() -> None:
    places = [("slow", 9.0, 0.5), ("fast", 1.0, 0.4), ("good", 5.0, 0.8), ("dominated", 6.0, 0.7), ("tie", 5.0, 0.6)]
    assert [label for label, _, _ in pareto(places)] == ["fast", "good"]


@pytest.mark.parametrize(("value", "text"), [(0.064, "+6.4"), (-0.11, "−11.0"), (-0.0001, "0.0"), (0.0, "0.0")])
def test_points_have_a_sign_unless_zero(value: float, text: str) -> None:
    assert points(value) == text


@pytest.mark.parametrize("value", [0.9275, 0.0625, 0.3425, 0.0005, 0.8125])
def test_percent_is_the_number_that_the_tables_show(value: float) -> None:
    shown = f"{value:.3f}"  # a float's half goes where its binary digits lie
    assert percent(value) == f"{100 * float(shown):.1f}%"
    assert points(value).lstrip("+") == f"{100 * float(shown):.1f}"


COMPARED = {"metric": "all_gold@10", "n": 300, "p": 0.2, "p_adjusted": 0.4, "wins": 9, "losses": 5, "ties": 286}


def against(data: ReportData, label: str, baseline: str, effect: float, verdict: str) -> ReportData:
    bounds = {"effect": effect, "family_low": effect - 0.03, "family_high": effect + 0.03, "mde": 0.042}
    bounds |= {"ci_low": bounds["family_low"], "ci_high": bounds["family_high"]}
    return replace(data, comparisons=[COMPARED | bounds | {"label": label, "baseline": baseline, "verdict": verdict}])


def test_conclusion_states_a_clear_win(make_report: MakeReport) -> None:
    data = against(make_report(), "pagerank", "bm25", 0.064, "better")
    mean = data.strategies["pagerank"]["metrics"]["all_gold@10"]
    expected = f"pagerank finds all evidence in the top 10 for {mean:.1%} of questions, "
    assert conclusion(data) == expected + "better than the best hop-free baseline bm25 by +6.4 points [+3.4, +9.4]."


def test_conclusion_is_honest_when_nothing_is_distinguishable(make_report: MakeReport) -> None:
    text = conclusion(against(make_report(), "pagerank", "bm25", 0.01, "not distinguishable"))
    assert "but that is not distinguishable from the best hop-free baseline bm25: +1.0 points [−2.0, +4.0]." in text
    assert text.endswith("With 300 questions, this comparison would reliably show a difference of 4.2 points or more.")


def test_too_few_questions_for_an_interval_are_reported(make_report: MakeReport, tmp_path: Path) -> None:
    data = make_report(count=40)
    unknown = dict.fromkeys(("effect", "ci_low", "ci_high", "family_low", "family_high", "mde"))
    names = {"label": data.labels[0], "baseline": data.labels[1], "verdict": "not distinguishable"}
    few = replace(data, comparisons=[COMPARED | names | unknown | {"n": 1}])
    assert conclusion(few).endswith("1 shared questions are too few for an interval.")
    write_report(few, tmp_path / "report.html")


def test_observations_are_numbers_a_question(make_report: MakeReport) -> None:
    data = make_report()
    strategies = {label: dict(entry) for label, entry in data.strategies.items()}
    strategies["pagerank"] |= {"observed": {"a hub was met": 150}, "terminations": {"dead_end": 30}}
    told = observations(replace(data, results=dict(data.results) | {"strategies": strategies}))
    assert told == {"pagerank": {"a hub was met": 0.5, "paths that ended by dead end": 0.1}}  # of 300 questions


def test_reach_reads_in_steps_wherever_results_keep_it(make_report: MakeReport) -> None:
    data = make_report()
    assert list(reach(data)["pagerank"]) == ["reach@1", "reach@1_share", "reach@2", "reach@2_share"]
    assert "bm25" not in reach(data)
    measured = data.strategies["bm25"]["metrics"] | {"reach_share@1": 0.1, "reach@2": 0.9, "reach@1": 0.7}
    strategies = {"bm25": data.strategies["bm25"] | {"metrics": measured}}
    own = reach(replace(data, results=dict(data.results) | {"strategies": strategies}))["bm25"]
    assert own == {"reach@1": 0.7, "reach_share@1": 0.1, "reach@2": 0.9}
    assert list(own) == ["reach@1", "reach_share@1", "reach@2"]


def test_conclusion_says_when_the_baseline_leads(make_report: MakeReport) -> None:
    data = make_report(labels=("bm25", "vector"))
    assert "no other strategy here is ahead of this baseline. The nearest, vector, is worse" in conclusion(data)


def test_failures_are_listed_with_their_reason(make_report: MakeReport) -> None:
    data = make_report(failed=3)
    assert failures(data) == {"graph_expansion": [("no node for 3 of 10 seeds", ["q0000", "q0001", "q0002"])]}
    assert found(data, "q0000", "graph_expansion") is None


def test_a_batch_holds_ranks_and_paths_of_its_questions(make_report: MakeReport) -> None:
    data = make_report()
    batches = packed_details(data).batches
    assert len(batches) == -(-300 // BATCH)
    batch, question = unpacked(batches[1]), data.benchmark.questions[BATCH]
    detail = batch["questions"][0]
    row = data.rows[(question.id, "pagerank")]
    ranks = [row["ranked_ids"].index(g) + 1 if g in row["ranked_ids"] else None for g in question.gold]
    shown = detail["labels"][data.labels.index("pagerank")]
    assert shown["ranks"] == ranks
    assert [batch["passages"][hit[0]][0] for hit in shown["hits"][:10]] == row["ranked_ids"][:10]
    path = shown["hits"][2][6]  # the made-up run leads to every third hit by a path
    assert [step[0] for step in path] == ["MENTIONED_IN", "RELATED_TO", "MENTIONED_IN"]
    assert [batch["nodes"][path[0][2]], batch["nodes"][path[1][2]]] == [["Petra Harrow", 0], ["Calden", 0]]


def test_what_is_stated_on_a_path_stands_below_it_also_when_the_report_is_made_again(
    make_report: MakeReport, tmp_path: Path
) -> None:
    """The path goes from Petra Harrow to Calden, the relation the other way round."""
    told = ['Calden -> Petra Harrow: "birthplace of" (strength: 9)']
    data = replace(make_report(), stated={("e:calden", "e:harrow"): told})
    batch = unpacked(packed_details(data).batches[1])
    hits = batch["questions"][0]["labels"][data.labels.index("pagerank")]["hits"]
    assert (told, []) == (hits[2][8], hits[0][8])

    (tmp_path / "results.json").write_text(json.dumps(data.results), encoding="utf-8")
    data.questions.to_parquet(tmp_path / "questions.parquet")
    write_details(data, tmp_path)
    assert data.stated == read_run(tmp_path, data.benchmark).stated


def test_a_mention_on_a_path_is_quoted_with_its_sentence() -> None:
    text = "He met St. John. Then Tulsa made him mayor."

    assert quote("A life", text, "Tulsa, Oklahoma") == Quote("Then ", "Tulsa", " made him mayor.")
    assert quote("Tulsa (song)", "A song.", "tulsa") == Quote("", "Tulsa", " (song)")
    assert quote("A life", "Tulsans sang.", "Tulsa") is None


def test_beyond_the_limit_all_questions_are_brief_and_the_telling_ones_whole(
    make_report: MakeReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_report()
    everything = packed_details(data)
    assert (300, 0, None) == (everything.whole, everything.brief, everything.pair)
    asked = data.benchmark.questions
    assert {q.id: divmod(row, BATCH) for row, q in enumerate(asked)} == everything.place

    monkeypatch.setattr("hopbench.eval.report._questions.PACKED_LIMIT", 0.9 * sum(map(len, everything.batches)))
    details = packed_details(data)
    pair = ("hybrid", "pagerank")  # the baseline, and the best of the others
    assert pair == details.pair
    assert 300 == details.whole + details.brief
    assert 0 == details.whole % BATCH < details.whole
    brief = {row for row, content in enumerate(details.batches) if unpacked(content)["brief"]}
    differ = [q.id for q in asked if len({found(data, q.id, label) for label in pair}) > 1]
    alike = [q.id for q in asked if q.id not in differ]
    assert {*(differ + alike)[: details.whole]} == {q.id for q in asked if details.place[q.id][0] not in brief}


def test_brief_details_have_ranks_and_the_titles_of_first_hits(make_report: MakeReport) -> None:
    data = make_report()
    asked = data.benchmark.questions[:BATCH]
    whole, brief = (unpacked(Batch(data, brief=is_brief).pack(asked)) for is_brief in (False, True))
    for one, other in zip(whole["questions"], brief["questions"], strict=True):
        for all_of, part in zip(one["labels"], other["labels"], strict=True):
            assert all_of["ranks"] == part["ranks"]
            first = [whole["passages"][hit[0]][:2] for hit in all_of["hits"][:BRIEF_TOP]]
            assert first == [brief["passages"][passage][:2] for passage in part["hits"]]
    gold = {gold for q in asked for gold in q.gold}
    assert {key for key, _, text in brief["passages"] if text} == gold


def test_what_does_not_even_fit_in_brief_is_left_out(make_report: MakeReport, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_report()
    first = Batch(data, brief=True).pack(data.benchmark.questions[:BATCH])
    monkeypatch.setattr("hopbench.eval.report._questions.PACKED_LIMIT", 2.5 * len(first))
    details = packed_details(data)
    assert (0, 2 * BATCH) == (details.whole, details.brief)
    places = [line["at"] for line in question_index(data, details)["questions"]]
    assert places[2 * BATCH - 1 : 2 * BATCH + 1] == [(1, BATCH - 1), None]


def test_markup_in_questions_titles_and_labels_is_never_markup(make_report: MakeReport, tmp_path: Path) -> None:
    planted = "<script>window.planted=1</script>"
    data = make_report(count=40, planted=planted)
    write_report(data, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert planted not in page
    assert planted in embedded(page, "index")["questions"][0]["text"]
    assert f"pagerank[{planted}]" in embedded(page, "index")["labels"]
    assert any("&lt;script&gt;" in t["name"] for f in embedded(page, "figures") for t in f["traces"])


def test_page_asks_for_nothing_and_its_policy_names_its_scripts(make_report: MakeReport, tmp_path: Path) -> None:
    write_report(make_report(count=40), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", page)
    assert "http://" not in page
    assert "https://" not in page
    assert not re.findall(r"<[^>]+ on\w+=", page)
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert len(script) == 1
    assert f"'sha256-{digest}'" in page


def test_text_has_aa_contrast_in_both_themes() -> None:
    style = files("hopbench.eval.report").joinpath("assets", "report.css").read_text(encoding="utf-8")
    themes = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in re.findall(r"{[^{}]*--page[^{}]*}", style)
    ]
    themes = [theme for theme in themes if "accent" in theme]
    assert len(themes) == 3  # light, dark by the system, dark by choice
    assert themes[1] == themes[2]
    for theme in themes:
        pairs = [(ink, paper) for ink in ("text", "muted", "accent") for paper in ("page", "card", "soft")]
        pairs += [(name, f"{name}-soft") for name in ("good", "bad", "warn", "gold", "accent")]
        pairs += [(name, "card") for name in ("good", "bad", "warn")] + [
            ("muted", "gold-soft"),
            ("text", "accent-soft"),
        ]
        too_faint = {pair: contrast(*(theme[name] for name in pair)) for pair in pairs}
        assert {pair: ratio for pair, ratio in too_faint.items() if ratio < 4.5} == {}


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, relative luminance and contrast ratio: black on white is 21."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_same_run_gives_the_same_bytes(make_report: MakeReport, tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        write_report(make_report(count=40), tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_run_folder_gives_the_report_again(make_report: MakeReport, tmp_path: Path) -> None:
    data = make_report(count=40)
    (tmp_path / "results.json").write_text(json.dumps(data.results), encoding="utf-8")
    data.questions.to_parquet(tmp_path / "questions.parquet")
    write_details(data, tmp_path)
    write_report(data, tmp_path / "first.html")
    write_report(read_run(tmp_path, data.benchmark), tmp_path / "again.html")
    assert (tmp_path / "first.html").read_bytes() == (tmp_path / "again.html").read_bytes()


def test_a_run_without_gold_or_comparisons_is_reported(make_report: MakeReport, tmp_path: Path) -> None:
    data = make_report(count=40)
    bare = {label: entry | {"metrics": {}, "answered": {}, "reach": {}} for label, entry in data.strategies.items()}
    questions = data.questions.drop(
        columns=[c for c in data.questions.columns if "@" in c or c in ("MRR", "has_answer")]
    )
    unjudged = replace(
        data,
        results=dict(data.results) | {"strategies": bare, "graph": None},
        questions=questions,
        comparisons=(),
        intervals={},
        paths={},
        run={},
    )
    write_report(unjudged, tmp_path / "report.html")
    assert "No label is ahead of another: this benchmark has nothing to score by." in (
        tmp_path / "report.html"
    ).read_text(encoding="utf-8")
    assert figures(unjudged, breakdowns(unjudged)) == []


def test_what_cannot_be_reported_is_refused_before_writing(make_report: MakeReport, tmp_path: Path) -> None:
    data = make_report(count=40)
    with pytest.raises(InputError, match=r"schema is 'other/9'.*hopbench.results/1"):
        replace(data, results={"schema": "other/9"})
    with pytest.raises(InputError, match=r"1 question ids are not in benchmark 'made-up films' \(first: 'q0000'\)"):
        replace(data, benchmark=replace(data.benchmark, questions=data.benchmark.questions[1:]))
    with pytest.raises(InputError, match="no column ranked_ids"):
        replace(data, questions=data.questions.drop(columns="ranked_ids"))
    with pytest.raises(InputError, match=r"results.json does not exist"):
        read_run(tmp_path, data.benchmark)
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match="cannot write"):
        write_report(data, tmp_path / "file" / "report.html")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_broken_write_leaves_the_old_report(
    make_report: MakeReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(IncompleteError, match=r"the disk is full for .*report\.html: free some"):
        write_report(make_report(count=40), target)
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
