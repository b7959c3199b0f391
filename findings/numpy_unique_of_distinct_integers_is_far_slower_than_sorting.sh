#!/usr/bin/env bash
# numpy 2.4.6. Expected: the distinct values of whole numbers cost about as much as sorting them.
# Observed: since NumPy 2.3 `unique` hashes whole numbers, which takes more than ten times as long as `sort` where most values are
# distinct.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import time

import numpy as np

values = np.random.default_rng(0).integers(0, 1 << 62, 2_000_000)


def seconds(function):
    best = float("inf")
    for _ in range(3):
        begun = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - begun)
    return best


unique, sort = seconds(lambda: np.unique(values)), seconds(lambda: np.sort(values.copy()))
print("numpy", np.__version__)
print(f"2,000,000 distinct numbers: unique {unique:.2f} s, sort {sort:.3f} s, ratio {unique / sort:.0f}")
assert unique > 5 * sort
PY
