"""Too little disk, memory, threads or files: one message that says what, exit code 4, and the same command goes on."""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hopbench.eval.files import write_atomically
from hopbench.flows.cli.main import plain, refuse_undecodable_arguments
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import (
    HopBenchError,
    IncompleteError,
    InputError,
    exhausted,
    exhausted_by_message,
)

GOES_ON = "What is finished is kept, and the same command goes on"
LACKS = [
    (OSError(errno.ENOSPC, "No space left on device", "/d/f"), "the disk is full for /d/f"),
    (OSError(errno.EDQUOT, "Disk quota exceeded", "/d/f"), "the disk is full for /d/f"),
    (sqlite3.OperationalError("database or disk is full"), "the disk is full"),
    (ValueError("kglite: No space left on device (os error 28)"), "the disk is full"),
    (MemoryError(), "the memory is used up"),
    (OSError(errno.ENOMEM, "Cannot allocate memory"), "the memory is used up"),
    (RuntimeError("can't start new thread"), "starts no more threads or processes"),
    (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "starts no more threads or processes"),
    (OSError(errno.EMFILE, "Too many open files", "/d/f"), "too many files are open"),
    (ExceptionGroup("tasks", [ValueError("x"), MemoryError()]), "the memory is used up"),
]


@pytest.mark.parametrize(("error", "said"), LACKS, ids=lambda value: str(value)[:30])
def test_a_lack_is_told_with_the_remedy(error: Exception, said: str) -> None:
    outer = RuntimeError("a task failed")
    outer.__cause__ = error
    for one in (error, outer):
        told = plain(one)
        assert isinstance(told, IncompleteError)
        assert (4, True, True) == (told.exit_code, said in str(told), GOES_ON in str(told))


@pytest.mark.parametrize(
    "error", [ValueError("x"), OSError("odd"), KeyError("q"), sqlite3.OperationalError("no such table"), RuntimeError()]
)
def test_a_defect_stays_one(error: Exception) -> None:
    assert (None, None) == (plain(error), exhausted(error))


def test_what_a_path_cannot_be_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for path, said in (
        (tmp_path, "a folder stands where a file belongs"),
        (tmp_path / "file" / "x", "a file stands where a folder belongs"),
        (tmp_path / ("x" * 300), "names of at most 255 bytes"),
        (tmp_path / "a", "its links lead in a circle"),
    ):
        with pytest.raises(OSError, match="Errno") as caught:
            path.write_text("x")
        told = plain(caught.value)
        assert isinstance(told, HopBenchError)
        assert (2, True) == (told.exit_code, said in str(told))


def test_the_words_of_another_process_are_understood() -> None:
    log = "sqlalchemy.exc.OperationalError: (sqlite3.OperationalError) database or disk is full\n[SQL: CREATE TABLE x]"
    assert "the disk is full for /d" in str(exhausted_by_message(log, "/d"))
    assert exhausted_by_message("all is well") is None


def test_a_full_disk_is_no_bad_input(tmp_path: Path) -> None:
    # A limit on the size of files stands for a full disk: the system says so by another number.
    program = (
        "import resource, signal, sys; from pathlib import Path; from hopbench.eval.files import write_atomically\n"
        "from hopbench.retrieval.support.errors import IncompleteError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "try: write_atomically(Path(sys.argv[1]), b'x' * 100)\n"
        "except IncompleteError as error: sys.exit(0 if sys.argv[1] in str(error) else 9)"
    )
    target = tmp_path / "results.json"
    assert 0 == subprocess.run([sys.executable, "-c", program, str(target)], check=False).returncode
    assert [] == list(tmp_path.iterdir())
    write_atomically(target, b"x" * 100)
    assert 100 == target.stat().st_size


def test_too_little_memory_is_one_message(tmp_path: Path) -> None:
    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))

    program = (
        "import sys, typer; from hopbench.flows.cli import main\n"
        "import numpy as np\n"
        "main.app = lambda: np.ones((50_000, 50_000))\n"  # 20 GB
        "sys.argv = ['hopbench']; main.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        preexec_fn=little,
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "HOPBENCH_HOME": str(tmp_path)},
        check=False,
    )
    assert (4, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("hopbench: the memory is used up")
    assert 1 == len(done.stderr.splitlines())


def test_names_that_are_no_utf_8_are_refused_at_the_door(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for word, said in (("/tmp/\udcff", r"argument /tmp/\\udcff: its name is no UTF-8"), ("a\0b", "no name of a file")):
        with pytest.raises(InputError, match=said):
            refuse_undecodable_arguments(["run", word])
    refuse_undecodable_arguments(["run", "/tmp/größe"])
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)
    monkeypatch.chdir(os.fsdecode(folder))
    with pytest.raises(InputError, match="working folder"):
        refuse_undecodable_arguments([])
    os.rmdir(folder)
    with pytest.raises(InputError, match="is gone: change to another one"):
        refuse_undecodable_arguments([])


def test_a_home_of_nobody_is_named() -> None:
    with pytest.raises(InputError, match="~nobody-of-that-name/x: ~ names no home here: write the folder out"):
        Home.resolve({"HOPBENCH_HOME": "~nobody-of-that-name/x"})
