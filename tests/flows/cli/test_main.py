"""The entry point itself: help, version, exit codes; and the words that `explain` prints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
from rich.console import Console
from tests.flows.cli.conftest import call
from tests.support.places import ROOT

from hopbench.eval.explain import Answer, Change, Examiner, Fate, HelpfulChange, RankedPassage
from hopbench.eval.explain.answers import note_words
from hopbench.eval.metrics import PRIMARY
from hopbench.flows.cli.run import _table
from hopbench.flows.explain.words import outcome_words, path_words
from hopbench.retrieval.index import Batch
from hopbench.retrieval.support.errors import IncompleteError, InputError, RegressionError
from hopbench.retrieval.types import Hit, Step

COMMANDS = ("run", "nightly", "serve", "graph", "explain", "compare", "report", "strategies", "benchmarks", "doctor")


def test_every_command_has_help(tmp_path: Path) -> None:
    done = call("--help", home=tmp_path)
    assert done.code == 0
    for command in COMMANDS:
        assert f" {command} " in done.out
        assert call(command, "--help", home=tmp_path).code == 0
    assert list(tmp_path.iterdir()) == []


HOPBENCH = (sys.executable, "-m", "hopbench.flows.cli.main")
NO_READER = 141  # 128 and SIGPIPE, as a shell reports it


@pytest.mark.parametrize("arguments", [("strategies",), ("metrics", "--json"), ("--help",), ("--version",)])
def test_a_reader_that_leaves_is_no_defect(tmp_path: Path, arguments: Sequence[str]) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with open(writes, "wb") as pipe:
        done = subprocess.run(
            [*HOPBENCH, *arguments],
            stdout=pipe,
            stderr=subprocess.PIPE,
            env={**os.environ, "HOPBENCH_HOME": str(tmp_path)},
            cwd=ROOT,
            check=False,
        )
    assert (NO_READER, b"") == (done.returncode, done.stderr)


@pytest.mark.parametrize("arguments", [("strategies",), ("--version",)])
def test_a_full_standard_output_is_named(tmp_path: Path, arguments: Sequence[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*HOPBENCH, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOPBENCH_HOME": str(tmp_path)},
            cwd=ROOT,
            check=False,
        )
    reason = "standard output cannot be written (No space left on device): send it elsewhere; files are not affected"
    assert (4, f"hopbench: {reason}\n") == (done.returncode, done.stderr)


def test_the_version(tmp_path: Path) -> None:
    assert call("--version", home=tmp_path).out == f"hopbench {version('hopbench')}\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("a [bracket] stays"), 2),
        (RegressionError("worse [x]"), 3),
        (IncompleteError("again [x]"), 4),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_become_exit_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("hopbench.eval.benchmarks.shipped_benchmarks", fail)
    done = call("benchmarks", home=tmp_path)
    message = str(error) or "interrupted; the same command goes on from what is kept"
    assert (done.code, done.out, done.err) == (code, "", f"hopbench: {message}\n")


def test_a_defect_keeps_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopbench.eval.benchmarks.shipped_benchmarks", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        call("benchmarks", home=tmp_path)


def name(node: str) -> str:
    return {"c1": "[One]", "c2": "[Two]", "e": "Ada"}.get(node, node)


def test_a_path_names_each_node_once_and_begins_anew_where_it_breaks() -> None:
    there = Step("MENTIONED_IN", "c1", "e", 1.0, 1.0), Step("MENTIONED_IN", "e", "c2", 0.71234, 0.7)
    assert path_words(there, name) == "[One] ─MENTIONED_IN 1→ Ada ─MENTIONED_IN 0.712→ [Two]"
    apart = *there, Step("SIMILAR_TO", "c1", "c2", 0.5, 0.5)
    assert path_words(apart, name).endswith("→ [Two]; [One] ─SIMILAR_TO 0.5→ [Two]")
    assert path_words((), name) == ""


def test_notes_are_named_and_cut() -> None:
    assert note_words(["e", "c1"], name) == "Ada, [One]"
    assert note_words([], name) == "none"
    assert note_words("", name) == "none"
    assert note_words({"c1": 3, "c2": 0.123456}, name) == "[One]: 3, [Two]: 0.1235"
    assert note_words([("e", 0.5)], name) == "Ada → 0.5"
    assert note_words([{"nodes": ["c1", "e"], "ended": "dead end"}], name) == "(nodes [One] → Ada; ended dead end)"
    assert note_words([{"tags": [["a", "b"], [], ["c"]]}], name) == "(tags {a, b} → {} → {c})"
    assert note_words(list(range(13)), name) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 3 more"


def test_a_pruned_fate_tells_the_limit_the_landing_and_the_cost() -> None:
    place = RankedPassage("c2", 7, Hit("c2", 0.5, "graph", {}, (Step("SIMILAR_TO", "c1", "c2", 0.5, 0.5),)))
    seed = RankedPassage("c2", 31, Hit("c2", 0.5, "seed"))
    helped = HelpfulChange(Change("min_similarity", 0.7, 0.0), place), HelpfulChange(Change("k", 1, 9), seed, lost=3)
    assert outcome_words(Fate("c2", "pruned", initial_rank=40, changes=helped), name, name) == [
        "pruned by min_similarity (rank 40 in the initial ranking): min_similarity 0.7 → 0 ranks it 7",
        "then it comes by: [One] ─SIMILAR_TO 0.5→ [Two]",
        "so would: k 1 → 9 ranks it 31, as a seed, in place of 3 others",
    ]


def test_entities_with_a_score_are_entities_to_start_from() -> None:
    noted = Answer("x", None, notes={"entities": [("e:ada", 1.0), "e:bo"]})  # type: ignore[arg-type]
    assert Examiner(Batch(None, []), noted)._entities == ["e:ada", "e:bo"]  # type: ignore[arg-type]


def test_a_label_with_changes_stands_whole_in_the_table_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    costs = {"seconds": 0.0, "coverage": 1.0, "latency_ms_p50": None}
    entry = {"metrics": {}, "by_type": {}, "kind": "documented", "in_sample": None, **costs}
    labels = ("pagerank", "pagerank[restart=0.3,steps=4]", f"pagerank[{'restart=0.3,' * 8}steps=4]")
    Console(width=160).print(_table(dict.fromkeys(labels, entry), {}, PRIMARY))
    shown = capsys.readouterr().out
    assert labels[1] in shown
    assert labels[2] in "".join(line.split()[0] for line in shown.splitlines() if line.strip())
