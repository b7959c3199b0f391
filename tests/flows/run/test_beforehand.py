"""What strategies keep of a large corpus: made by a process of its own, or by the run where that one fails."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest
from tests.flows.cli.conftest import call, write_benchmark

from hopbench.flows.run import beforehand
from hopbench.retrieval.support import kept_files

LABELS = "graph_expansion,pagerank,hoprank"


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A command that ranks a corpus that counts as large."""
    monkeypatch.setattr(beforehand, "LARGE", 0)
    dataset = write_benchmark(tmp_path / "tiny")
    return ("run", "--dataset", str(dataset), "--store", "arrays", "--no-prefect", "--strategies", LABELS)


def made_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what this process makes from now on."""
    made: list[str] = []
    make = kept_files._make

    def noted(place: Path, *rest: object) -> None:
        made.append(place.name)
        make(place, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(kept_files, "_make", noted)
    return made


def ranked(out: Path) -> str:
    """What a run has found for each question, without how long it took."""
    table = pd.read_parquet(out / "questions.parquet")
    return table.drop(columns=[name for name in table if "latency" in str(name)]).to_json()


def test_another_process_makes_what_is_kept(
    given: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, made, begun = tmp_path / "home", made_here(monkeypatch), []
    ran = beforehand.Beforehand._ran

    def noted(self: beforehand.Beforehand) -> tuple[int, str]:
        begun.append(self)
        return ran(self)

    monkeypatch.setattr(beforehand.Beforehand, "_ran", noted)

    def run(name: str) -> int:
        """How many processes it began."""
        before = len(begun)
        done = call(*given, "--out", tmp_path / name, home=home)
        assert (done.code, "ended early" in done.err) == (0, False)
        return len(begun) - before

    assert run("before the graph is built, and after") == 2
    (search,) = (home / "cache" / "search").iterdir()
    kept = {place.name for place in search.iterdir()}
    assert {"bm25", "tagger", "adjacency", "linker", "hoprank", "mention-walk"} <= kept
    shutil.rmtree(search)
    assert run("the graph is there") == 1
    assert {place.name for place in search.iterdir()} == kept
    assert not set(made) & kept
    assert run("all is there") == 0
    assert ranked(tmp_path / "the graph is there") == ranked(tmp_path / "all is there")


def test_the_run_makes_what_a_process_that_failed_did_not(
    given: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_here(monkeypatch)
    monkeypatch.setattr(beforehand.RunJob, "as_json", lambda _: {"graph": {}})
    done = call(*given, "--out", tmp_path / "out", home=tmp_path / "home")
    assert (done.code, done.err.count("ended early (KeyError")) == (0, 1)
    assert {"adjacency", "linker", "hoprank"} <= set(made)


def test_a_full_disk_there_ends_the_run(
    given: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found there, before minutes of the same work here."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text(
        "import errno, sys\n"
        "if 'hopbench.flows.run.beforehand' in sys.orig_argv:\n"
        "    sys.stderr.write('so far so good\\n')\n"
        "    import numpy\n"
        "    def save(place, *rest, **options):\n"
        "        raise OSError(errno.ENOSPC, 'No space left on device', str(place))\n"
        "    numpy.save = save\n",
        encoding="utf-8",
    )
    done = call(*given, "--out", tmp_path / "out", home=tmp_path / "home")
    assert done.code == 4
    assert "the disk is full for" in done.err
    assert "so far so good\n" in done.err
    assert "Traceback" not in done.err


def test_nothing_goes_on_when_the_run_is_killed(given: tuple[str, ...], tmp_path: Path) -> None:
    script = (
        "from hopbench.flows.run import beforehand\n"
        "beforehand.LARGE = 0\n"
        "from hopbench.flows.cli.main import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", script, *given, "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, env=os.environ | {"HOPBENCH_HOME": str(tmp_path / "home")})
    deadline = time.monotonic() + 60
    children: list[psutil.Process] = []
    while not children and process.poll() is None and time.monotonic() < deadline:
        found = psutil.Process(process.pid).children(recursive=True)
        children = [child for child in found if "hopbench.flows.run.beforehand" in child.cmdline()]
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert children
    psutil.wait_procs(children, timeout=30)
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    assert call(*given, "--out", tmp_path / "out", home=tmp_path / "home").code == 0
