"""Grades, alternative gold sets, runs with ties and gold that the corpus lacks, in whole commands."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.flows.cli.conftest import Done, Hopbench, lines, write_benchmark


def ran(hopbench: Hopbench, folder: Path, out: Path, *more: object) -> Done:
    return hopbench("run", "--dataset", folder, "--out", out, "--no-prefect", "--no-ragas", *more)


def results(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return found


def with_sets(folder: Path) -> Path:
    """The tiny benchmark where q1 has a second set, of one passage, instead of judgements."""
    write_benchmark(folder)
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels").rmdir()
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    golds: list[Any] = [[["p02", "p03"], ["p01"]], ["p04", "p05"], ["p06", "p10"], ["p08", "p09"]]
    asked = [{**row, "gold": gold} for row, gold in zip(rows, golds, strict=True)]
    (folder / "queries.jsonl").write_text(lines(asked), encoding="utf-8")
    return folder


def test_the_case_of_ties_and_grades(cases_dir: Path, tmp_path: Path, hopbench: Hopbench) -> None:
    folder = cases_dir / "trec"
    done = ran(hopbench, folder, tmp_path / "out", "--strategies", "bm25", "--runs", f"sys={folder / 'run.trec'}")
    assert 0 == done.code, done.err
    assert "--runs sys: 14 ties, ordered as trec_eval orders them (by id, descending)" in done.out
    found = results(tmp_path / "out")["strategies"]["sys"]["metrics"]
    # pytrec_eval on the same files; with every grade 1, as in a binary evaluation, nDCG@10 is .380428
    assert (0.252525, 0.362695) == (found["MRR"], found["nDCG@10"])


def test_the_graded_case_is_reported(cases_dir: Path, hopbench: Hopbench) -> None:
    done = hopbench("check-data", cases_dir / "graded", "--json")
    told = json.loads(done.out)
    assert "1 of grade 3, 1 of grade 2, 2 of grade 1, 1 of grade -1" == told["content"]["judgements"]["note"]
    (graded,) = [one for one in told["findings"] if "grade" in one["what"]]
    assert (3, "q1 p1 (2)") == (graded["count"], graded["examples"][0])


def test_a_run_of_scores_in_json(bench: Path, tmp_path: Path, hopbench: Hopbench) -> None:
    scores = {"q1": {"p02": 2, "p03": 1, "p01": 1}, "q2": {"p04": 0.5, "p05": 0.5}, "q3": {}}
    (tmp_path / "run.json").write_text(json.dumps(scores, indent=1))
    done = ran(hopbench, bench, tmp_path / "out", "--strategies", "bm25", "--runs", f"mine={tmp_path / 'run.json'}")
    assert 4 == done.code  # q4 is unanswered
    assert "--runs mine: 2 ties, ordered" in done.out
    assert 0.5 == results(tmp_path / "out")["strategies"]["mine"]["metrics"]["all_gold@2"]
    compared = hopbench("compare", f"{tmp_path / 'out'}:bm25", "--runs", f"again={tmp_path / 'run.json'}")
    assert "--runs again: 2 ties, ordered" in compared.err


def test_a_threshold_is_part_of_a_run(tmp_path: Path, hopbench: Hopbench) -> None:
    folder = write_benchmark(tmp_path / "graded")
    text = (folder / "qrels" / "test.tsv").read_text().replace("p03\t1", "p03\t2.0").replace("p04\t1", "p04\t2")
    (folder / "qrels" / "test.tsv").write_text(text)
    usual, strict = tmp_path / "usual", tmp_path / "two"
    assert 0 == ran(hopbench, folder, usual, "--strategies", "bm25").code
    done = ran(hopbench, folder, strict, "--strategies", "bm25", "--min-grade", 2)
    assert 0 == done.code, done.err
    before, after = results(usual)["benchmark"], results(strict)["benchmark"]
    assert ("min_grade" not in before, 2) == (True, after["min_grade"])
    assert (4, 2) == (before["questions"], after["questions"])
    assert before["digest"] != after["digest"]
    assert 0 == hopbench("report", strict).code  # reads the same gold again
    refused = ran(hopbench, folder, strict, "--strategies", "bm25")
    assert 2 == refused.code  # another benchmark than that of the folder
    assert "--min-grade 3: no passage of graded has such a grade, the highest is 2" in (
        ran(hopbench, folder, tmp_path / "none", "--min-grade", 3).err
    )


def test_gold_that_the_corpus_lacks_is_counted_everywhere(tmp_path: Path, hopbench: Hopbench) -> None:
    folder, out = write_benchmark(tmp_path / "lacking"), tmp_path / "out"
    with (folder / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("q1\tp98\t1\nq2\tp99\t1\n")
    done = hopbench("run", "--dataset", folder, "--out", out, "--no-prefect", "--strategies", "bm25,pagerank")
    words = "gold passages that the corpus lacks: 2, of 2 questions: &#39;p98&#39; (question q1)"
    assert 0 == done.code, done.err
    assert words.replace("&#39;", "'") in " ".join(done.out.split())
    assert words in (out / "report.html").read_text(encoding="utf-8")
    metrics = results(out)["strategies"]["pagerank"]
    assert 0.5 >= metrics["ceilings"]["all_gold@20"] >= metrics["metrics"]["all_gold@20"]
    assert 0.5 >= metrics["metrics"]["reach@2"]
    finding = [
        one for one in json.loads(hopbench("check-data", folder, "--json").out)["findings"] if "gold" in one["what"]
    ]
    assert [("gold passages are not in the corpus", 2)] == [(one["what"], one["count"]) for one in finding]
    for label in ("bm25", "pagerank"):
        explained = hopbench("explain", "q1", "--run", out, "--strategy", label)
        assert 0 == explained.code, explained.err
        assert "the corpus lacks it, so that no ranking can have it" in explained.out


def unpacked(page: str) -> list[dict[str, Any]]:
    batches = re.findall(r'id="batch-\d+">(.*?)</script>', page, re.DOTALL)
    return [one for batch in batches for one in json.loads(gzip.decompress(base64.b64decode(batch)))["questions"]]


def test_the_set_that_counts_is_shown_with_what_it_lacks(tmp_path: Path, hopbench: Hopbench) -> None:
    folder, out = with_sets(tmp_path / "sets"), tmp_path / "out"
    (tmp_path / "run.json").write_text(
        json.dumps({"q1": {"p01": 1}, "q2": {"p04": 1}, "q3": {}, "q4": {"p08": 2, "p09": 1}})
    )
    mine = f"mine={tmp_path / 'run.json'}"
    assert 0 == ran(hopbench, folder, out, "--strategies", "bm25,pagerank", "--runs", mine).code
    metrics = results(out)["strategies"]["mine"]
    groups = {size: group["all_gold@5"] for size, group in metrics["by_gold"].items()}
    assert (0.5, {"1": 1.0, "2": 0.333333}) == (metrics["metrics"]["all_gold@5"], groups)
    explained = " ".join(hopbench("explain", "q1", "--run", out, "--strategy", "mine").out.split())
    assert "set 1: Tim Burton, Burbank, California set 2: Ed Wood (film)" in explained
    assert "gold set 2 of 2 counts: it is complete in the top 10" in explained
    told = json.loads(hopbench("explain", "q1", "--run", out, "--strategy", "mine", "--json").out)
    assert ([["p02", "p03"], ["p01"]], {"number": 2, "lacks": []}) == (
        told["gold_sets"],
        told["labels"]["mine"]["gold_set"],
    )
    (first,) = [one for one in unpacked((out / "report.html").read_text(encoding="utf-8")) if "sets" in one]
    assert [[0, 1], [2]] == first["sets"]
    assert "2 of 2: complete in the top 10" in [label["set"] for label in first["labels"]]
    checked = json.loads(hopbench("check-data", folder, "--json").out)
    assert 1 == checked["content"]["alternatives"]["count"]


def test_a_set_that_holds_another_is_found(tmp_path: Path, hopbench: Hopbench) -> None:
    folder = with_sets(tmp_path / "sets")
    text = (folder / "queries.jsonl").read_text().replace('["p01"]', '["p02"]')
    (folder / "queries.jsonl").write_text(text)
    findings = json.loads(hopbench("check-data", folder, "--json").out)["findings"]
    assert [["q1"]] == [one["examples"] for one in findings if "contains another" in one["what"]]


@pytest.mark.parametrize("flag", [("--min-grade", "2"), ("--strict",)])
def test_a_sweep_takes_both_flags(tmp_path: Path, hopbench: Hopbench, flag: tuple[str, ...]) -> None:
    folder = write_benchmark(tmp_path / "tiny")
    with (folder / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("q1\tp98\t1\n")
    (tmp_path / "sweep.yaml").write_text(
        f"datasets: [{folder}]\nstrategy: pagerank\ngrid: {{restart: [0.1, 0.5]}}\nragas: false\n"
    )
    done = hopbench("sweep", tmp_path / "sweep.yaml", "--out", tmp_path / "out", "--no-prefect", *flag)
    wanted = {"--min-grade": "--min-grade 2: no passage of tiny has such a grade", "--strict": "corpus lacks: 1, of 1"}
    assert (2, True) == (done.code, wanted[flag[0]] in done.err), done.err
