"""`hopbench compare`: which arguments mean which labels, and what is printed of them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.flows.cli.conftest import Hopbench, call

from hopbench.eval.compare import compare
from hopbench.eval.trials.ledger import Champion, Ledger, TrialRecord
from hopbench.flows.cli import _compare_sides as compare_sides
from hopbench.flows.cli._compare_sides import Side, Sources
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError, UnknownNameError

Runs = Callable[..., Path]
NOWHERE = Home(Path("nowhere"))


def resolve_sides(texts: list[str]) -> list[Side]:
    return compare_sides.resolve_sides(texts, Sources(NOWHERE))


def choose_baseline(texts: list[str], sides: list[Side], asked: str | None) -> str | None:
    return compare_sides.choose_baseline(texts, sides, asked, Sources(NOWHERE))


def write_run(
    folder: Path, labels: list[str], digest: str = "d" * 64, questions: int = 200, name: str = "made"
) -> Path:
    """A run's folder with made-up scores: the n-th label answers 40 + 10 n per cent of the questions."""
    folder.mkdir(parents=True)
    strategies: dict[str, Any] = {label: {"params": {}, "metrics": {}} for label in labels}
    benchmark = {"name": name, "questions": questions, "passages": 10, "digest": digest}
    content = {"schema": "hopbench.results/1", "benchmark": benchmark, "strategies": strategies}
    (folder / "results.json").write_text(json.dumps(content), encoding="utf-8")
    tables = []
    for place, label in enumerate(labels):
        values = (np.arange(questions) % 10 < 4 + place).astype(float)
        ids = [f"q{row:03}" for row in range(questions)]
        row = {"question_id": ids, "strategy": label, "all_gold@10": values, "failure": None, "recall@5": values}
        tables.append(pd.DataFrame(row))
    pd.concat(tables).to_parquet(folder / "questions.parquet")
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return lambda folder, *labels, **more: write_run(tmp_path / folder, list(labels), **more)


def test_pairs_as_csv(finished: Path, hopbench: Hopbench) -> None:
    pairs = json.loads(hopbench("compare", finished, "--baseline", f"{finished}:bm25", "--json").out)["pairs"]
    told = hopbench("compare", finished, "--baseline", f"{finished}:bm25", "--csv").out
    rows = list(csv.DictReader(io.StringIO(told)))
    assert [
        (pair["label"], str(pair["difference"]), str(pair["ci"]["low"]), str(len(pair["wins"]))) for pair in pairs
    ] == [(row["label"], row["effect"], row["ci_low"], row["wins"]) for row in rows]
    assert {"all_gold@10"} == {row["metric"] for row in rows}


def test_one_folder_means_all_its_labels(runs: Runs) -> None:
    folder = runs("a", "bm25", "pagerank:tuned")
    sides = resolve_sides([str(folder)])
    assert [(side.name, side.label) for side in sides] == [("bm25", "bm25"), ("pagerank:tuned", "pagerank:tuned")]
    assert choose_baseline([str(folder)], sides, None) is None
    assert len(sides[0].rows) == 200


@pytest.mark.parametrize("joint", [":", "::"])
def test_a_label_may_hold_colons_and_brackets(runs: Runs, joint: str) -> None:
    label = "graph_expansion:tuned[min_score=0.1,max_depth=2]"
    folder = runs("a", "bm25", label)
    texts = [f"{folder}{joint}bm25", f"{folder}{joint}{label}"]
    sides = resolve_sides(texts)
    assert [side.label for side in sides] == ["bm25", label]
    assert choose_baseline(texts, sides, None) == "bm25"


def test_a_folder_may_hold_colons(runs: Runs) -> None:
    folder = runs("night 01:30:00", "bm25", "vector")
    assert [side.label for side in resolve_sides([f"{folder}:bm25", f"{folder}:vector"])] == ["bm25", "vector"]
    assert [side.label for side in resolve_sides([str(folder)])] == ["bm25", "vector"]


def test_labels_of_several_runs_are_told_apart_by_the_folder(runs: Runs) -> None:
    first, second = runs("x/monday", "bm25"), runs("x/tuesday", "bm25")
    assert [side.name for side in resolve_sides([str(first), str(second)])] == ["monday:bm25", "tuesday:bm25"]
    third = runs("y/monday", "bm25")  # its last part is taken
    assert [side.name for side in resolve_sides([str(first), str(third)])] == [f"{first}:bm25", f"{third}:bm25"]


def test_the_same_side_twice_counts_once(runs: Runs) -> None:
    folder = runs("a", "bm25", "vector")
    assert len(resolve_sides([str(folder), f"{folder}:bm25", str(folder / ".." / "a")])) == 2
    with pytest.raises(InputError, match=r"only 'bm25' of .* name a second label"):
        resolve_sides([f"{folder}:bm25", f"{folder}:bm25"])


