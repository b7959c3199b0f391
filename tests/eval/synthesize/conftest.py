"""A small fictional world, indexed once, and questions made from it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.graphs import built_index, plan_of
from tools.hopworld.write import write_benchmark

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.synthesize.generate import Generator, Recipe, Searched
from hopbench.eval.types import Benchmark
from hopbench.retrieval.embedding.models import WordLlamaEmbedder


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    folder = tmp_path_factory.mktemp("synthesize") / "world"
    write_benchmark(folder, 9, 200, 4)
    return load_benchmark(folder)


@pytest.fixture(scope="session")
def generator(world: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Generator:
    plan = plan_of(world.passages, embedder=WordLlamaEmbedder())
    return Generator(built_index(plan, tmp_path_factory.mktemp("synthesize-index")))


MADE = Recipe(questions=20, seed=3)


@pytest.fixture(scope="session")
def made(generator: Generator) -> Sequence[Searched]:
    return generator.make(MADE).questions
