"""Linking recall: what counts as an entity of the gold path, and what as recognised."""

from __future__ import annotations

from pathlib import Path

from tests.support.graphs import built_index, plan_of

from hopbench.eval.graph_quality import LinkingRecall, linking_recall
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.types import Passage

PASSAGES = (
    Passage("p1", "Ed Wood (film)", "Ed Wood is a film that Tim Burton directed."),
    Passage("p2", "Tim Burton", "Tim Burton was born in Burbank."),
    Passage("p3", "Burbank", "Burbank is a town. Tim Burton left it."),
)
LEFT = [["Tim Burton", "left", "it"]]


def asked(*questions: BenchmarkQuestion, folder: Path) -> LinkingRecall:
    return linking_recall(Benchmark("small", PASSAGES, questions), built_index(plan_of(PASSAGES), folder))


def test_a_gold_title_or_an_end_of_an_evidence_must_be_linked(tmp_path: Path) -> None:
    found = asked(
        BenchmarkQuestion("title", "Who directed Ed Wood?", gold=("p1",)),  # its qualifier is no part of the name
        BenchmarkQuestion(
            "evidence",
            "What did Tim Burton leave?",
            gold=("p3",),
            metadata={"evidences": [["Tim Burton", "left", "it"]]},
        ),
        BenchmarkQuestion("elsewhere", "What did Tim Burton leave?", gold=("p3",)),  # linked, but not on the gold path
        BenchmarkQuestion("unnamed", "Who left a town?", gold=("p2", "gone")),  # `gone` is not in the corpus
        BenchmarkQuestion("no gold", "Who directed Ed Wood?"),
        folder=tmp_path,
    )

    assert LinkingRecall(4, 2, ("elsewhere", "unnamed")) == found
    assert found.share == 0.5


def test_without_gold_there_is_nothing_to_recall(tmp_path: Path) -> None:
    assert asked(folder=tmp_path).share == 0.0
