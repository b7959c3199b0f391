"""What an installation puts into a user's Python: the one package `hopbench`, with its types, and no generic name."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

from tests.support.places import ROOT

import hopbench

USE = """
import eval.mine, flows, retrieval
from hopbench.eval.benchmarks import load_benchmark
from hopbench.flows.settings.options import RunOptions
from hopbench.retrieval.strategies.registry import make
print(eval.mine.WHOSE, make("pagerank").name, len(load_benchmark("hopworld", limit=2).questions))
"""


def test_a_project_with_folders_of_these_names_uses_hopbench(tmp_path: Path) -> None:
    for name in ("eval", "flows", "retrieval"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "eval" / "mine.py").write_text("WHOSE = 'mine'")
    (tmp_path / "use.py").write_text(USE)

    done = subprocess.run(
        [sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )

    assert ("mine pagerank 2", "") == (done.stdout.strip(), done.stderr)


def test_the_package_says_its_version_and_that_it_is_typed() -> None:
    assert (Path(hopbench.__path__[0]) / "py.typed").is_file()
    recorded = {file.parts[0] for file in files("hopbench") or ()}
    assert set() == recorded & {"eval", "flows", "retrieval", "tests", "datasets"}


def test_a_clone_without_symbolic_links_runs(tmp_path: Path) -> None:
    """As on Windows, where git writes links as text files."""
    clone = [  # shallow, by its address: of a path git would copy all objects
        "git",
        "clone",
        "--quiet",
        "--depth=1",
        "-c",
        "core.symlinks=false",
        f"file://{ROOT}",
        str(tmp_path / "clone"),
    ]
    subprocess.run(clone, check=True, timeout=120)
    assert not (tmp_path / "clone" / "eval").is_dir()
    line = "run --dataset hopworld --limit 3 --strategies bm25 --no-prefect --no-ragas".split()
    command = [sys.executable, "-m", "hopbench.flows.cli.main", *line, "--out", str(tmp_path / "out")]
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "clone" / "src"),
        "HOPBENCH_HOME": str(tmp_path / "home"),
    }

    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )

    assert (0, True) == (done.returncode, (tmp_path / "out" / "results.json").is_file()), done.stderr
