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
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, NODE_COLUMNS

GOLDEN = Path(__file__).parent / "golden" / "cypher"
UPDATE = "HOPBENCH_UPDATE_GOLDEN=1 pytest tests/retrieval/graph/test_cypher_golden.py"


def queries() -> Mapping[str, str]:
    """Every query of the module: its public text constants, and the exports of each node label and edge type."""
    texts = {name: text for name, text in vars(cypher).items() if name.isupper() and isinstance(text, str)}
    texts = {name: text for name, text in texts.items() if not name.startswith("_")}
    texts |= {f"export_nodes_{label}": cypher.export_nodes(label) for label in NODE_COLUMNS}
    return texts | {f"export_edges_{kind}": cypher.export_edges(kind) for kind in EDGE_COLUMNS}


@pytest.mark.parametrize("name", queries())
def test_a_query_reads_as_reviewed(name: str) -> None:
    file = GOLDEN / f"{name}.cypher"
    text = queries()[name].strip() + "\n"
    if os.environ.get("HOPBENCH_UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.exists(), (
        f"hopbench.retrieval.graph.cypher.{name} has no golden text yet: {UPDATE}, and commit {file.name}"
    )
    assert file.read_text(encoding="utf-8") == text, f"{name} is not as reviewed; if that is meant: {UPDATE}"


def test_no_golden_text_is_left_of_a_query_that_is_gone() -> None:
    left = {file.stem for file in GOLDEN.glob("*.cypher")} - queries().keys()

    assert not left, f"delete from {GOLDEN}: {sorted(left)}"


def test_no_module_beside_those_of_cypher_has_query_text() -> None:
    root = Path(cypher.__file__).parents[1]
    writing = re.compile(r"\bMATCH \(|\bUNWIND \$")
    modules = [file for file in sorted(root.rglob("*.py")) if not file.stem.endswith("cypher")]
    found = [file.name for file in modules if writing.search(file.read_text(encoding="utf-8"))]

    assert [] == found


@pytest.mark.parametrize("name", queries())
def test_a_query_is_bound_to_its_namespace_and_has_values_only_as_parameters(name: str) -> None:
    text = queries()[name]

    assert "$namespace" in text
    assert not re.search(r"""\bid: *['"]|\{\w+: *\d""", text)
