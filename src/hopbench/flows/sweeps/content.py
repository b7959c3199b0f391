"""A sweep given by its content, not as a file of the user's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from hopbench.eval.files import write_atomically
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.sweep.plan import SweepPlan


@contextmanager
def plan_of_content(content: Mapping[str, Any], out: Path) -> Iterator[SweepPlan]:
    """The plan, written to `out/sweep.yaml`.

    Where the block refuses it by an InputError, as for a folder that holds another sweep, the file is as before.
    """
    from hopbench.eval.sweep.plan import read_sweep

    source = out / "sweep.yaml"
    before = source.read_bytes() if source.is_file() else None
    write_atomically(source, yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True).encode())
    try:
        yield read_sweep(source)
    except InputError:
        if before is None:
            source.unlink(missing_ok=True)
        else:
            write_atomically(source, before)
        raise
