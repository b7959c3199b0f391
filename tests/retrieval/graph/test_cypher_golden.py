"""Every Cypher text is pinned: a change of a query is a change of its file here, for a reviewer to see.

After a change that is meant: HOPBENCH_UPDATE_GOLDEN=1 pytest tests/retrieval/graph/test_cypher_golden.py, then read the
diff.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.cypher import neo4j
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, NODE_COLUMNS

GOLDEN = Path(__file__).parent / "golden" / "cypher"
LABELS = {"NODE", "BUILD", "BUILDING"}  # the other constants of `neo4j` are queries
NEO4J_CONSTANTS = (
    {name for name, text in vars(neo4j).items() if name.isupper() and isinstance(text, str)}
    - LABELS
    - {*("CHUNK", "DOCUMENT", "ENTITY")}
)
UPDATE = "HOPBENCH_UPDATE_GOLDEN=1 pytest tests/retrieval/graph/test_cypher_golden.py"


def queries() -> Mapping[str, str]:
    """Every query of the module: its public text constants, and the exports of each node label and edge type."""
    texts = {name: text for name, text in vars(cypher).items() if name[0].isupper() and "RETURN" in str(text)}
    texts = {name: text for name, text in texts.items() if isinstance(text, str)}
    texts |= {f"export_nodes_{label}": cypher.EXPORTS[label] for label in NODE_COLUMNS}
    return texts | {f"export_edges_{kind}": cypher.EXPORTS[kind] for kind in EDGE_COLUMNS}


def mapped_queries() -> Mapping[str, str]:
    """Those of them that are other texts for a graph where several relationships may join a pair."""
    joined = {f"one_each_{name}": neo4j.one_each(text) for name, text in queries().items()}
    return {name: text for name, text in joined.items() if text != queries()[name.removeprefix("one_each_")]}


def neo4j_statements() -> Mapping[str, str]:
    """What only Neo4j runs: its text constants, its schema, pages, and the writing of each label and type."""
    texts = {f"neo4j_{name}": text for name, text in vars(neo4j).items() if name in NEO4J_CONSTANTS}
    names = {text: name for name, text in queries().items()}
    for query, parts in cypher.PARTS.items():
        texts |= {f"neo4j_page_{names[query]}_{number}": part.page() for number, part in enumerate(parts)}
    texts |= {f"neo4j_page_ends_{label}": neo4j.page_ends(label) for label in NODE_COLUMNS}
    texts["neo4j_schema"] = ";\n".join(neo4j.schema_statements().values())
    texts |= {f"neo4j_write_nodes_{label}": neo4j.write_nodes(label) for label in NODE_COLUMNS}
    texts |= {f"neo4j_write_edges_{kind}": neo4j.write_edges(kind) for kind in EDGE_COLUMNS}
    texts |= {f"neo4j_write_parallel_edges_{kind}": neo4j.write_edges(kind, parallel=True) for kind in EDGE_COLUMNS}
    texts |= {f"neo4j_write_vectors_{label}": neo4j.write_vectors(label) for label in neo4j.VECTOR_INDEX}
    return texts | {f"neo4j_nearest_nodes_{label}": neo4j.nearest_nodes(label) for label in neo4j.VECTOR_INDEX}


def every_text() -> Mapping[str, str]:
    return {**queries(), **mapped_queries(), **neo4j_statements()}


@pytest.mark.parametrize("name", every_text())
def test_a_query_reads_as_reviewed(name: str) -> None:
    file = GOLDEN / f"{name}.cypher"
    text = every_text()[name].strip() + "\n"
    if os.environ.get("HOPBENCH_UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.exists(), (
        f"hopbench.retrieval.graph.cypher.{name} has no golden text yet: {UPDATE}, and commit {file.name}"
    )
    assert file.read_text(encoding="utf-8") == text, f"{name} is not as reviewed; if that is meant: {UPDATE}"


@pytest.mark.parametrize("name", every_text())
def test_no_query_counts_over_a_chain(name: str) -> None:
    """kglite 0.21.2 counts 0 for `(a)-[]-()-[]-(b)`, whose rows it returns; each query counts over one hop."""
    two_hops = re.compile(r"\][->]+\([^)]*\)[<-]+\[")

    assert [] == two_hops.findall(every_text()[name])
    assert two_hops.findall("MATCH (a)-[r]-(b:B {id: 1})-[s]->(c) RETURN count(*)")


def test_no_golden_text_is_left_of_a_query_that_is_gone() -> None:
    left = {file.stem for file in GOLDEN.glob("*.cypher")} - every_text().keys()

    assert not left, f"delete from {GOLDEN}: {sorted(left)}"


def test_no_module_outside_the_package_has_query_text() -> None:
    package = Path(cypher.__file__).parent
    writing = re.compile(r"\b(MATCH|MERGE) \(|\bUNWIND \$|\bCALL db\.")
    modules = [file for file in sorted(package.parents[1].rglob("*.py")) if not file.is_relative_to(package)]
    found = [file.name for file in modules if writing.search(file.read_text(encoding="utf-8"))]

    assert [] == found


@pytest.mark.parametrize("name", queries())
def test_a_query_is_bound_to_its_namespace_and_has_values_only_as_parameters(name: str) -> None:
    text = queries()[name]

    assert "$namespace" in text
    assert not re.search(r"""\bid: *['"]|\{\w+: *\d""", text)
