"""A sweep in a process of its own that notes each trial it does, and may be killed at its n-th.

`python -m tests.support.sweep_to_kill NOTES KILL_AT MOMENT ARGUMENTS…`: MOMENT is "before" or "after" the trial is
kept. Where SWEEP_PROCESSES is set, the first trial waits until so many processes have one.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from hopbench.eval.sweep.context import TrialContext
from hopbench.eval.trials.ledger import Ledger, TrialRecord
from hopbench.eval.trials.trial import TrialOutcome
from hopbench.flows.cli.main import main
from hopbench.retrieval.strategies.base import Strategy

notes, kill_at, moment = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
run, put = TrialContext.run, Ledger.put
done: list[str] = []


def noting(self: TrialContext, strategy: Strategy, ranked: TrialOutcome | None = None) -> TrialRecord:
    if not done:
        wait_for_others()
    record = run(self, strategy, ranked)
    with notes.open("a") as file:
        file.write(record.trial_id + "\n")
    done.append(record.trial_id)
    if len(done) == kill_at and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    return record


def wait_for_others() -> None:
    notes.with_name(f"begun-{os.getpid()}").touch()
    deadline = time.monotonic() + 120
    while len(list(notes.parent.glob("begun-*"))) < int(os.environ.get("SWEEP_PROCESSES", "1")):
        assert time.monotonic() < deadline, "the other processes have no trial"
        time.sleep(0.01)


def keeping(self: Ledger, record: TrialRecord) -> None:
    put(self, record)
    if len(done) == kill_at and moment == "after":
        os.kill(os.getpid(), signal.SIGKILL)


TrialContext.run = noting  # type: ignore[method-assign]
Ledger.put = keeping  # type: ignore[method-assign]
sys.argv[1:] = sys.argv[4:]
main()
