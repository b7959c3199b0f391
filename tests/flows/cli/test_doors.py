"""The same door for the same thing: what a command refuses, what it takes, and what it says it took."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.flows.cli.conftest import Done, Hopbench, call, write_benchmark

from hopbench.flows.cli.main import app

DEAD = "http://127.0.0.1:9/v1"
GRAPH_FLAGS = {
    "--dataset",
    "--embedder",
    "--extractor",
    "--triples",
    "--similar",
    "--similar-top-k",
    "--similar-floor",
    "--max-tokens",
    "--limit",
    "--llm",
    "--gleaning",
    "--reasoning-effort",
    "--completion-tokens",
}
STORE_FLAGS = {"--store", "--mapping", "--neo4j-vector-index"}


def command(*names: str) -> object:
    from typer.main import get_command

    found = get_command(app)
    for name in names:
        found = found.commands[name]  # type: ignore[attr-defined]
    return found


def flags(*names: str) -> set[str]:
    return {name for one in command(*names).params for name in one.opts if name.startswith("--")}  # type: ignore[attr-defined]


def without_gold(folder: Path) -> Path:
    """Other questions over the same passages, with neither gold nor answers."""
    write_benchmark(folder)
    shutil.rmtree(folder / "qrels")
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": one["_id"], "text": one["text"]}) + "\n" for one in asked)
    )
    return folder


@pytest.fixture(scope="module")
def replaced(finished: Path, home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done, Done]:
    """A folder that held the finished run: a run without gold is refused there, and replaces it when forced."""
    base = tmp_path_factory.mktemp("replaced")
    out, goldless = base / "out", without_gold(base / "goldless")
    shutil.copytree(finished, out)
    given = ("run", "--dataset", goldless, "--strategies", "vector,bm25", "--out", out, "--no-prefect")
    refused = call(*given, home=home)
    assert (out / "results.json").read_bytes() == (finished / "results.json").read_bytes()
    (out / "judgements.parquet").write_bytes(b"of the run before")
    return out, refused, call(*given, "--force", home=home)


def test_a_run_keeps_another_data_sets_finished_run_unless_forced(replaced: tuple[Path, Done, Done]) -> None:
    out, refused, forced = replaced
    assert (2, "") == (refused.code, refused.out)
    assert f"{out} holds a finished run on tiny (4 questions, digest" in refused.err
    assert "and this one is on goldless (4 questions, digest" in refused.err
    assert "Name another --out, or replace it with --force" in refused.err
    assert 0 == forced.code, forced.err
    assert "goldless" == json.loads((out / "results.json").read_text())["benchmark"]["name"]
    assert not (out / "judgements.parquet").exists()  # of a run that is gone


def test_compare_takes_no_run_without_gold_and_says_what_to_add(
    hopbench: Hopbench, replaced: tuple[Path, Done, Done]
) -> None:
    for metric in ((), ("--metric", "recall@5")):
        done = hopbench("compare", replaced[0], *metric)
        assert (2, "") == (done.code, done.out)
        assert "gold" in done.err
        assert "qrels/test.tsv" in done.err


def test_a_label_means_its_newest_run_that_can_be_compared_and_compare_says_which(
    hopbench: Hopbench, replaced: tuple[Path, Done, Done], finished: Path
) -> None:
    assert replaced[2].code == 0  # the newest runs of both labels have no gold
    done = hopbench("compare", "vector", "bm25")
    assert 0 == done.code, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("tiny · 4 questions")
    assert lines[1].startswith("MLflow run ")
    assert "(hopbench run, 20" in lines[1]
    said = hopbench("compare", finished, "vector")
    assert f"{finished} (hopbench run, 20" in said.out


def test_a_folder_of_a_sweep_or_of_somebody_else_is_kept(hopbench: Hopbench, bench: Path, tmp_path: Path) -> None:
    for name, content, word in (
        ("sweep.json", "{}", "holds a sweep"),
        ("results.json", '{"mine": 1}', "is not of a HopBench run"),
        ("results.json", "\x00", "is not of a HopBench run"),
    ):
        folder = tmp_path / f"out-{word[:8]}"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(content)
        done = hopbench("run", "--dataset", bench, "--strategies", "bm25", "--out", folder, "--no-prefect")
        assert (2, True) == (done.code, word in done.err), done.err
        assert content == (folder / name).read_text()


def test_a_sweep_keeps_the_report_of_a_finished_run(hopbench: Hopbench, bench: Path, finished: Path) -> None:
    sweep = bench.parent / "sweep.yaml"
    sweep.write_text("datasets: [tiny]\nstrategy: pagerank\ngrid: {restart: [0.1]}\n")
    done = hopbench("sweep", sweep, "--out", finished, "--no-prefect")
    assert (2, True) == (done.code, f"{finished} holds a finished run" in done.err), done.err


def test_every_command_that_names_a_graph_takes_the_same_flags() -> None:
    assert GRAPH_FLAGS | STORE_FLAGS <= flags("run")
    for names in (("nightly",), ("graph", "build"), ("graph", "info"), ("explain",)):
        assert GRAPH_FLAGS | STORE_FLAGS <= flags(*names), names
    assert GRAPH_FLAGS | {"--from", "--to"} <= flags("graph", "copy")


def test_graphs_that_are_built_otherwise_are_listed_each_and_found_by_their_flags(bench: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    given = ("--dataset", bench, "--similar-top-k", "3", "--similar-floor", "0.1")
    assert "no graph is kept in" in call("graph", "list", home=home).out
    for flags_of_one in (given, ("--dataset", bench)):
        done = call("graph", "build", *flags_of_one, "--no-prefect", home=home)
        assert 0 == done.code, done.err
    assert "SIMILAR_TO" in call("graph", "info", *given, home=home).out
    listed = json.loads(call("graph", "list", "--json", home=home).out)
    assert 2 == len(listed) == len({one["build_key"] for one in listed}) == len({one["fingerprint"] for one in listed})
    for one in listed:
        assert ("tiny", "kglite", "rules", 12) == (
            one["dataset"],
            one["store"],
            one["extractor"],
            one["nodes"]["Chunk"],
        )
        assert one["embedder"].startswith("wordllama")
        assert one["size"] > 1000
        assert one["built"].startswith("20")
    shown = call("graph", "list", home=home).out
    assert all(one["build_key"][:12] in shown and one["fingerprint"][:12] in shown for one in listed)
    assert "12 Chunk" in shown
    (home / "graphs" / f"{listed[0]['namespace']}.kgl").write_bytes(b"")  # one that is damaged hides no other
    damaged = call("graph", "list", home=home)
    assert 0 == damaged.code
    assert listed[1]["build_key"][:12] in damaged.out
    assert f"{listed[0]['namespace']}: " in damaged.out
    missing = call("explain", "q1", "--strategy", "bm25", *given, "--max-tokens", "900", home=home)
    flags_to_build = "--similar-top-k 3 --similar-floor 0.1 --max-tokens 900"
    assert f"hopbench graph build --dataset {bench} {flags_to_build}" in missing.err
    assert (
        f"hopbench graph build --dataset {bench} --max-tokens 900"
        in call("graph", "info", "--dataset", bench, "--max-tokens", "900", home=home).err
    )


@pytest.mark.parametrize(
    "given",
    [
        ("run", "--strategies", "bm25", "--out", "out", "--no-prefect", "--llm", f"m@{DEAD}"),
        ("run", "--strategies", "bm25", "--out", "out", "--no-prefect", "--judge", f"m@{DEAD}"),
        ("graph", "build", "--extractor", "llm", "--no-prefect", "--llm", f"m@{DEAD}"),
        ("judge-check", "--out", "out", "--judge", f"m@{DEAD}"),
    ],
)
def test_a_models_address_that_refuses_connections_is_said_before_any_work(
    given: tuple[str, ...], bench: Path, tmp_path: Path
) -> None:
    done = call(*given, "--dataset", bench, home=tmp_path / "home")
    role = "judge" if "--judge" in given else "llm"
    assert (4, "") == (done.code, done.out)
    assert f"--{role} m@{DEAD}: nothing answers at that address (Connection refused)" in done.err
    assert "Start the model's server or correct the address" in done.err
    assert not (tmp_path / "home" / "graphs").exists()


def test_an_embedders_address_that_refuses_connections_is_said_at_once(bench: Path, tmp_path: Path) -> None:
    given = ("graph", "build", "--dataset", bench, "--embedder", "openai:m", "--no-prefect")
    done = call(*given, home=tmp_path, environment={"OPENAI_BASE_URL": DEAD, "OPENAI_API_KEY": "k"})
    assert 2 == done.code
    assert f"does not answer (Connection refused): start its server, or correct OPENAI_BASE_URL ({DEAD})" in done.err
