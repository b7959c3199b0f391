"""The same fingerprint, trial ids, rankings and scores on every processor, for all labels.

One machine has one processor, but its libraries can be told to compute as on another: OpenBLAS by OPENBLAS_CORETYPE,
NumPy by NPY_DISABLE_CPU_FEATURES, the C library by GLIBC_TUNABLES, faiss by FAISS_SIMD_LEVEL. Each variant builds and
ranks in a process of its own, with other threads and batches too.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.places import ROOT
from tests.support.same_numbers import KERNELS

QUESTIONS = 25  # half as many of the part
NO_FMA = "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX2_Usable,-FMA_Usable"

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not Path("/proc/cpuinfo").exists(), reason="the kernels named here are x86's"
)


def dispatched(*spared: str) -> str:
    """The instruction sets of this processor that NumPy would use beyond its minimum."""
    config: Any = np.show_config(mode="dicts")
    return " ".join(name for name in config["SIMD Extensions"]["found"] if name not in spared)


def variants() -> dict[str, tuple[dict[str, str], int]]:
    """By kernel what is set in the environment, and how many questions share a batch."""
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("flags")[2].partition("\n")[0].split()
    old = {"NPY_DISABLE_CPU_FEATURES": dispatched(), "GLIBC_TUNABLES": NO_FMA, "OPENBLAS_NUM_THREADS": "1"}
    newer = {"NPY_DISABLE_CPU_FEATURES": dispatched("X86_V3"), "OPENBLAS_NUM_THREADS": "2"}
    old["FAISS_SIMD_LEVEL"], newer["FAISS_SIMD_LEVEL"] = "NONE", "AVX2"
    found = {"Prescott": (old, 7)}
    if "avx2" in flags:
        found["Haswell"] = newer, 1000
    if "avx512f" in flags:
        found["SkylakeX"] = {"OPENBLAS_NUM_THREADS": "2"}, 64
    return {name: ({"OPENBLAS_CORETYPE": name, **settings}, batch) for name, (settings, batch) in found.items()}


def chosen(between: bool) -> list[str]:
    """The oldest kernels and the newest, or all of them."""
    names = list(variants())
    return names if between else list(dict.fromkeys((names[0], names[-1])))


def of_variants(dataset: Path, questions: int, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What each of these variants prints; the processes run side by side."""
    running = {}
    for name in names:
        settings, batch = variants()[name]
        command = [sys.executable, "-m", "tests.support.same_numbers", str(dataset), str(questions), str(batch)]
        running[name] = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    found = {}
    for name, process in running.items():
        printed, said = process.communicate()
        assert (name, process.returncode) == (name, 0), said
        found[name] = json.loads(printed)
    return found


def part_of_hopworld(folder: Path) -> Path:
    """Its first questions with their gold, among every fifth of its passages."""
    whole = ROOT / "datasets" / "hopworld"
    (folder / "qrels").mkdir(parents=True)
    asked = (whole / "queries.jsonl").read_text(encoding="utf-8").splitlines()[: QUESTIONS // 2]
    known = {json.loads(line)["_id"] for line in asked}
    head, *rows = (whole / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()
    gold = [row for row in rows if row.split("\t")[0] in known]
    needed = {row.split("\t")[1] for row in gold}
    passages = (whole / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [line for row, line in enumerate(passages) if row % 5 == 0 or json.loads(line)["_id"] in needed]
    for name, lines in (("queries.jsonl", asked), ("corpus.jsonl", kept), ("qrels/test.tsv", [head, *gold])):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def check(found: Mapping[str, dict[str, Any]]) -> None:
    """The kernels were others, and nothing else is."""
    kernels = [tuple(one.pop(KERNELS)) for one in found.values()]
    assert len(kernels) == len(set(kernels))  # or the settings had no effect
    first = next(iter(found.values()))
    differing = {name: [part for part in first if first[part] != one[part]] for name, one in found.items()}
    assert {name: [] for name in found} == differing
    assert first["cosines"]["pairs"] > 100_000
    assert len([part for part in first if isinstance(first[part], dict)]) > 19


@pytest.mark.parametrize("between", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_nothing_depends_on_the_kernels_on_hopworld(between: bool, tmp_path: Path) -> None:
    """A part of it on the oldest kernels and on the newest; in `make soak` all of it, on those between them too."""
    dataset = ROOT / "datasets" / "hopworld" if between else part_of_hopworld(tmp_path / "part")
    check(of_variants(dataset, QUESTIONS, chosen(between)))


@pytest.mark.soak  # hopworld has the same in `make test`
@pytest.mark.benchmarks
@pytest.mark.parametrize("questions", [30, 200])
def test_nothing_depends_on_the_kernels_on_hotpotqa(questions: int, benchmarks_dir: Path) -> None:
    check(of_variants(benchmarks_dir / "hotpotqa-train200", questions, list(variants())))
