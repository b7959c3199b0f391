"""`graph list` of graphs in Neo4j."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.flows.cli.conftest import call, write_benchmark

from hopbench.flows.graph.commands import graphs
from hopbench.flows.settings.home import Home, open_store
from hopbench.retrieval.graph.stores.neo4j_connection import Connection


@pytest.mark.neo4j
def test_graphs_in_neo4j_are_listed_too(
    neo4j_connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    bench, home = write_benchmark(tmp_path / "tiny"), tmp_path / "home"
    built = call("graph", "build", "--no-prefect", "--dataset", bench, home=home)
    assert (0, "") == (built.code, built.err)
    server = {name: str(getattr(neo4j_connection, name)) for name in ("uri", "username", "password")}
    named = {f"NEO4J_{name.upper()}": value for name, value in server.items()}
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    copied = call(
        "graph", "copy", "--dataset", bench, "--from", "kglite", "--to", "neo4j", home=home, environment=named
    )
    assert 0 == copied.code, copied.err
    listed, notes = graphs(Home(home), "neo4j")
    found = [one for one in listed if one.namespace in copied.out]
    assert ([], 1) == (notes, len(found))
    (same,) = [one for one in graphs(Home(home), "kglite")[0] if one.namespace == found[0].namespace]
    assert (same.build_key, same.fingerprint, same.nodes, same.edges, same.built) == (
        found[0].build_key,
        found[0].fingerprint,
        found[0].nodes,
        found[0].edges,
        found[0].built,
    )
    open_store("neo4j", found[0].namespace, Home(home)).drop()
