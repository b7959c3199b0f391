"""Several command lines in one process, without MLflow: each start of Python would import the same again.

    python -m tests.support.several_commands HOME < lines.json > done.json

reads a list of lists of words, runs each by the real entry point with HOME as HOPBENCH_HOME, and prints the exit code,
output and errors of each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.flows.cli.conftest import Done, call
from tests.support.places import ROOT
from tests.support.untracked import QuietTracker

from hopbench.flows.tracking.client import Tracker


def several(site: Path, folder: Path, *lines: Sequence[str]) -> list[Done]:
    """What each line does in `folder`, with the code of the site folder, in a home beside it."""
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "COLUMNS": "200"}
    command = [sys.executable, "-m", "tests.support.several_commands", str(folder / "home")]
    process = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == process.returncode, process.stderr
    return [Done(*done) for done in json.loads(process.stdout)]


if __name__ == "__main__":
    Tracker.start = QuietTracker.start  # type: ignore[method-assign]
    every = [call(*words, home=Path(sys.argv[1])) for words in json.load(sys.stdin)]
    sys.stdout.write(json.dumps([(done.code, done.out, done.err) for done in every]))
