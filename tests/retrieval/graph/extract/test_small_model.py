"""A real model reads a passage: every reply has the form that was asked for. What 135 million parameters say is no
evidence of anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.llm_servers.small_model import MODEL

from hopbench.eval.benchmarks import load_benchmark
from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.graph.extract.model import TripleReader
from hopbench.retrieval.llm import LLM, CallLedger, Endpoint, Settings


@pytest.mark.soak  # `make test` asks the real model once, as a judge
def test_a_real_model_reads_a_passage_in_the_wanted_form(small_model_url: str, tmp_path: Path) -> None:
    chunks = chunk_passages(sorted(load_benchmark("hopworld").passages, key=lambda one: len(one.text))[:1])
    ledger = CallLedger()
    settings = Settings(timeout=120, concurrency=1, max_concurrency=1)
    with LLM(Endpoint(MODEL, small_model_url), tmp_path, ledger, settings) as llm:
        reader = TripleReader(llm, passages_per_call=1, max_triples=1)
        (triples, unread), again = reader.read(chunks), reader.read(chunks)
    totals = ledger.totals()["extract"]
    ledger.close()
    assert {} == unread
    assert (triples, unread) == again
    # One call was sent, the second reading came from the cache; the endpoint counted tokens.
    assert (2, 1, 0, 1) == (totals.calls, totals.cached, totals.failed, totals.attempts)
    assert totals.tokens_in > 0
    assert totals.tokens_out > 0
    assert all(0.1 <= triple.confidence <= 1.0 for triple in triples)
