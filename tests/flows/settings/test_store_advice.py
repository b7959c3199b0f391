"""When a graph is too large for the embedded engine."""

from __future__ import annotations

from hopbench.flows.graph.build import store_advice


def test_only_a_large_corpus_in_the_embedded_engine_is_advised() -> None:
    assert store_advice("kglite", 100_000) is None
    assert store_advice("arrays", 5_000_000) is None
    assert store_advice("neo4j", 5_000_000) is None
    # 30 kB and 10 kB a passage
    advice = store_advice("kglite", 1_000_000)
    assert advice is not None
    assert advice.startswith(
        "kglite needs some 30 GB to write the graph of 1,000,000 passages and 10 GB in each process"
    )
    assert "--store arrays" in advice