def test_a_baseline_is_a_name_a_label_or_an_argument(runs: Runs) -> None:
    texts = [str(runs("monday", "bm25", "vector")), str(runs("tuesday", "bm25", "pagerank"))]
    sides = resolve_sides(texts)
    assert choose_baseline(texts, sides, "tuesday:bm25") == "tuesday:bm25"
    assert choose_baseline(texts, sides, "pagerank") == "tuesday:pagerank"
    assert choose_baseline(texts, sides, f"{texts[0]}:vector") == "monday:vector"
    with pytest.raises(InputError, match="could be monday:bm25 or tuesday:bm25"):
        choose_baseline(texts, sides, "bm25")
    with pytest.raises(UnknownNameError, match="'vectr'"):
        choose_baseline(texts, sides, "vectr")


def test_the_table_shows_what_the_comparison_says(hopbench: Hopbench, runs: Runs) -> None:
    folder = runs("a", "bm25", "pagerank")  # 4 and 5 questions of 10: 20 of 200 more
    done = hopbench("compare", f"{folder}:bm25", f"{folder}:pagerank", "--list")
    assert (done.code, done.err) == (0, "")
    assert "made · 200 questions · all_gold@10" in done.out
    row = re.search(r"^pagerank +bm25 +\+0\.100 +(\S+ … \S+) +0\.0000 +\S+ +better +20 +0 +180", done.out, re.MULTILINE)
    assert row is not None
    side = {name: side.rows for side in resolve_sides([str(folder)]) for name in [side.name]}
    (pair,) = compare(side, "bm25").pairs
    assert pair.ci_family is not None
    assert row.group(1) == f"{pair.ci_family.low:+.3f} … {pair.ci_family.high:+.3f}"
    won = re.search(r"^  won 20: ((?:q\d+\s+)+)", done.out, re.MULTILINE)
    assert won is not None
    assert won.group(1).split() == [f"q{row:03}" for row in range(4, 200, 10)]
    assert "  lost 0: –" in done.out


def test_json_holds_the_whole_comparison(hopbench: Hopbench, runs: Runs) -> None:
    folder = runs("a", "bm25", "pagerank", "vector")
    done = hopbench("compare", folder, "--metric", "recall@5", "--json")
    said = json.loads(done.out)
    assert (done.code, said["metric"], said["baseline"], len(said["pairs"])) == (0, "recall@5", None, 3)
    assert said["sides"]["vector"] == {"folder": str(folder), "label": "vector", "run": str(folder)}
    assert {pair["verdict"] for pair in said["pairs"]} <= {"better", "worse"}
    based = json.loads(hopbench("compare", folder, "--baseline", "vector", "--json").out)
    assert [(pair["label"], pair["baseline"]) for pair in based["pairs"]] == [
        ("bm25", "vector"),
        ("pagerank", "vector"),
    ]


def test_by_type_reads_the_benchmark_of_a_real_run(hopbench: Hopbench, finished: Path) -> None:
    done = hopbench("compare", f"{finished}:bm25", f"{finished}:pagerank", "--by-type")
    assert (done.code, done.err) == (0, "")
    by_type = done.out.rpartition("label")[2]
    assert re.search(r"^pagerank +bm25 +bridge +3 ", by_type, re.MULTILINE)
    assert re.search(r"^pagerank +bm25 +comparison +1 ", by_type, re.MULTILINE)


