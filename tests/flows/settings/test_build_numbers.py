"""The build numbers are declared in one place: flags, sweep files and the API have the same, with its bounds."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path

from hopbench.eval.sweep.fields import BuildValues
from hopbench.eval.sweep.space import Build
from hopbench.flows.settings.graph_options import BUILD_NUMBERS, GraphOptions
from hopbench.retrieval.graph.construction.plan import BuildSettings, build_numbers

NAMES = ["similar_top_k", "similar_floor", "max_tokens"]


def test_the_declaration_has_every_number_with_its_default() -> None:
    assert {"similar_top_k": 10, "similar_floor": 0.3, "max_tokens": 1200} == {
        name: number.default for name, number in build_numbers().items()
    }


def test_everything_that_takes_build_numbers_takes_exactly_the_declared_ones() -> None:
    assert NAMES == list(BUILD_NUMBERS)
    assert {*NAMES, "embedder", "extractor"} == {spec.name for spec in fields(Build)}
    assert {*NAMES, "embedder", "extractor"} == set(BuildValues.model_fields)
    assert set(NAMES) <= set(GraphOptions.model_fields)
    assert {*NAMES, "extractor", "recogniser", "similar", "language"} == {spec.name for spec in fields(BuildSettings)}


def test_flags_say_what_the_declaration_says() -> None:
    helps = [GraphOptions.model_fields[name].description for name in NAMES]

    assert [
        "SIMILAR_TO edges of a chunk, 1..1000 (default 10).",
        "Least similarity of such an edge, 0..1 (default 0.3).",
        "Tokens above which a passage is split (default 1200).",
    ] == helps


def test_the_command_that_builds_a_graph_can_be_pasted() -> None:
    options = GraphOptions(dataset="my docs/a", max_tokens=900, triples=Path("it's.jsonl"))
    words = ["--dataset", "my docs/a", "--triples", "it's.jsonl", "--max-tokens", "900"]
    assert ["hopbench", "graph", "build", *words] == shlex.split(options.build_command())
