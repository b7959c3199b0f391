"""One nightly at a time in a home."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hopbench.flows.settings.holder import held
from hopbench.retrieval.support.errors import IncompleteError


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
