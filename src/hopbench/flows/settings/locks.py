"""Resources that one process at a time may hold: lock files that name their holder, --out folders, and ports."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from hopbench.eval.runs.files import RESULTS_FILE as RESULTS
from hopbench.eval.runs.files import RESULTS_SCHEMA as SCHEMA
from hopbench.eval.types import Benchmark
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, InputError
from hopbench.retrieval.support.locking import open_lock


@contextmanager
def held(path: Path, dataset: str, refusal: Callable[[str], HopBenchError]) -> Iterator[str | None]:
    """Hold the lock `path`; yields the last holder in words if it was killed, else None.

    Raises the `refusal` of the present holder in words, while another process or thread has the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    open_lock(path, "a").close()  # replaces an empty folder, refuses a full one
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise refusal(_holder(path) or "it is just starting or ending") from None
    try:
        left = _holder(path)
        own = {"pid": os.getpid(), "dataset": dataset, "started": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"}
        path.write_text(json.dumps(own), encoding="utf-8")
        yield left or None
    finally:
        path.unlink(missing_ok=True)
        lock.release()


def _holder(path: Path) -> str:
    """The process that a lock names, in words; empty where it names none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8") or "{}")
    except FileNotFoundError:  # its holder ends just now
        content = {}
    except ValueError:  # its holder was killed while writing
        content = {"pid": "?", "dataset": "?", "started": "?"}
    if not content or not isinstance(content, dict):
        return ""
    return f"process {content.get('pid')}, {content.get('dataset')}, since {content.get('started')}"


LOOPBACK = "127.0.0.1"


def listener_on(port: int) -> socket.socket:
    """A socket bound to `port` of 127.0.0.1, for the caller to close; 0 is any port that is free.

    Raises InputError where the port is taken or not allowed.
    """
    listener = socket.socket()
    if port:  # a restart takes the port again at once
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise InputError(
            f"--port {port} cannot be used on {LOOPBACK} ({error.strerror}): end what listens there, or name another"
        ) from error
    return listener


SWEEP = "sweep.json"
LOCK = ".run.lock"
FORCE = "Name another --out, or replace it with --force"


def refuse_other_run(out: Path, benchmark: Benchmark, remedy: str = FORCE) -> None:
    """Raise InputError where `out` holds a run on other questions or passages, a sweep, or files of another program."""
    file = out / RESULTS
    if not file.is_file():
        if (out / SWEEP).is_file():
            raise InputError(f"{out} holds a sweep, whose report.html this run would replace. {remedy}")
        return
    found: dict[str, Any] = {}
    with suppress(OSError, ValueError, TypeError, KeyError):  # damaged, or another program's
        content = json.loads(file.read_text(encoding="utf-8"))
        found = dict(content["benchmark"]) if content["schema"] == SCHEMA else {}
    if not found:
        raise InputError(f"{file} is not of a HopBench run ({SCHEMA}), and this run would replace it. {remedy}")
    if found.get("digest") == benchmark.digest:
        return
    there = f"{found.get('name')} ({found.get('questions')} questions, digest {str(found.get('digest'))[:12]})"
    here = f"{benchmark.name} ({len(benchmark.questions)} questions, digest {benchmark.digest[:12]})"
    raise InputError(f"{out} holds a finished run on {there}, and this one is on {here}. {remedy}")


@contextmanager
def only_run(out: Path, dataset: str) -> Iterator[None]:
    """Hold the folder while a run writes there. Raises InputError, naming the process, while another one does."""

    def refused(holder: str) -> InputError:
        return InputError(
            f"{out} is in use by another run: {holder}. Wait for its end or stop it, which this command then goes on "
            "from, or name another --out"
        )

    with held(out / LOCK, dataset, refused):
        yield


def refuse_run(out: Path) -> None:
    """Raise InputError where the folder of a sweep holds a finished run, whose report it would replace."""
    if (out / RESULTS).is_file() and not (out / SWEEP).is_file():
        raise InputError(f"{out} holds a finished run, whose report.html a sweep would replace: name another --out")


@contextmanager
def only_nightly(path: Path, dataset: str) -> Iterator[str | None]:
    """Hold `path` while the nightly runs; yields a note about the last holder if it was killed, else None.

    Raises IncompleteError, naming the holder, while another nightly runs.
    """

    def refused(holder: str) -> IncompleteError:
        return IncompleteError(
            f"another nightly is running in {path.parent.parent}: {holder}. Wait for its end or stop it, then run this "
            "command again; nightlies that must overlap need homes of their own (HOPBENCH_HOME)"
        )

    with held(path, dataset, refused) as left:
        yield f"the last nightly did not finish: {left}" if left else None
