"""Trials of a run that has not ended come back equal to the bit, and reading them runs nobody's code."""

from __future__ import annotations

import ast
import math
import os
import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.places import ROOT

from hopbench.eval.trials.trial import TrialOutcome, merged
from hopbench.eval.trials.unfinished import Unfinished
from hopbench.eval.types import PassageRanking
from hopbench.retrieval.types import Counters, Hit, Step

# What reads objects from bytes by running what the bytes say.
UNSAFE = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "jsonpickle"}


def outcome() -> TrialOutcome:
    """One with everything that JSON itself could not bring back."""
    ranking = PassageRanking("q1", ("p", "\ud800"), (0.1 + 0.2, -0.0), ("p",), "a\x00b", ("p",), None, ("a", "b"))
    hit = Hit("p", 1 / 3, "graph", {"vector": 5e-324}, (Step("RELATED_TO", "a", "b", 0.1, math.inf),))
    notes = {
        "entities": (("a", 0.5), ("b", 0.25)),
        "set": {"x"},
        "frozen": frozenset({1}),
        "single": np.float32(0.1),
        "count": np.int64(7),
        "by": {(1, "x"): [None, True]},
        "counter": Counter(a=2),
        "mapping": {"tuple": [1]},
    }
    once = Counters(llm_calls=2, stage_seconds=Counter({"read": 0.1}))
    counters = Counters(3, 4, 5, 6, 7, Counter(dead=1), Counter({"walk": 0.3}), Counter(paths=9), {"communities": once})
    return TrialOutcome(
        "pagerank[restart=0.3]",
        "pagerank",
        {"restart": 0.3, "kinds": ("a",)},
        {"q1": ranking, "q2": PassageRanking("q2", failure="ValueError: no")},
        {"q1": [hit], "q2": []},
        {"q1": notes, "q2": {}},
        counters,
        1.1,
        0.2,
        {"q1": 0.1},
    )


def test_an_outcome_comes_back_equal_to_the_bit(tmp_path: Path) -> None:
    kept, whole = Unfinished(tmp_path / "kept"), outcome()
    kept.put("one", whole)
    kept.put("part", replace(whole, shared_seconds=0.7))
    found = kept.get("one")
    assert found is not None
    assert (whole, replace(whole, shared_seconds=0.7)) == (found, kept.get("part"))
    assert repr(whole) == repr(found)  # -0.0, types of numbers, the order of keys
    assert kept.get("none") is None


def test_what_units_did_once_is_added_up() -> None:
    parts = [replace(outcome(), once_seconds=seconds) for seconds in (0.5, 0.25)]

    assert 0.75 == merged(parts).once_seconds


class Intruder:
    """Runs a command when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.file}",)


def test_no_pickle_is_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept, harm = Unfinished(tmp_path / "kept"), tmp_path / "harm"
    kept.folder.mkdir()
    (kept.folder / "one.trial").write_bytes(pickle.dumps(Intruder(harm)))
    assert (None, None, False) == (kept.get("one"), kept.get("two"), harm.exists())
    (damaged,) = capsys.readouterr().err.splitlines()
    assert "one.trial is damaged or of another version: that trial is run again" in damaged


@pytest.mark.parametrize("harm", ["emptied", "cut", "flipped", "a folder", "deep"])
def test_what_does_not_read_is_told_and_done_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    kept = Unfinished(tmp_path)
    kept.put("one", outcome())
    file = tmp_path / "one.trial"
    content = file.read_bytes()
    file.unlink()
    match harm:
        case "a folder":
            file.mkdir()
        case "flipped":
            file.write_bytes(content.replace(b"0.3", b"0.2"))
        case "deep":
            file.write_bytes(content[:21] + b"[" * 100_000)
        case _:
            file.write_bytes(content[: 0 if harm == "emptied" else len(content) // 2])
    assert kept.get("one") is None
    (said,) = capsys.readouterr().err.splitlines()
    assert str(file) in said
    assert "run again" in said


def test_a_note_that_cannot_be_kept_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = outcome()
    whole.notes["q1"] = {"anything": object()}
    Unfinished(tmp_path).put("one", whole)
    assert Unfinished(tmp_path).get("one") is None
    assert "is run again if this run is interrupted: a value of type object" in capsys.readouterr().err


def test_no_code_loads_objects_from_disk() -> None:
    found = []
    for file in sorted(path for part in ("retrieval", "eval", "flows") for path in (ROOT / part).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                parallel = {alias.name for alias in node.names} <= {"Parallel", "delayed", "get_reusable_executor"}
                unsafe_modules = UNSAFE - {"joblib"} if parallel else UNSAFE  # workers, not files
                found += [f"{file.name}: import {name}" for name in modules if name.split(".")[0] in unsafe_modules]
            elif isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                words = {word.arg: ast.unparse(word.value) for word in node.keywords}
                unsafe = called in {"np.load", "numpy.load", "torch.load", "pd.read_pickle", "yaml.unsafe_load"}
                unsafe |= words.get("allow_pickle") == "True" or words.get("persist_result") == "True"
                unsafe |= called == "yaml.load" and "_loader()" not in ast.unparse(node)
                found += [f"{file.name}: {called}"] if unsafe or "result_serializer" in words else []
    assert [] == found
