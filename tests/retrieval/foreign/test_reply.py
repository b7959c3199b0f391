"""Replies as bytes: what reading them must not set off."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from hopbench.retrieval.foreign.reply import ReplyError, read_reply


class Cyclic:
    """Garbage for the collector, with a finalizer that needs room on the stack."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        vars(self).clear()


@pytest.fixture
def thresholds() -> Iterator[None]:
    gc.freeze()  # what tests before this one left would be looked at hundreds of times
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_no_finalizer_runs_at_the_depth_of_a_reply_that_is_nested_without_end(
    thresholds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", failed.append)

    for allocations in range(10, sys.getrecursionlimit(), 10):  # one of them ends at the greatest depth
        gc.collect()
        Cyclic()
        gc.set_threshold(allocations)
        with pytest.raises(ReplyError, match="the reply is not JSON"):
            read_reply(b"[" * 200_000, "", 1, 10)

    assert [] == failed
