"""The figures of docs/strategies.md: what a table says of a finished run."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from tools.docs.figures import written

from hopbench.eval.runs.files import RESULTS_SCHEMA
from hopbench.retrieval.support.errors import InputError

LABELS = {
    "bm25": 40,
    "bm25:tuned": 30,
    "vector": 20,
    "graph_expansion": 10,
    "graph_expansion:tuned": 80,
    "pagerank": 41,
}
PAGE = "before\n<!-- figures -->\nold\n<!-- /figures -->\nafter\n"


def finished(folder: Path) -> Path:
    """A run of 100 questions of which each label finds all gold of the first so many."""
    rows = [
        {"question_id": f"q{number:02d}", "strategy": label, "failure": None}
        | {"all_gold@10": float(number < found), "recall@5": 0.5}
        for label, found in LABELS.items()
        for number in range(100)
    ]
    pd.DataFrame(rows).to_parquet(folder / "questions.parquet")
    strategies = {
        label: {"metrics": {"recall@5": 0.5, "all_gold@10": found / 100}, "seconds": 0.25, "params": {}}
        | {"by_type": {"bridge": {"questions": 60, "all_gold@10": 0.9, "recall@5": 0.75}}, "by_gold": {}}
        for label, found in LABELS.items()
    }
    benchmark = {"name": "small", "questions": 100, "passages": 1234}
    (folder / "results.json").write_text(
        json.dumps(
            {"schema": RESULTS_SCHEMA, "benchmark": benchmark, "embedder": "wordllama:l2@1", "strategies": strategies}
        )
    )
    return folder


def test_a_row_has_both_presets_and_what_is_real(tmp_path: Path) -> None:
    lines = written(PAGE, [finished(tmp_path)]).splitlines()

    assert (lines[0], lines[-1]) == ("before", "after")
    assert "**small**, 100 questions, 1,234 passages; best hop-free: `bm25`." in lines
    (expansion,) = [line for line in lines if line.startswith("| `graph_expansion`")]
    cells = [cell.strip() for cell in expansion.split("|")[2:-1]]
    assert ["0.500 / 0.100", "0.500 / 0.800"] == cells[:2]
    assert cells[2].startswith("better +0.400 [")  # .8 − .4
    assert cells[4].startswith("better +0.700 [")  # .8 − .1
    assert cells[5] == "2.5"  # 250 ms for 100 questions
    (words,) = [line for line in lines if line.startswith("| `bm25`")]
    assert "| 0.500 / 0.400 | 0.500 / 0.300 |" in words
    (walk,) = [line for line in lines if line.startswith("| `pagerank`")]
    assert "not distinguishable +0.010" in walk
    assert written("\n".join(lines), [tmp_path]) == "\n".join(lines)


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"results\.json does not exist"):
        written(PAGE, [tmp_path / "none"])


def test_a_page_about_one_label_holds_all_others_against_it(tmp_path: Path) -> None:
    page = "<!-- figures against pagerank -->\n<!-- /figures -->\n"
    lines = written(page, [finished(tmp_path)]).splitlines()

    assert "**small**, 100 questions, 1,234 passages, wordllama" == lines[1]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[5:-1]]
    assert ["pagerank", "graph_expansion:tuned", "bm25", "bm25:tuned", "vector", "graph_expansion"] == [
        c[0].strip("`") for c in cells
    ]
    assert ["0.500 [0.500, 0.500]", "", ""] == [cells[0][1], *cells[0][3:]]
    assert cells[0][2].startswith("0.410 [0.3")
    assert (cells[1][3][:8], cells[1][4]) == ("+0.390 [", "better")  # .8 − .41
    assert (cells[2][3][:8], cells[2][4]) == ("-0.010 [", "not distinguishable")  # .4 − .41, one question
    assert (cells[5][3][:8], cells[5][4]) == ("-0.310 [", "worse")


def test_a_page_about_one_label_counts_what_it_misses(tmp_path: Path) -> None:
    page = "<!-- figures of bm25 by question -->\nold\n<!-- /figures -->\n"

    # 60 questions of which .9 are answered: 6 are missed
    assert "| small (wordllama) | bridge | 60 | 6 | 0.900 | 0.750 |" in written(page, [finished(tmp_path)])


def test_a_run_without_the_page_s_label_is_refused(tmp_path: Path) -> None:
    for kind in ("against hoprank", "of hoprank by question"):
        with pytest.raises(InputError, match="small: the run lacks hoprank"):
            written(f"<!-- figures {kind} -->\n<!-- /figures -->\n", [finished(tmp_path)])
