"""`hopbench strategies`, `benchmarks` and `report`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from tests.flows.cli.conftest import Hopbench

from hopbench.eval.benchmarks import shipped_benchmarks
from hopbench.retrieval.strategies.registry import make, preset, registry


def test_every_strategy_is_listed_with_every_parameter(hopbench: Hopbench) -> None:
    done = hopbench("strategies")
    assert (done.code, done.err) == (0, "")
    sections = re.split(r"^(?=\S+  \S)", done.out, flags=re.MULTILINE)
    by_name = {section.split("  ")[0]: section for section in sections}
    for name in registry().names():
        for parameter in registry().get(name).parameters():
            assert re.search(rf"^  {parameter}\b", by_name[name], re.MULTILINE), (name, parameter)


def test_one_strategy_with_bounds_defaults_and_tuned_values(hopbench: Hopbench) -> None:
    done = hopbench("strategies", "pagerank")
    assert "graph_expansion" not in done.out
    assert re.search(r"^  restart +0\.15 .*0\.01\.\.0\.99 +probability", done.out, re.MULTILINE)
    tuned = preset("pagerank")
    assert tuned is not None
    different = {n: v for n, v in tuned.parameters.items() if v != registry().get("pagerank").parameters()[n].default}
    assert different
    for name, value in different.items():
        assert re.search(rf"^  {name} +\S+ +{re.escape(f'{value:g}')} ", done.out, re.MULTILINE), name
    assert str(tuned.provenance["objective"])[:30] in done.out


def test_the_json_of_a_strategy_makes_it_again(hopbench: Hopbench) -> None:
    said = json.loads(hopbench("strategies", "--json").out)
    assert list(said) == registry().names()
    for name, entry in said.items():
        chosen = "tuned" if entry["plain_label"] == "tuned" else "default"
        parameters = {field: spec[chosen] for field, spec in entry["parameters"].items()}
        assert registry().get(name)(**parameters) == make(name)
    assert said["graph_expansion"]["parameters"]["max_depth"]["bounds"] == "1..3"
    assert said["graph_expansion"]["parameters"]["max_depth"]["aliases"] == ["max_expansion_depth"]


def test_the_documents_names_are_listed(hopbench: Hopbench) -> None:
    done = hopbench("strategies", "entity_expansion")
    assert "(also graph_expansion_hops)" in " ".join(done.out.split())


def test_an_unknown_strategy(hopbench: Hopbench) -> None:
    done = hopbench("strategies", "pagerang")
    assert (done.code, done.out) == (2, "")
    assert "Did you mean 'pagerank'?" in done.err


def test_benchmarks_are_listed_with_role_and_size(hopbench: Hopbench) -> None:
    done = hopbench("benchmarks")
    assert (done.code, done.err) == (0, "")
    for shipped in shipped_benchmarks():
        row = rf"^{shipped.name} +{shipped.role} +{shipped.passages:,} +{shipped.questions:,} "
        assert re.search(row, done.out, re.MULTILINE)
    said = json.loads(hopbench("benchmarks", "--json").out)
    assert {name: entry["role"] for name, entry in said.items()} == {b.name: b.role for b in shipped_benchmarks()}


def test_a_report_is_made_again_as_it_was(hopbench: Hopbench, finished: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(finished, copied)
    (copied / "report.html").unlink()
    done = hopbench("report", copied)
    assert (done.code, done.err) == (0, "")
    assert str(copied / "report.html") in done.out
    assert (copied / "report.html").read_bytes() == (finished / "report.html").read_bytes()


def test_a_report_of_a_benchmark_that_moved(hopbench: Hopbench, bench: Path, finished: Path, tmp_path: Path) -> None:
    copied, moved = tmp_path / "copied", tmp_path / "tiny"
    shutil.copytree(finished, copied)
    shutil.copytree(bench, moved)
    assert hopbench("report", copied, "--dataset", moved).code == 0
    with (moved / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"_id": "new", "title": "New", "text": "New."}\n')
    done = hopbench("report", copied, "--dataset", moved)
    assert (done.code, done.out) == (2, "")
    assert "digest" in done.err
    assert "name the benchmark that was run with --dataset" in done.err


def test_a_report_of_no_run(hopbench: Hopbench, tmp_path: Path) -> None:
    done = hopbench("report", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "results.json does not exist: name the --out folder of a finished run" in done.err
    assert list(tmp_path.iterdir()) == []
