"""On real triples: no line of any block turns a relation round, and entities are described."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.graphs import built_index, plan_of

from hopbench.eval.benchmarks import load_benchmark, load_triples
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.graph.schema import ENTITY
from hopbench.retrieval.graph.stores.contents import export
from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.text import name_key
from hopbench.retrieval.types import Counters

pytestmark = pytest.mark.benchmarks
LINE = re.compile(r'^- (.+?) (->|<->) (.+?): "(.*?)"', re.MULTILINE)


Fact = tuple[tuple[str, ...], str, tuple[str, ...]]


def told(blocks: list[str]) -> Iterator[Fact]:
    """Subject, relation and object of each line, names by their words."""
    for block in blocks:
        for subject, sign, thing, relation in LINE.findall(block.replace("\n  ", " ")):
            assert "->" == sign
            yield name_key(subject), relation, name_key(thing)


def test_no_line_is_turned_round_and_entities_are_described(benchmarks_dir: Path, tmp_path: Path) -> None:
    """Before relations kept their direction, 312 of the 807 lines with names as in a triple were turned round."""
    folder = benchmarks_dir / "2wiki-kg100"
    benchmark = load_benchmark(folder)
    triples = load_triples(folder / "kg" / "triples.jsonl", [passage.id for passage in benchmark.passages])
    index = built_index(plan_of(benchmark.passages, triples=triples, embedder=get_embedder("wordllama")), tmp_path)
    batch = Batch(index, [question.question for question in benchmark.questions])
    blocks = [one.graph_context for one in make("neighborhood").rank(batch, Counters()) if one.graph_context]
    stated = {(name_key(one.subject), one.relation, name_key(one.object)) for one in triples}
    lines = list(told(blocks))

    assert 97 == len(blocks)
    assert len(lines) > 600  # the descriptions take their part of the 500 tokens
    assert [] == [line for line in lines if line not in stated]
    described = (export(index.store).nodes[ENTITY]["description"] != "").mean()
    assert described >= 0.9
    assert all("\nDescription: " in block for block in blocks)
