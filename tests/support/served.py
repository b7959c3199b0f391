"""`hopbench serve` as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.places import ROOT

READY = "stop it with Ctrl-C; the schedule stays\n"


@contextmanager
def serving(
    flags: Sequence[str], environment: Mapping[str, str], folder: Path = ROOT
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The process, once it serves, and the lines that it printed until then; the block ends it and waits.

    It starts in `folder`, where its messages are in the file `errors`.
    """
    with (
        (folder / "errors" if folder != ROOT else Path(os.devnull)).open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "hopbench.flows.cli.main", "serve", *flags],
            env=dict(environment),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        yield process, [line for line in iter(process.stdout.readline, READY) if line]
