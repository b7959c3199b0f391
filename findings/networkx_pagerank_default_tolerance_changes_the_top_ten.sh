#!/usr/bin/env bash
# networkx 3.6.1 against igraph 1.0.0. Expected: the ten highest pages of a graph do not depend on the library.
# Observed: with the default tolerance (1e-6 of the whole vector) the order of networkx's top ten differs from the exact one on some graphs
# of 20,000 nodes; tol=1e-12 gives the same.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check networkx==3.6.1 igraph==1.0.0 scipy==1.17.1 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import igraph
import networkx as nx


def top(scores):
    return [node for node, _ in sorted(enumerate(scores), key=lambda pair: (-pair[1], pair[0]))[:10]]


differing = []
for seed in range(6):
    graph = nx.barabasi_albert_graph(20_000, 2, seed=seed)
    exact = top(igraph.Graph(n=20_000, edges=list(graph.edges)).pagerank())
    loose, tight = (nx.pagerank(graph, **how) for how in ({}, {"tol": 1e-12, "max_iter": 500}))
    loose, tight = (top([scores[node] for node in range(20_000)]) for scores in (loose, tight))
    if loose != exact:
        differing.append(seed)
    assert tight == exact
print("networkx", nx.__version__, "igraph", igraph.__version__)
print("graphs whose top ten differs with the default tolerance:", differing)
assert differing
PY
