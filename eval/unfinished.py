"""Finished trials of a run that has not ended: what an interrupted `run` with the same --out does not repeat."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
from dataclasses import dataclass
from pathlib import Path

from eval.batch_work import UnitOutcome
from eval.files import write_atomically
from eval.trial import TrialOutcome


def trial_key(**settings: object) -> str:
    """A digest of everything that decides a trial's outcome."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True)
class Unfinished:
    """The folder `.unfinished` in a run's --out; it goes when the run ends well."""

    folder: Path

    def get(self, key: str) -> TrialOutcome | None:
        """The outcome kept under `key`; a file cut short by a crash of the disk counts as none."""
        outcome = self._read(key)
        return outcome if isinstance(outcome, TrialOutcome) else None

    def put(self, key: str, outcome: TrialOutcome) -> None:
        """Keep an outcome, whole or not at all."""
        write_atomically(self.folder / f"{key}.pickle", pickle.dumps(outcome))

    def get_unit(self, key: str) -> UnitOutcome | None:
        """A part of a trial, as a worker returned it."""
        outcome = self._read(key)
        return outcome if isinstance(outcome, UnitOutcome) else None

    def put_unit(self, key: str, outcome: UnitOutcome) -> None:
        """Keep a part of a trial."""
        write_atomically(self.folder / f"{key}.pickle", pickle.dumps(outcome))

    def _read(self, key: str) -> object:
        try:
            return pickle.loads((self.folder / f"{key}.pickle").read_bytes())  # written by ourselves
        except (FileNotFoundError, EOFError, pickle.UnpicklingError):
            return None

    def clear(self) -> None:
        """Forget everything."""
        shutil.rmtree(self.folder, ignore_errors=True)
