"""Outcomes of the trials of a run in progress: an interrupted `run` with the same --out does not repeat them.

A file is a line that names the format and the SHA-256 of the rest, then JSON (see `outcome_codec`). Reading one runs no
code; a damaged or changed one is reported, and its trial is done again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hopbench.eval.files import write_atomically
from hopbench.eval.trials.batch_work import UnitOutcome
from hopbench.eval.trials.outcome_codec import decoded, encoded
from hopbench.eval.trials.trial import TrialOutcome
from hopbench.retrieval.support.notice import notice

FORMAT = "hopbench.unfinished/1"
SUFFIX = ".trial"
_OLD_SUFFIX = ".pickle"  # of versions before the format had a name


@dataclass(frozen=True)
class Unfinished:
    """The folder `.unfinished` in a run's --out, removed when the run succeeds."""

    folder: Path

    def get(self, key: str) -> TrialOutcome | None:
        """The outcome stored under `key`, or None; a damaged file is reported and ignored."""
        outcome = self._read(key)
        return outcome if isinstance(outcome, TrialOutcome) else None

    def put(self, key: str, outcome: TrialOutcome) -> None:
        """Store an outcome atomically."""
        self._write(key, outcome)

    def get_unit(self, key: str) -> UnitOutcome | None:
        """A part of a trial, as a worker returned it."""
        outcome = self._read(key)
        return outcome if isinstance(outcome, UnitOutcome) else None

    def put_unit(self, key: str, outcome: UnitOutcome) -> None:
        """Store a part of a trial atomically."""
        self._write(key, outcome)

    def _write(self, key: str, outcome: TrialOutcome | UnitOutcome) -> None:
        try:
            body = json.dumps(encoded(outcome), separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as error:  # a plug-in's note may hold anything
            label = outcome.outcome.label if isinstance(outcome, UnitOutcome) else outcome.label
            notice(f"{label} is done again if this run is interrupted: {error}")
            return
        head = f"{FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode()
        write_atomically(self.folder / f"{key}{SUFFIX}", head + body)

    def _read(self, key: str) -> TrialOutcome | UnitOutcome | None:
        _ = self._pickles_reported
        file = self.folder / f"{key}{SUFFIX}"
        try:
            head, _, body = file.read_bytes().partition(b"\n")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            notice(f"{file} cannot be read ({error.strerror}): that trial is done again")
            return None
        if head != f"{FORMAT} {hashlib.sha256(body).hexdigest()}".encode():
            notice(f"{file} is damaged or of another version: that trial is done again")
            return None
        try:
            return decoded(json.loads(body))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            notice(f"{file} holds no trial ({type(error).__name__}: {error}): that trial is done again")
            return None

    @cached_property
    def _pickles_reported(self) -> None:
        """Report once that files of older versions are ignored, since reading a pickle executes the code in it."""
        if left := len(list(self.folder.glob(f"*{_OLD_SUFFIX}"))):
            notice(f"{self.folder} holds {left} trials kept by an older HopBench as pickles: ignored, done again")

    def clear(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
