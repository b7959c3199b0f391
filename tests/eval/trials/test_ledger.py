"""The trial ledger keeps finished trials under content addresses."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from hopbench.eval.trials.key import TrialKey
from hopbench.eval.trials.ledger import Champion, Ledger, TrialRecord
from hopbench.retrieval.support.errors import InputError

SETTINGS = {"strategy": "pagerank", "parameters": {"restart": 0.15}, "questions": ["q1", "q2"], "seed": 0}


def record(recall: float = 0.5) -> TrialRecord:
    rows = pd.DataFrame({"recall@5": [1.0, 0.0]}, index=pd.Index(["q1", "q2"], name="question_id", dtype=object))
    return TrialRecord(TrialKey(SETTINGS).id, SETTINGS, {"recall@5": recall}, rows, 0, 1.5, 10.0, 12.0)


def test_what_is_put_is_found_by_another_process_whole(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.put(record())
        with Ledger.open(tmp_path / "ledger.db") as other:  # WAL: a second connection reads meanwhile
            found = other.get(TrialKey(SETTINGS).id)
    assert found is not None
    assert (SETTINGS, {"recall@5": 0.5}, 0, 1.5, 10.0, 12.0) == (
        found.settings,
        found.metrics,
        found.failures,
        found.seconds,
        found.started,
        found.ended,
    )
    pd.testing.assert_frame_equal(record().questions, found.questions)


def test_the_first_of_equal_trials_stays(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.put(record(0.5))
        ledger.put(record(0.9))
        found = ledger.get(TrialKey(SETTINGS).id)
    assert found is not None
    assert {"recall@5": 0.5} == found.metrics


def test_a_sweep_keeps_its_first_start(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        first = ledger.sweep_started("a")
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert (first, True) == (ledger.sweep_started("a"), first <= ledger.sweep_started("b"))


def test_foreign_files_and_other_versions_are_refused(tmp_path: Path) -> None:
    foreign, newer = tmp_path / "foreign.db", tmp_path / "newer.db"
    foreign.write_bytes(b"no database, but long enough to be taken for one " * 40)
    with pytest.raises(InputError, match=r"foreign\.db: the trial ledger cannot be used"), Ledger.open(foreign):
        pass
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with (
        pytest.raises(InputError, match=r"newer\.db: is of another HopBench \(version 99, not 3\)"),
        Ledger.open(newer),
    ):
        pass


def test_a_benchmark_has_one_champion(tmp_path: Path) -> None:
    first = Champion("digest", "t1", "pagerank", "run1", 1.0)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.champion_of("digest") is None
        ledger.set_champion(first)
        assert first == ledger.champion_of("digest")
        second = replace(first, trial_id="t2", run_id="run2", created=2.0)
        ledger.set_champion(second)
        assert (second, None) == (ledger.champion_of("digest"), ledger.champion_of("other"))


def test_a_trial_is_one_process_s_until_it_ends(tmp_path: Path) -> None:
    path, name = tmp_path / "ledger.db", TrialKey(SETTINGS).id
    with Ledger.open(path) as ours, Ledger.open(path) as theirs:
        assert (True, True, False) == (ours.claim(name), ours.claim(name), theirs.claim(name))
        ours.put(record())
        assert (False, False) == (ours.claim(name), theirs.claim(name))  # finished


def test_what_a_process_gives_up_or_is_killed_at_is_taken_over(tmp_path: Path) -> None:
    path, name = tmp_path / "ledger.db", TrialKey(SETTINGS).id
    program = (
        "import os, signal, sys; from pathlib import Path; from hopbench.eval.trials.ledger import Ledger\n"
        "with Ledger.open(Path(sys.argv[1])) as ledger:\n"
        "    assert ledger.claim(sys.argv[2]); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(path), name], check=False)
    assert -signal.SIGKILL == killed.returncode
    with Ledger.open(path) as second:
        with Ledger.open(path) as first:
            assert (True, False) == (first.claim(name), second.claim(name))
        assert second.claim(name)  # the first has closed
    assert [] == [file for file in (tmp_path / "ledger.db-owners").iterdir() if file.name != "open"]


def test_a_ledger_opens_while_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(path):
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        program = (
            "import sys; from pathlib import Path; from hopbench.eval.trials.ledger import Ledger\n"
            "with Ledger.open(Path(sys.argv[1])) as ledger: assert ledger.get('unknown') is None; print('read')"
        )
        # Opening and reading need no turn of a writer; only closing gives back what is claimed.
        reader = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        writer.execute("COMMIT")
        assert ("read\n", None) == reader.communicate(timeout=60)
        assert 0 == reader.returncode
        writer.close()
