"""`hopbench bench`: what is measured, on small worlds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hopbench.flows.cli.bench import _sizes
from hopbench.flows.studies.growth import Built, Cost, growth
from hopbench.retrieval.strategies.registry import resolve
from hopbench.retrieval.support.errors import InputError


def test_each_size_is_built_and_each_label_measured(tmp_path: Path) -> None:
    found = list(growth([400, 300], resolve("bm25,graph_expansion"), 20, tmp_path, lambda _: None))

    kinds = [(one.passages, one.label if isinstance(one, Cost) else "") for one in found]
    assert [(size, name) for size in (300, 400) for name in ("", "bm25", "graph_expansion")] == kinds
    costs = {(one.passages, one.label): one for one in found if isinstance(one, Cost)}
    assert (0, 0.0) == (costs[300, "bm25"].round_trips, costs[300, "bm25"].rows)
    expansion = costs[400, "graph_expansion"]
    assert expansion.round_trips == 1  # documented: one hop, so one round trip for all 20 questions
    assert expansion.edges > 0
    assert all(one.graph_seconds > 0 for one in found if isinstance(one, Built))


@pytest.mark.parametrize("text", ["", "10", "1000,x", "2000000"])
def test_sizes_that_cannot_be_made_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=f"--sizes {re.escape(text)}: give whole numbers from 1000 to 1000000"):
        _sizes(text)
