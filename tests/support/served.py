"""`hopbench serve` as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.support.places import ROOT

READY = "stop it with Ctrl-C; the schedule stays\n"


@contextmanager
def serving(flags: Sequence[str], environment: Mapping[str, str]) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The process, once it serves, and the lines that it printed until then; the block ends it and waits."""
    with subprocess.Popen(
        [sys.executable, "-m", "hopbench.flows.cli.main", "serve", *flags],
        env=dict(environment),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process, [line for line in iter(process.stdout.readline, READY) if line]
