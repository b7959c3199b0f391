#!/usr/bin/env bash
# ir-measures 0.4.3. Expected: one call ranks tied scores in one order for all measures.
# Observed: RR and nDCG@10 order ties by document id (as trec_eval does), RR@10 by the lines of the run: with all scores equal, RR and
# RR@10 differ although the first relevant document is within the first ten.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ir-measures==0.4.3 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
from importlib.metadata import version

import ir_measures
from ir_measures import RR, Qrel, ScoredDoc, nDCG

qrels = [Qrel("q", "d1", 1)]
run = [ScoredDoc("q", f"d{number}", 1.0) for number in range(1, 7)]
found = {str(name): round(value, 4) for name, value in ir_measures.calc_aggregate([RR, RR @ 10, nDCG @ 10], qrels, run).items()}
print("ir-measures", version("ir-measures"))
print("6 tied documents, d1 relevant and on the first line:", found)
assert found["RR"] != found["RR@10"]
PY
