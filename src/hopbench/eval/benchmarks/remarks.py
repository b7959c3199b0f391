"""What readers notice about a data set without refusing it, collected for the benchmark that is being loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from hopbench.eval.types import Finding

_FOUND: ContextVar[list[Finding] | None] = ContextVar("found", default=None)
SHOWN = 3


@contextmanager
def collected() -> Iterator[list[Finding]]:
    """The list to which `remark` adds while the context is open."""
    found: list[Finding] = []
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


def remark(what: str, examples: Sequence[str], remedy: str) -> None:
    """Note that `what` is true of the examples, of which the first three are shown; nothing where there are none."""
    found = _FOUND.get()
    if examples and found is not None:
        found.append(Finding(what, len(examples), tuple(examples[:SHOWN]), remedy))
