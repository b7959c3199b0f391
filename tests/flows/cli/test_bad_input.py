"""Bad input to `hopbench run`: one plain message with the remedy, exit code 2, no traceback, nothing half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.flows.cli.conftest import PASSAGES, Done, call, lines, write_benchmark

Spoil = Callable[[Path], None]


def run(tmp_path: Path, dataset: object, *more: object) -> Done:
    return call("run", "--dataset", dataset, "--out", tmp_path / "out", "--no-prefect", *more, home=tmp_path / "home")


def assert_refused(tmp_path: Path, done: Done, words: Sequence[str]) -> None:
    """Exit code 2, one line on standard error with all `words`, nothing on standard output, nothing left behind."""
    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err
    (message,) = done.err.rstrip("\n").split("\n")
    assert message.startswith("hopbench: ")
    missing = [word for word in words if word not in message]
    assert not missing, message
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "home").exists()


def corpus(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]


def no_corpus(folder: Path) -> None:
    (folder / "corpus.jsonl").unlink()


def malformed_line_17(folder: Path) -> None:
    whole = lines([{"_id": f"x{number}", "title": f"T{number}", "text": "Words."} for number in range(20)])
    rows = whole.splitlines(keepends=True)
    rows[16] = '{"_id": "x16", "title": "T16", "text": \n'
    (folder / "corpus.jsonl").write_text("".join(rows), encoding="utf-8")


def unknown_gold(folder: Path) -> None:
    with (folder / "qrels" / "test.tsv").open("a", encoding="utf-8") as file:
        file.write("q1\tp98\t1\nq2\tp99\t1\n")


def empty_corpus(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text("", encoding="utf-8")


def duplicate_ids(folder: Path) -> None:
    with (folder / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write(lines([{"_id": "p03", "title": "Again", "text": "Again."}]))


def ten_megabytes(folder: Path) -> None:
    rows = corpus(folder)
    rows[4]["text"] = "word " * 2_000_000
    (folder / "corpus.jsonl").write_text(lines(rows), encoding="utf-8")


def not_utf_8(folder: Path) -> None:
    content = (folder / "corpus.jsonl").read_bytes().replace(b"Steamboats", b"Stea\xffboats")
    (folder / "corpus.jsonl").write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (no_corpus, ["tiny", "corpus"]),
        (malformed_line_17, ["corpus.jsonl, line 17", "JSON"]),
        (empty_corpus, ["corpus.jsonl", "empty", "at least one passage"]),
        (duplicate_ids, [f"corpus.jsonl, line {len(PASSAGES) + 1}", "'p03'", "line 3", "remove one"]),
        (ten_megabytes, ["corpus.jsonl, line 5", "MiB", "split"]),
        (not_utf_8, ["corpus.jsonl, line 9", "UTF-8"]),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_benchmark_that_cannot_be_used(tmp_path: Path, spoil: Spoil, words: list[str]) -> None:
    folder = write_benchmark(tmp_path / "tiny")
    spoil(folder)
    assert_refused(tmp_path, run(tmp_path, folder), words)


def test_gold_that_the_corpus_lacks_is_refused_on_request(tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "tiny")
    unknown_gold(folder)
    words = ["gold passages that the corpus lacks: 2, of 2 questions: 'p98' (question q1), 'p99' (question q2)"]
    assert_refused(tmp_path, run(tmp_path, folder, "--strict"), [*words, "add the passages or remove the lines"])


def test_a_missing_file(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "hotpot.json"
    assert_refused(tmp_path, run(tmp_path, missing), [str(missing), "no such file or folder", "check the path"])


def test_an_unknown_benchmark_is_offered_the_nearest(tmp_path: Path) -> None:
    assert_refused(tmp_path, run(tmp_path, "hopwold"), ["unknown benchmark 'hopwold'", "Did you mean 'hopworld'?"])


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--strategies", "pagernk"], ["unknown strategy 'pagernk'", "Did you mean 'pagerank'?", "Known: "]),
        (["--strategies", ","], ["--strategies ','", "selects nothing", "known: "]),
        (["--strategies", "vector:tuned"], ["'vector'", "no preset 'tuned'", "documented"]),
        (["--set", "pagerank.restart=1.5"], ["pagerank.restart = 1.5", "0.01..0.99"]),
        (["--set", "pagerank.restrt=.5"], ["unknown parameter of pagerank 'restrt'", "'restart'"]),
        (["--set", "pagerank.restart"], ["--set 'pagerank.restart'", "strategy.field=value"]),
        (["--strategies", "bm25", "--set", "pagerank.restart=.5"], ["--set names pagerank", "does not select"]),
        (["--strategies", "graph_expansion[max_depth=many]"], ["graph_expansion.max_depth = 'many'", "1..3"]),
        (["--embedder", "wordlama"], ["unknown embedder 'wordlama'", "'wordllama'"]),
        (["--store", "kuzu"], ["unknown store 'kuzu'", "kglite"]),
        (["--extractor", "rulez"], ["extractor 'rulez'", "rules"]),
        (["--neo4j-vector-index"], ["--neo4j-vector-index is for --store neo4j", "kglite"]),
        (["--mapping", "names.yaml"], ["--mapping is for --store neo4j", "kglite"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("--") else "",
)
def test_flags_that_cannot_be_used(tmp_path: Path, flags: list[str], words: list[str]) -> None:
    folder = write_benchmark(tmp_path / "tiny")
    assert_refused(tmp_path, run(tmp_path, folder, *flags), words)


@pytest.mark.parametrize(
    "flags", [["--limit", "0"], ["--limit", "few"], ["--seed", "-1"], ["--nonsense"]], ids=" ".join
)
def test_usage_errors_are_bad_input_too(tmp_path: Path, flags: list[str]) -> None:
    done = run(tmp_path, write_benchmark(tmp_path / "tiny"), *flags)
    assert done.code == 2
    assert flags[0] in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder, file = write_benchmark(tmp_path / "tiny"), tmp_path / "file"
    file.write_text("I am no folder")
    flags = ["--dataset", folder, "--out", file / "out", "--no-prefect"]
    done = call("run", *flags, home=tmp_path / "home")
    assert done.code == 2
    (message,) = done.err.rstrip("\n").split("\n")
    assert "cannot write" in message
    assert str(file / "out") in message
    assert "a file stands where a folder belongs: choose another" in message
    assert file.read_text() == "I am no folder"
    # The home may have been prepared by then; no run has begun in it.
    left = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert left == []


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    folder, file = write_benchmark(tmp_path / "tiny"), tmp_path / "file"
    file.write_text("I am no folder")
    done = call("run", "--dataset", folder, "--out", tmp_path / "out", "--no-prefect", home=file / "home")
    assert done.code == 2
    assert all(word in done.err for word in ("HOPBENCH_HOME", str(file / "home"), "another folder"))
    assert not (tmp_path / "out").exists()


def test_a_config_file_that_cannot_be_used(tmp_path: Path) -> None:
    config = tmp_path / "night.yaml"
    for content, word in (("datset: hopworld", "'datset'"), ("- 1", "mapping"), ("a: [", "YAML")):
        config.write_text(content)
        done = call("run", "--config", config, "--out", tmp_path / "out", home=tmp_path / "home")
        assert_refused(tmp_path, done, [str(config), word])


def test_the_installed_command_says_so_too(tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "tiny")
    malformed_line_17(folder)
    command = Path(sys.executable).with_name("hopbench")
    done = subprocess.run(
        [command, "run", "--dataset", "tiny", "--out", "out", "--no-prefect"],
        env={**os.environ, "HOPBENCH_HOME": "home"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert_refused(tmp_path, Done(done.returncode, done.stdout, done.stderr), ["corpus.jsonl, line 17"])


def test_one_text_is_a_list_of_one_for_a_flag_that_may_be_repeated(tmp_path: Path) -> None:
    config = tmp_path / "night.yaml"
    config.write_text("target: pagerank[restart=0.3] bogus@5>=.1\nset: pagerank.restart=0.3\nstrategies: pagerank\n")
    bench = write_benchmark(tmp_path / "tiny")
    done = call("run", "--dataset", bench, "--config", config, "--out", tmp_path / "out", "--no-prefect", home=tmp_path)
    assert_refused(tmp_path, done, ["unknown metric of a target 'bogus@5'"])
