"""Inputs from the field whose right values are known, and data sets in the layouts of others, by the command line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pytest
from tests.flows.cli.conftest import Hopbench, write_benchmark

RUN = ("--strategies", "bm25,pagerank", "--no-prefect", "--no-ragas")


def checked(hopbench: Hopbench, dataset: Path) -> dict[str, Any]:
    done = hopbench("check-data", dataset, "--json")
    assert 0 == done.code, done.err
    told: dict[str, Any] = json.loads(done.out)
    return told


def passages(folder: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    return {row["_id"]: row for row in rows}


def gold(folder: Path) -> list[str]:
    rows = [line.split("\t") for line in (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    return [row[1] for row in rows]


def answers(folder: Path) -> list[list[str]]:
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    return [[row["metadata"]["answer"], *row["metadata"]["answer_aliases"]] for row in rows]


def test_a_list_in_an_answer_cell_is_answer_and_alias(cases_dir: Path, tmp_path: Path, hopbench: Hopbench) -> None:
    assert 0 == hopbench("check-data", cases_dir / "csv", "--out", tmp_path / "out").code
    assert [["Norhaven", "North Haven"], ["Sundmouth"]] == answers(tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dup", "Mercury is a metal. It was sold by Norhaven. It melts early."),
        ("oob", "The Ardmore Yard lies in Norhaven and opened in 1888."),
        ("nfd", "A singer."),
        ("amp", "A yard."),
        ("int", "The Ardmore Yard lies in Norhaven and opened in 1888."),
    ],
)
def test_hotpotqas_gold_is_where_it_belongs(
    cases_dir: Path, tmp_path: Path, hopbench: Hopbench, name: str, expected: str
) -> None:
    assert 0 == hopbench("check-data", cases_dir / "hotpotqa" / f"hp-{name}.json", "--out", tmp_path / "out").code
    made = passages(tmp_path / "out")
    assert expected in {made[one]["text"] for one in gold(tmp_path / "out")}
    assert 2 == len(gold(tmp_path / "out"))
    assert [["1931" if name == "int" else "Norhaven"]] == answers(tmp_path / "out")


def test_a_fact_beyond_its_paragraph_is_a_finding_and_a_warning(
    cases_dir: Path, tmp_path: Path, hopbench: Hopbench
) -> None:
    file = cases_dir / "hotpotqa" / "hp-oob.json"
    what = "supporting facts name a sentence beyond their paragraph"
    assert {what: 1}.items() <= {one["what"]: one["count"] for one in checked(hopbench, file)["findings"]}.items()
    done = hopbench("run", "--dataset", file, *RUN, "--out", tmp_path / "out")
    assert (0, True) == (done.code, f"warning: hp-oob: {what}: 1" in " ".join(done.out.split()))


def test_a_page_beside_gaps_is_a_whole_number_where_it_is_shown(tmp_path: Path, hopbench: Hopbench) -> None:
    rows = {"_id": ["a", "b"], "title": ["Kestrel", "Yard"], "text": ["The Kestrel sails.", "The yard lies."]}
    pd.DataFrame({**rows, "page_number": [2, None], "document_name": "log.pdf"}).to_csv(tmp_path / "corpus.csv")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "What is the Kestrel?", "gold": "a"}\n')
    assert 0 == hopbench("graph", "build", "--dataset", tmp_path, "--no-prefect").code
    done = hopbench("explain", "q1", "--dataset", tmp_path, "--strategy", "bm25")
    assert (0, True, False) == (done.code, "page 2" in done.out, "2.0" in done.out)


def test_empty_passages_are_counted_and_every_label_ranks(tmp_path: Path, hopbench: Hopbench) -> None:
    folder = write_benchmark(tmp_path / "made")
    with (folder / "corpus.jsonl").open("a") as corpus:
        corpus.write('{"_id": "e1", "title": "", "text": ""}\n{"_id": "e2", "text": null}\n')
    with (folder / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("q1\te1\t1\n")
    what = "passages have neither title nor text"
    findings = {one["what"]: one for one in checked(hopbench, folder)["findings"]}
    assert (2, ["e1", "e2"]) == (findings[what]["count"], findings[what]["examples"])
    assert not [other for other in findings if "no text" in other or "repeat" in other]
    flags = ("--strategies", "all", "--no-prefect", "--no-ragas", "--out", tmp_path / "out")
    done = hopbench("run", "--dataset", folder, *flags)
    assert (0, True) == (done.code, f"warning: made: {what}: 2 (such as e1, e2)" in " ".join(done.out.split()))
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert 14 == results["benchmark"]["passages"]
    assert {0} == {label["failures"] for label in results["strategies"].values()}


def hub_folder(folder: Path) -> None:
    made = write_benchmark(folder / "made")
    for name in ("corpus", "queries"):
        rows = pd.read_json(made / f"{name}.jsonl", lines=True)
        (folder / name).mkdir()
        rows[["_id", "text"]].to_parquet(folder / name / "test-00000-of-00001.parquet")
    (folder / "qrels").mkdir()
    pd.read_csv(made / "qrels" / "test.tsv", sep="\t").to_parquet(folder / "qrels" / "test-00000-of-00001.parquet")


def saved_folder(folder: Path) -> None:
    made = write_benchmark(folder / "made")
    parts = {
        name: datasets.Dataset.from_pandas(pd.read_json(made / f"{name}.jsonl", lines=True)[["_id", "text"]])
        for name in ("corpus", "queries")
    }
    parts["qrels"] = datasets.Dataset.from_pandas(pd.read_csv(made / "qrels" / "test.tsv", sep="\t"))
    datasets.DatasetDict(parts).save_to_disk(str(folder))


def packed_folder(folder: Path) -> None:
    made = write_benchmark(folder / "made")
    (made / "qrels").rename(folder / "qrels")
    for name in ("corpus", "queries"):
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress((made / f"{name}.jsonl").read_bytes()))


@pytest.mark.parametrize("write", [hub_folder, saved_folder, packed_folder])
def test_layouts_of_others_run(tmp_path: Path, hopbench: Hopbench, write: Any) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    write(folder)
    assert [4, 12] == [checked(hopbench, folder)["content"][name]["count"] for name in ("with gold", "passages")]
    done = hopbench("run", "--dataset", folder, "--strategies", "bm25", *RUN[2:], "--out", tmp_path / "out")
    assert 0 == done.code
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (12, 4) == (results["benchmark"]["passages"], results["benchmark"]["questions"])


@pytest.mark.parametrize("files", [{}, {"train.txt.bak": "x"}, {"a.json": "[]", "b.xml": "x"}, {"README.md": ""}])
def test_a_refused_folder_says_what_it_holds_and_what_is_wanted(
    tmp_path: Path, hopbench: Hopbench, files: dict[str, str]
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    for command in (("check-data", tmp_path), ("graph", "build", "--dataset", tmp_path, "--no-prefect")):
        done = hopbench(*command)
        told = " ".join((done.out + done.err).split())
        assert 2 == done.code
        assert f"the folder holds {', '.join(sorted(files)) or 'nothing'}" in told
        for layout in (
            "corpus, queries and qrels/test.tsv",
            "MTEB",
            "save_to_disk",
            "HippoRAG",
            "GFM-RAG",
            "documents",
        ):
            assert layout in told
