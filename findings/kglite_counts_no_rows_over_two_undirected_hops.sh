#!/usr/bin/env bash
# kglite 0.21.2. Expected: count(*) is the number of rows that the same pattern returns.
# Observed: over a chain of two undirected relationships count(*) and count(c) are 0, while the pattern returns 12 rows; one hop
# is counted correctly.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check kglite==0.21.2
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
from importlib.metadata import version

import kglite

graph = kglite.KnowledgeGraph()
graph.cypher("UNWIND range(0, 4) AS i CREATE (:P {id: i})")
graph.cypher("MATCH (a:P {id: 0}), (b:P) WHERE b.id > 0 CREATE (a)-[:L]->(b)")


def ask(query):
    return [tuple(row.values()) for row in graph.cypher(query).to_list()]


chain = "MATCH (a:P)-[:L]-(b:P)-[:L]-(c:P) RETURN "
counted, rows = ask(chain + "count(*) AS n"), ask(chain + "a.id, b.id, c.id")
one_hop = ask("MATCH (a:P)-[:L]-(b:P) RETURN count(*) AS n")
print("kglite", version("kglite"))
print("rows of two undirected hops:", len(rows), "counted:", counted, "; one hop counted:", one_hop)
assert len(rows) == 12 and counted == [(0,)] and one_hop == [(8,)]
PY
