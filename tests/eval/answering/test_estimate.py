"""What answering and reading would cost, before a model is asked."""

from __future__ import annotations

import pytest

from hopbench.eval.answering.estimate import answer_line, extraction_line
from hopbench.eval.answering.judge.sample import Sample
from hopbench.eval.types import Benchmark
from hopbench.retrieval.types import Passage

SENTENCE = "诺港的造船厂共建造了两百多艘渡轮。"  # 18 tokens of o200k_base


def test_an_answer_costs_the_tokens_of_its_context_in_every_script() -> None:
    short, long = (Sample("q", "造船厂在哪里？", (SENTENCE * times,), "诺港", "诺港") for times in (10, 20))

    difference = answer_line("bm25", [long], 3).tokens_in - answer_line("bm25", [short], 3).tokens_in

    assert 3 * 10 * 18 == pytest.approx(difference, rel=0.02)


def test_reading_triples_costs_the_tokens_of_the_passages_in_every_script() -> None:
    short, long = (Benchmark("b", (Passage("p", "", SENTENCE * times),), ()) for times in (10, 20))

    difference = extraction_line(long, 0).tokens_in - extraction_line(short, 0).tokens_in

    assert 10 * 18 == pytest.approx(difference, rel=0.02)