def test_runs_of_different_benchmarks_are_refused(hopbench: Hopbench, runs: Runs) -> None:
    first, second = runs("a", "bm25"), runs("b", "bm25", digest="e" * 64, questions=100, name="other")
    done = hopbench("compare", first, second)
    assert (done.code, done.out) == (2, "")
    for word in (str(first), str(second), "made (200 questions, digest dddddddddddd)", "other (100 questions"):
        assert word in done.err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["{a}:pagernk"], "unknown label in {a} 'pagernk'. Did you mean 'pagerank'?"),
        (["{a}/nowhere"], "'{a}/nowhere' is neither the --out folder of a finished run"),
        (["{a}", "--metric", "all_golt@9"], "unknown metric 'all_golt@9'. Did you mean 'all_gold@9"),
        (["{a}", "--metric", "nDCG@10"], "has no value of nDCG@10"),
        (["{a}", "--baseline", "hybrid"], "unknown label for --baseline 'hybrid'"),
        (["{a}", "--by-type"], "does not say where its benchmark is: name it with --dataset"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_compared(hopbench: Hopbench, runs: Runs, arguments: list[str], word: str) -> None:
    folder = str(runs("a", "bm25", "pagerank"))
    done = hopbench("compare", *(text.format(a=folder) for text in arguments))
    assert (done.code, done.out) == (2, "")
    assert word.format(a=folder) in done.err


def test_a_benchmark_that_moved_is_asked_for(hopbench: Hopbench, runs: Runs) -> None:
    folder = runs("a", "bm25", "vector")
    settings = {
        "dataset": str(folder.parent / "gone"),
        "store": "kglite",
        "embedder": "wordllama",
        "extractor": "rules",
    }
    details = {"run": {"settings": {**settings, "triples": None, "limit": None}}}
    (folder / "details.json.gz").write_bytes(gzip.compress(json.dumps(details).encode()))
    done = hopbench("compare", folder, "--by-type")
    assert done.code == 2
    assert f"{folder.parent / 'gone'}: no such file or folder" in done.err
    assert "say with --dataset where it is now" in done.err


def test_damaged_folders_are_named(hopbench: Hopbench, runs: Runs) -> None:
    folder = runs("a", "bm25", "vector")
    (folder / "questions.parquet").write_bytes(b"no parquet")
    assert f"{folder / 'questions.parquet'} is damaged" in hopbench("compare", folder).err
    (folder / "questions.parquet").unlink()
    assert f"{folder / 'questions.parquet'} does not exist" in hopbench("compare", folder).err
    (folder / "results.json").write_text('{"schema": "hopbench.results/9"}', encoding="utf-8")
    assert "not of schema 'hopbench.results/1'" in hopbench("compare", folder).err
    (folder / "results.json").write_text("{", encoding="utf-8")
    done = hopbench("compare", folder)
    assert done.code == 2
    assert f"{folder}: a file of the run is damaged" in done.err
    shutil.rmtree(folder)
    assert hopbench("compare", folder).code == 2


def test_run_ids_labels_and_the_champion_mean_tracked_runs(hopbench: Hopbench, finished: Path, home: Path) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{home / 'mlflow.db'}")
    (experiment,) = [one for one in client.search_experiments() if one.name == "hopbench/tiny"]
    ids = {run.data.params.get("label"): run.info.run_id for run in client.search_runs([experiment.experiment_id])}
    parent = ids.pop(None)

    by_folder = json.loads(hopbench("compare", f"{finished}:bm25", f"{finished}:pagerank", "--json").out)
    for sides in ([ids["bm25"], ids["pagerank"]], ["bm25", "pagerank"], [f"{finished}:bm25", "pagerank"]):
        done = hopbench("compare", *sides, "--json")
        assert (done.code, done.err) == (0, "")
        (pair,) = json.loads(done.out)["pairs"]
        (expected,) = by_folder["pairs"]
        assert {key: pair[key] for key in ("difference", "p", "wins", "losses", "verdict")} == {
            key: expected[key] for key in ("difference", "p", "wins", "losses", "verdict")
        }
    whole = json.loads(hopbench("compare", parent, "--json").out)
    assert len(whole["pairs"]) == 4 * 3 / 2
    assert whole["sides"]["bm25"]["folder"] == f"MLflow run {parent}"

    crown(home, by_folder["benchmark"]["digest"], finished)
    done = hopbench("compare", "champion", "bm25", "--json")
    assert (done.code, done.err) == (0, "")
    said = json.loads(done.out)
    assert said["baseline"] == "champion:pagerank"
    assert [pair["label"] for pair in said["pairs"]] == [f"{parent[:8]}:bm25"]


def crown(home: Path, digest: str, finished: Path) -> None:
    """Name the run's pagerank the champion."""
    (side,) = [one for one in resolve_sides([str(finished)]) if one.label == "pagerank"]
    rows = side.rows[["all_gold@10", "failure"]]
    settings = {"strategy": "pagerank", "parameters": {}, "dataset": digest, "questions": list(rows.index)}
    with Ledger.open(home / "ledger.db") as ledger:
        ledger.put(TrialRecord("c" * 16, settings, {}, rows, 0, 1.0, 0.0, 0.0))
        ledger.set_champion(Champion(digest, "c" * 16, "pagerank", "", 0.0))


def test_what_no_run_is_tracked_for(hopbench: Hopbench, runs: Runs, tmp_path: Path) -> None:
    folder = str(runs("a", "bm25", "vector"))
    for side, word in (
        ("champion", "has no champion yet"),
        ("0" * 32, f"has no run {'0' * 32}"),
        ("dual_level", "no finished run of 'dual_level' on the benchmark with digest dddddddddddd"),
        ("nonsense", "'nonsense' is neither"),
        ("pagerank[restart=7]", "pagerank.restart = 7.0 is not allowed"),
    ):
        done = hopbench("compare", folder, side)
        assert (done.code, done.out) == (2, "")
        assert word in done.err
    done = hopbench("compare", "champion", "champion")
    assert "champion: of which benchmark?" in done.err
    done = hopbench("compare", "bm25", "vector", HOPBENCH_HOME=str(tmp_path / "new"))
    assert f"no run was tracked in {tmp_path / 'new'} yet" in done.err


def test_a_seed_below_zero_is_bad_usage(tmp_path: Path) -> None:
    done = call("compare", "a", "b", "--seed", "-1", home=tmp_path)
    assert 2 == done.code
    assert "--seed" in done.err
