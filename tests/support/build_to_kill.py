"""Builds a graph of random passages in a folder: what a test runs in processes of its own, kills and compares."""

from __future__ import annotations

from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
from tests.support.graphs import WordEmbedder, plain, plan_of

from hopbench.retrieval.embedding.cache import CachedEmbedder, EmbeddingCache
from hopbench.retrieval.graph.construction.builder import build_graph
from hopbench.retrieval.graph.stores.contents import export, fingerprint
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.types import Passage

WORDS = "Ada Bo Cyd Dan Eve Fay Gus Hal Ivo Jan river film born city wrote music guild stone won sings".split()


def corpus(count: int) -> list[Passage]:
    """Passages of random words, some of which are names."""
    generator = np.random.default_rng(7)
    passages = []
    for number in range(count):
        title, *parts = (" ".join(generator.choice(WORDS, 7)) for _ in range(4))
        passages.append(Passage(f"p{number}", f"{WORDS[number % 10]} {title}", "It " + ". It ".join(parts) + "."))
    return passages


def build(folder: Path, count: int, ready: Event, done: Path) -> None:
    """Set `ready`, build or go on building, and write the fingerprint of what the store then holds to `done`."""
    embedder = CachedEmbedder(WordEmbedder(), EmbeddingCache(folder / "embeddings"))
    plan = plan_of(corpus(count), embedder=embedder)
    store = KgliteStore(folder / "graphs", plan.namespace)
    ready.set()
    build_graph(plan, store, folder / "staging", plain)
    store.close()
    done.write_text(fingerprint(export(store)))
