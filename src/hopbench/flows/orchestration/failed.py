"""An error on its way from a worker to the process that waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, InputError, StoreError


@dataclass(frozen=True)
class Failed:
    """An error that a worker returns to the process that submitted the unit; a lost worker returns nothing."""

    message: str
    exit_code: int

    def error(self) -> HopBenchError:
        """The error to raise in that process."""
        kinds = {InputError.exit_code: InputError, StoreError.exit_code: StoreError}
        return kinds.get(self.exit_code, IncompleteError)(self.message)
