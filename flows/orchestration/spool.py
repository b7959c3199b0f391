"""A job for workers that share only a folder: its units, who has claimed them, and what came of them, as JSON.

A worker beats while it works: a machine that vanished has nobody who reports it to Prefect.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import count as count_from
from pathlib import Path
from threading import Event, Thread
from typing import Any, Protocol

from hopbench.eval.files import write_atomically
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import HopBenchError, InputError

KINDS = {"run": "hopbench.flows.run.worker:RunJob", "sweep": "hopbench.flows.sweeps.worker:SweepJob"}
"""What `Portable.kind` may be: whose class reads a job's JSON; no file names a class itself."""

BEAT_SECONDS = 5.0

TOKEN = re.compile(r"^[0-9a-f]{16}$")


class Portable(Protocol):
    """A job whose parts can be written as JSON, for workers that share only a folder."""

    kind: str

    def as_json(self) -> dict[str, Any]:
        """The job."""
        ...

    def unit_as_json(self, unit: Any) -> dict[str, Any]:
        """One of its units."""
        ...

    def outcome_from_json(self, content: Any) -> Any:
        """What came of a unit."""
        ...


@dataclass(frozen=True)
class Spool:
    """The folder of one job: `job.json`, `N.unit`, `N.claim` (whose text is the flow run's id), `N.done`, `ID.beat`."""

    folder: Path

    @classmethod
    def of(cls, home: Home, token: str) -> Spool:
        """The folder of that name; a name of another form, which might lead out of the home, is refused."""
        if not TOKEN.match(token):
            raise InputError(f"job {token!r}: that is no name of a job")
        return cls(home.scratch / "pool" / token)

    def write(self, job: Portable, units: Sequence[Any]) -> None:
        """Lay out a job, and where it was started; its own file comes last."""
        self.folder.mkdir(parents=True)
        for number, unit in enumerate(units):
            self._put(f"{number}.unit", job.unit_as_json(unit))
        self._put("job.json", {"kind": job.kind, "units": len(units), "folder": str(Path.cwd()), **job.as_json()})

    @contextmanager
    def where_started(self) -> Iterator[None]:
        """The working directory of this process is the job's meanwhile, where it has that: labels may name files."""
        folder = (self._get("job.json") or {}).get("folder", "")
        with chdir(folder) if Path(folder).is_dir() else nullcontext():
            yield

    def job(self) -> tuple[Any, int]:
        """The job, read by the class of its kind, and how many units it has."""
        content = self._get("job.json")
        if content is None:
            raise InputError(
                f"{self.folder} holds no job: it is over, or HOPBENCH_HOME here is not that of the process that waits"
            )
        module, _, name = KINDS[content["kind"]].partition(":")
        return getattr(import_module(module), name).from_json(content), int(content["units"])

    def claimed(self, number: int, owner: str) -> bool:
        """Take a unit, unless somebody has it."""
        try:
            handle = os.open(self.folder / f"{number}.claim", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except (FileExistsError, FileNotFoundError):  # the folder is gone when the job is over
            return False
        with os.fdopen(handle, "w") as file:
            file.write(owner)
        return True

    def release(self, lost: set[str]) -> None:
        """Give up the claims of flow runs that are over."""
        for claim in self.folder.glob("*.claim"):
            if claim.read_text() in lost and not claim.with_suffix(".done").exists():
                claim.unlink()

    def beat(self, owner: str, number: int) -> None:
        """Show that a flow run is alive, unless the job is over; each beat has another number."""
        if self.folder.exists():
            self._put(f"{owner}.beat", {"beat": number})

    def last_beat(self, owner: str) -> int | None:
        """The number of a flow run's last beat; None before the first."""
        beat = self._get(f"{owner}.beat")
        return None if beat is None else int(beat["beat"])

    def unit(self, number: int) -> Any:
        """A unit as JSON."""
        return self._get(f"{number}.unit")

    def finish(self, number: int, content: Mapping[str, Any]) -> None:
        """Write what came of a unit, unless the job is over."""
        if self.folder.exists():
            self._put(f"{number}.done", content)

    def done(self) -> set[int]:
        """The units that are done."""
        return {int(file.stem) for file in self.folder.glob("*.done")}

    def outcome(self, number: int) -> Any:
        """What came of a unit that is done."""
        return self._get(f"{number}.done")

    def _put(self, name: str, content: Mapping[str, Any]) -> None:
        write_atomically(self.folder / name, json.dumps(content, separators=(",", ":")).encode())

    def _get(self, name: str) -> Any:
        with suppress(FileNotFoundError):
            return json.loads((self.folder / name).read_bytes())
        return None


def take_units(home: Home, token: str, owner: str) -> int:
    """Do units of a job until none is left that nobody has claimed; returns how many. `owner` is the flow run's id."""
    spool = Spool.of(home, token)
    job, count = spool.job()
    context: Any = None
    done = 0
    with _beating(spool, owner):
        for number in range(count):
            if not spool.claimed(number, owner):
                continue
            try:
                context = context or job.open()
                content = {"outcome": job.outcome_as_json(context.run(job.unit_from_json(spool.unit(number))))}
            except HopBenchError as error:
                content = {"error": str(error), "exit_code": error.exit_code}
            spool.finish(number, content)
            done += 1
            if "error" in content:
                break
    return done


@contextmanager
def _beating(spool: Spool, owner: str) -> Iterator[None]:
    over = Event()

    def beat() -> None:
        for number in count_from(1):
            with suppress(OSError):  # a share that is away for a moment
                spool.beat(owner, number)
            if over.wait(BEAT_SECONDS):
                return

    thread = Thread(target=beat, name="beats", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
