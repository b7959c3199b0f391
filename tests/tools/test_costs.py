"""`python -m tools.costs`: what is measured, on small worlds."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tools.costs.__main__ import _sizes, app
from tools.costs.growth import BEGIN, END, STEPS, Step, growth, markdown, write_table
from tools.costs.measure import Cost
from typer.testing import CliRunner

from hopbench.retrieval.strategies.registry import resolve
from hopbench.retrieval.support.errors import InputError

LABELS, SIMILAR = "bm25,graph_expansion", "SIMILAR_TO"


def test_each_size_is_built_and_each_label_measured(tmp_path: Path) -> None:
    reports: list[str] = []
    found = list(growth([400, 300], resolve(LABELS), 20, tmp_path, reports.append, "arrays"))

    names = [(one.passages, one.name if isinstance(one, Step) else one.label) for one in found]
    assert [(size, name) for size in (300, 400) for name in (*STEPS, *LABELS.split(","))] == names
    costs = {(one.passages, one.label): one for one in found if isinstance(one, Cost)}
    assert (0, 0.0) == (costs[300, "bm25"].round_trips, costs[300, "bm25"].rows)
    expansion = costs[400, "graph_expansion"]
    assert expansion.round_trips == 1  # documented: one hop, so one round trip for all 20 questions
    assert expansion.edges > 0
    assert 0 < expansion.alone <= expansion.alone_p95
    steps = [one for one in found if isinstance(one, Step)]
    assert all(step.cpu > 0 and step.peak > 10**7 and not step.resumed for step in steps)

    reports.clear()
    assert found == list(growth([300, 400], resolve(LABELS), 20, tmp_path, reports.append, "arrays"))
    assert [] == reports, "what is known is measured again"
    with pytest.raises(InputError, match="name another --out"):
        list(growth([300], resolve(LABELS), 30, tmp_path, reports.append, "arrays"))

    document = tmp_path / "scale.md"
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    write_table(document, markdown(found))
    text = document.read_text(encoding="utf-8")
    assert text.startswith(
        f"before\n{BEGIN}\n\n| step | 300: CPU | memory | 400: CPU | memory |\n|---|---|---|---|---|\n"
    )
    assert "old" not in text
    cost = costs[300, "graph_expansion"]
    assert (
        f"| `graph_expansion` | {cost.ms:.2f} ({cost.clock_ms:.2f}) | {cost.alone:.1f} ({cost.alone_p95:.1f}) |" in text
    )
    assert 0 < cost.clock_ms < 1000
    assert text.endswith(f"{END}\nafter\n")


def test_a_killed_measurement_goes_on_and_says_what_it_did_not_see(tmp_path: Path) -> None:
    def killed(report: str) -> None:
        if SIMILAR in report:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(growth([300], resolve("bm25"), 20, tmp_path, killed))
    journal = tmp_path / "growth.jsonl"
    journal.write_text(f'{journal.read_text()}\n{{"passages": 300, "begun": "{SIMILAR}"}}\n{{"passages": 300, "na')
    found = list(growth([300], resolve("bm25"), 20, tmp_path, lambda _: None))

    assert [SIMILAR] == [one.name for one in found if isinstance(one, Step) and one.resumed]
    assert {*STEPS, "bm25"} == {one.name if isinstance(one, Step) else one.label for one in found}
    assert "| SIMILAR_TO | ≥ " in markdown(found)


@pytest.mark.parametrize(
    "line",
    [
        *[
            '{"passages": 300, "name": [1], "begun": [1]}',
            "[[[[" * 5000,
            "\udcff",
            '{"passages": 300, "label": "bm25"}',
        ],
        '{"passages": 300, "name": "SIMILAR_TO", "cpu": "abc", "clock": 1.0, "peak": 1}',
        '{"passages": 300, "name": "SIMILAR_TO", "cpu": NaN, "clock": 1.0, "peak": 1}',
        '{"passages": 300, "name": "SIMILAR_TO", "cpu": 1.0, "clock": 1.0, "peak": 1, "more": 1}',
    ],
)
def test_a_line_that_says_nothing_is_passed_over(line: str, tmp_path: Path) -> None:
    assert 11 == len(list(growth([300], resolve("bm25"), 20, tmp_path, lambda _: None)))
    journal = tmp_path / "growth.jsonl"
    known = [one for one in journal.read_text().splitlines() if SIMILAR not in one]
    journal.write_text("\n".join([*known, line]), encoding="utf-8", errors="surrogateescape")
    shutil.rmtree(tmp_path / "world-300")

    found = {
        one.name: one for one in growth([300], resolve("bm25"), 20, tmp_path, lambda _: None) if isinstance(one, Step)
    }
    assert found[SIMILAR].resumed  # its graph is there: nothing is left to do


def test_a_journal_that_does_not_begin_with_its_settings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "growth.jsonl").write_text('{"passages": 300}')

    with pytest.raises(InputError, match=r"growth\.jsonl does not begin with what it was measured with: remove it"):
        list(growth([300], resolve("bm25"), 20, tmp_path, lambda _: None))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--table", "nowhere.md"), "--table nowhere.md"),
        (("--table", "page.md"), "--table page.md: it lacks the lines"),
        (("--out", "page.md"), "cannot write page.md/growth.jsonl: File exists: a file stands where a folder belongs"),
        (("--sizes", "none"), "--sizes none leaves nothing to measure without --trials-on"),
    ],
)
def test_what_could_not_be_kept_is_refused_before_anything_is_measured(
    given: tuple[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("page.md").write_text("")
    result = CliRunner().invoke(app, [*given], env={"HOPBENCH_HOME": str(tmp_path / "home")})

    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert ["page.md"] == [one.name for one in tmp_path.iterdir()]


@pytest.mark.parametrize("text", ["no marks", f"only {BEGIN}", None])
def test_a_document_without_the_marks_is_refused(text: str | None, tmp_path: Path) -> None:
    document = tmp_path / "doc.md"
    if text is not None:
        document.write_text(text)

    with pytest.raises(InputError, match=r"--table .*doc\.md"):
        write_table(document, "table")


@pytest.mark.parametrize("text", ["", "10", "1000,x", "2000000"])
def test_sizes_that_cannot_be_made_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=f"--sizes {re.escape(text)}: give whole numbers from 1000 to 1000000"):
        _sizes(text)
