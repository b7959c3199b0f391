"""What a sweep is given: data sets on which its objective can be measured."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import Any

import pytest
from tests.flows.cli.conftest import write_benchmark

from hopbench.eval.sweep.file import Objective
from hopbench.flows.sweeps import inputs
from hopbench.retrieval.support.errors import InputError


def test_answers_are_enough_for_an_objective_that_reads_answers(tmp_path: Any) -> None:
    folder = write_benchmark(tmp_path / "tiny")
    shutil.rmtree(folder / "qrels")

    def given(**objective: str) -> Any:
        content = SimpleNamespace(objective=Objective(**objective), store="kglite", min_grade=1, strict=False)
        return SimpleNamespace(file="s.yaml", datasets=[str(folder)], report_on=None, content=content)

    loaded = inputs.load_benchmarks(given(metric="has_answer@10", also="has_answer@5"))
    assert [str(folder)] == list(loaded)
    with pytest.raises(InputError, match="tiny has no gold for the objective's all_gold@10: gold passages go into"):
        inputs.load_benchmarks(given())
