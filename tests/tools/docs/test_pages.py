"""The parameter tables of docs/strategies.md are what the registry says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from xml.etree import ElementTree

import pytest
from tests.support.places import ROOT
from tools.docs.pages import alias_table, parameter_table, with_parameters

from hopbench.retrieval.strategies.base import param
from hopbench.retrieval.strategies.baselines import Vector
from hopbench.retrieval.strategies.registry import registry
from hopbench.retrieval.support.errors import UnknownNameError

DOCS = ROOT / "docs"
PAGE = (DOCS / "strategies.md").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Sample(Vector):
    name: ClassVar[str] = "sample"
    edges: ClassVar[tuple[str, ...]] = ("SIMILAR_TO",)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {"SIMILAR_TO": {"use": False}}

    share: float = param(0.25, "how much", 0.0, 1.0)
    way: str = param("a", "which | of both", choices=("a", "b"))
    use: bool = param(True, "follow it")
    types: str = param("", "only these", aliases=["kinds", "relTypes"])


def test_a_table_has_a_row_for_every_parameter_and_the_ablations() -> None:
    assert parameter_table(Sample).splitlines() == [
        "| parameter | default | bounds | meaning |",
        "| --- | --- | --- | --- |",
        "| `fill` | true | true or false | complete rankings shorter than 20 from the initial ranking |",
        "| `share` | 0.25 | 0..1 | how much |",
        "| `way` | a | one of a, b | which \\| of both |",
        "| `use` | true | true or false | follow it |",
        "| `types` | (empty) | text | only these |",
        "",
        "Edges, each with what its ablation sets: SIMILAR_TO (`use=false`).",
    ]


def test_the_documents_names_stand_in_a_table_of_their_own() -> None:
    assert alias_table([Vector, Sample]).splitlines() == [
        "| source | its name | here | default | bounds |",
        "| --- | --- | --- | --- | --- |",
        "| exact cosine of question and chunk embeddings | `kinds`, `relTypes` | `sample.types` | (empty) | text |",
    ]
    page = with_parameters("<!-- aliases -->\nbefore\n<!-- /aliases -->\n")
    assert "| ADR-041 entity expansion | `graph_expansion_hops` | `entity_expansion.hops` | 1 | 1..3 |\n" in page
    assert "before" not in page


def test_a_tuned_preset_has_a_column() -> None:
    lines = parameter_table(registry().get("pagerank")).splitlines()
    assert lines[0] == "| parameter | default | tuned | bounds | meaning |"
    assert any(line.startswith("| `seed_chunks` | 3 | ") for line in lines)


def test_only_the_blocks_are_replaced() -> None:
    page = "before\n<!-- parameters vector -->\nold\n<!-- /parameters -->\nafter\n"
    new = with_parameters(page)
    assert new.startswith("before\n<!-- parameters vector -->\n| parameter |")
    assert new.endswith("initial ranking |\n<!-- /parameters -->\nafter\n")
    assert "old" not in new
    assert with_parameters(new) == new


def test_a_block_of_an_unknown_strategy_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="vectr"):
        with_parameters("<!-- parameters vectr -->\n<!-- /parameters -->")


def test_the_page_is_up_to_date() -> None:
    assert with_parameters(PAGE) == PAGE, "run: python -m tools.docs.pages parameters docs/strategies.md"


@pytest.mark.parametrize("name", registry().names())
def test_every_strategy_has_its_table_and_graph_strategies_a_picture(name: str) -> None:
    section = PAGE.split(f"## {name}\n")[1].split("\n## ")[0]
    assert f"<!-- parameters {name} -->" in section
    if registry().get(name).edges:
        assert f"](images/traversal-{name}.svg)" in section
        picture = ElementTree.parse(DOCS / "images" / f"traversal-{name}.svg").getroot()
        assert picture.tag == "{http://www.w3.org/2000/svg}svg"
