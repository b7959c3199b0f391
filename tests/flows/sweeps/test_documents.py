"""A sweep file for each source document: its own settings by its own names, and nothing else."""

from __future__ import annotations

import pytest
import yaml
from tests.support.places import ROOT

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.sweep.plan import read_sweep
from hopbench.retrieval.strategies.registry import make

SWEEPS = ROOT / "flows" / "sweeps"
# Document → strategy, and the settings that the document names with a value or a range.
SETTINGS = {
    1: (
        "graph_expansion",
        "top_k max_expansion_depth similarity_threshold max_expanded_chunks min_score_threshold chunk_weight",
    ),
    2: ("expansion_queries", "depth min_weight limit"),
    3: ("activation", "MAX_DEPTH MIN_ACTIVATION TAG_SIM_FLOOR MAX_BRANCHES"),
    4: (
        "entity_expansion",
        "graph_expansion_hops graph_min_entities_threshold graph_max_synonyms_per_entity "
        "graph_semantic_reranking_enabled",
    ),
    5: ("neighborhood", "maxHops maxChunks minScore alpha graphWeight useGraph"),
}


@pytest.mark.parametrize("number", SETTINGS)
def test_it_varies_the_documents_settings_on_a_tuning_set(number: int) -> None:
    strategy, names = SETTINGS[number]
    file = SWEEPS / f"document-{number}.yaml"
    raw = yaml.safe_load(file.read_text(encoding="utf-8"))

    assert (strategy, names.split()) == (raw["strategy"], list(raw["grid"]))
    assert "base" not in raw  # the rest stays as documented
    assert ["tune"] == [load_benchmark(name).role for name in raw["datasets"]]


@pytest.mark.parametrize("number", SETTINGS)
def test_its_trials_hold_the_document_as_it_is(number: int) -> None:
    strategy, _ = SETTINGS[number]
    candidates = read_sweep(SWEEPS / f"document-{number}.yaml").candidates

    assert make(strategy) in [candidate.strategy for candidate in candidates]
    assert all(candidate.label == strategy or f"{strategy}[" in candidate.label for candidate in candidates)
