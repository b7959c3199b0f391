#!/usr/bin/env bash
# faiss-cpu 1.15.1. Expected: in an HNSW index every vector finds itself, whatever else is in the index.
# Observed: where 400 of 1,500 vectors are equal, some of the others are never found, however broad the search (efSearch):
# equal vectors take each other as neighbours, and the graph falls apart.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check faiss-cpu==1.15.1 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import faiss
import numpy as np

rng = np.random.default_rng(0)
vectors = rng.standard_normal((1500, 32)).astype("float32")
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
faiss.omp_set_num_threads(1)


def lost(copies):
    rows = vectors.copy()
    rows[:copies] = vectors[0]
    index = faiss.IndexHNSWFlat(32, 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 200
    index.add(rows)
    index.hnsw.efSearch = 1024
    found = index.search(rows[copies:], 1)[1][:, 0]
    return int((found != np.arange(copies, 1500)).sum())


print("faiss", faiss.__version__)
counts = {copies: lost(copies) for copies in (0, 400)}
print("vectors that do not find themselves, by number of equal vectors:", counts)
assert counts[0] == 0 and counts[400] > 0
PY
