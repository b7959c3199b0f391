#!/usr/bin/env bash
# faiss-cpu 1.15.1. Expected: a flat search orders equal results alike for both metrics, say by row.
# Observed: both keep the three lowest of five equal rows, but by inner product they come back in reverse order.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check faiss-cpu==1.15.1 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import faiss
import numpy as np

row = np.eye(1, 8, dtype="float32")
product, distance = faiss.IndexFlatIP(8), faiss.IndexFlatL2(8)
for index in (product, distance):
    index.add(np.repeat(row, 5, axis=0))
found = [index.search(row, 3)[1][0].tolist() for index in (product, distance)]
print("faiss", faiss.__version__)
print("5 equal rows, 3 asked for: inner product", found[0], "L2", found[1])
assert found[1] == [0, 1, 2] and found[0] == sorted(found[0], reverse=True)
PY
