"""The documents' names of parameters: another way to write a field, which leaves no trace in labels and ids."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from tests.support.sweeps import write_benchmark, write_sweep

from hopbench.eval.sweep.plan import read_sweep
from hopbench.retrieval.strategies.base import param
from hopbench.retrieval.strategies.baselines import Vector
from hopbench.retrieval.strategies.parameters import aliases, field_named
from hopbench.retrieval.strategies.registry import canonical_label, make, registry, resolve
from hopbench.retrieval.support.errors import InputError, ParameterError, UnknownNameError, closest_name

# Every parameter that a document names, and the field that has it; where both have one name, there is no alias.
DOCUMENTS = {
    "graph_expansion": {
        "top_k": "initial_k",
        "max_depth": "max_depth",
        "max_expansion_depth": "max_depth",
        "similarity_threshold": "min_similarity",
        "threshold": "min_similarity",
        "max_expanded": "max_expanded",
        "max_expanded_chunks": "max_expanded",
        "min_score_threshold": "min_score",
        "chunk_weight": "chunk_weight",
    },
    "expansion_queries": {"depth": "depth", "min_weight": "min_strength", "limit": "per_query"},
    "activation": {
        "MAX_DEPTH": "max_depth",
        "MIN_ACTIVATION": "min_activation",
        "min_threshold": "min_activation",
        "TAG_SIM_FLOOR": "tag_floor",
        "tag_sim_floor": "tag_floor",
        "MAX_BRANCHES": "max_branches",
    },
    "entity_expansion": {
        "graph_expansion_hops": "hops",
        "hops": "hops",
        "graph_min_entities_threshold": "min_entities",
        "graph_max_synonyms_per_entity": "max_synonyms",
        "max_per_entity": "max_synonyms",
        "graph_semantic_reranking_enabled": "semantic_reranking",
        "top_k": "max_ranked",
    },
    "neighborhood": {
        "vectorWeight": "vector_weight",
        "alpha": "alpha",
        "beta": "beta",
        "graphWeight": "beta",
        "weight": "beta",
        "maxHops": "max_hops",
        "relTypes": "rel_types",
        "minScore": "fallback_cosine",
        "maxChunks": "max_graph_chunks",
        "maxGraphChunks": "max_graph_chunks",
        "useGraph": "use_graph",
        "enabled": "use_graph",
    },
}


@pytest.mark.parametrize(("strategy", "name"), [(s, name) for s, names in DOCUMENTS.items() for name in names])
def test_every_name_of_the_documents_means_its_field(strategy: str, name: str) -> None:
    field = DOCUMENTS[strategy][name]
    kind = registry().get(strategy)
    default = kind.parameters()[field].default
    value = {bool: "false", str: "a|b"}.get(type(default)) or str(kind.parameters()[field].metadata["bounds"].high)
    label = f"{strategy}[{field}={int(float(value)) if type(default) is int else value}]"

    assert field == field_named(kind, name)
    assert [label] == list(resolve(strategy, [f"{strategy}.{name}={label[:-1].partition('=')[2]}"]))
    assert label == canonical_label(label.replace(f"[{field}=", f"[{name}="))
    assert make(label) == make(label.replace(f"[{field}=", f"[{name}="))


def test_there_are_no_other_aliases() -> None:
    declared = {name: aliases(registry().get(name)) for name in registry().names()}
    named = {s: {name: field for name, field in names.items() if name != field} for s, names in DOCUMENTS.items()}

    assert named == {name: found for name, found in declared.items() if found}


def test_an_alias_in_a_selected_label_is_the_field_too() -> None:
    found = resolve("graph_expansion[max_expansion_depth=2]", ["graph_expansion.similarity_threshold=0.8"])

    assert ["graph_expansion[max_depth=2,min_similarity=0.8]"] == list(found)


@pytest.mark.parametrize("label", ["bm25", "graph_expansion[max_depth=2]", "graph_expansion[ ", "nobody[top_k=1]"])
def test_other_labels_stay_as_they_are(label: str) -> None:
    assert label == canonical_label(label)


def test_one_parameter_by_two_names_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"graph_expansion: max_depth and max_expansion_depth are one parameter"):
        make("graph_expansion[max_depth=1,max_expansion_depth=2]")


def test_an_alias_must_not_be_a_field_or_another_alias() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Twice(Vector):
        name: ClassVar[str] = "twice"
        first: int = param(1, "first", 0, 9, aliases=["same"])
        second: int = param(1, "second", 0, 9, aliases=["same"])

    with pytest.raises(ParameterError, match="'same' names first and second: an alias names one field"):
        aliases(Twice)


def test_a_sweep_by_aliases_is_the_sweep_by_fields(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "tiny")
    entries = [
        ("graph_expansion[top_k=5]", {"max_expansion_depth": [1, 2]}, {"similarity_threshold": 0.8}),
        ("graph_expansion[initial_k=5]", {"max_depth": [1, 2]}, {"min_similarity": 0.8}),
    ]
    one, other = (
        read_sweep(write_sweep(tmp_path, strategy=strategy, grid=grid, base=base)).candidates
        for strategy, grid, base in entries
    )

    assert [candidate.label for candidate in other] == [candidate.label for candidate in one]
    assert [candidate.key for candidate in other] == [candidate.key for candidate in one]


def test_a_sweep_with_one_parameter_by_two_names_is_refused(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "tiny")
    grid = {"max_depth": [1], "max_expansion_depth": [2]}

    with pytest.raises(InputError, match=r"sweep\.yaml: .*max_depth and max_expansion_depth are one parameter"):
        read_sweep(write_sweep(tmp_path, strategy="graph_expansion", grid=grid))


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("max_dpeth", ["max_depth", "max_tags"], "max_depth"),
        ("maxdepth", ["max_depth"], "max_depth"),
        ("MAX_depth", ["max_depth"], "max_depth"),
        ("min", ["min_similarity", "min_strength"], None),  # less than half of a name
        ("min_sim", ["min_similarity", "min_strength"], "min_similarity"),
        ("similarity_threshold", ["synonym_threshold"], None),
        ("max_entities", ["min_entities"], None),
        ("max_hops", ["max_tags"], None),
        ("min_weight", ["mention_weight", "initial_weight"], None),
        ("x", ["fill"], None),
        ("", ["fill"], None),
    ],
)
def test_a_suggestion_is_a_spelling_of_the_same_name(name: str, known: list[str], expected: str | None) -> None:
    assert expected == closest_name(name, known)


def test_an_unknown_parameter_without_a_likeness_lists_the_names() -> None:
    with pytest.raises(UnknownNameError) as caught:
        make("entity_expansion[similarity_threshold=0.5]")

    assert "Did you mean" not in str(caught.value)
    assert "Known: count, fill, hops," in str(caught.value)


def test_a_misspelt_alias_is_suggested_as_it_is_spelt() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'max_expansion_depth'"):
        make("graph_expansion[max_expansion_dpeth=2]")
