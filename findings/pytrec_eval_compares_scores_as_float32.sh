#!/usr/bin/env bash
# pytrec-eval-terrier 0.5.11. Expected: scores are compared as the Python floats they are given as.
# Observed: they are compared in single precision: two scores that differ by 1e-9 are a tie, ordered by document id descending.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pytrec-eval-terrier==0.5.11 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
from importlib.metadata import version

import pytrec_eval

evaluator = pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {"recip_rank"})
clear = evaluator.evaluate({"q": {"a": 0.7, "b": 0.6}})["q"]["recip_rank"]
near = evaluator.evaluate({"q": {"a": 0.5 + 1e-9, "b": 0.5}})["q"]["recip_rank"]
print("pytrec-eval-terrier", version("pytrec-eval-terrier"))
print("recip_rank: 0.7 before 0.6:", clear, "; 0.500000001 before 0.5:", near)
assert clear == 1.0 and near == 0.5
PY
