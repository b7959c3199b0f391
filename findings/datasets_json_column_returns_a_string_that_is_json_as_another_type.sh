#!/usr/bin/env bash
# datasets 5.2.0. Expected: load_dataset("json") returns each value with the type that the file has.
# Observed: a column of mixed types is kept as JSON text in which a string that is itself JSON stands without quotes: the string
# "1984" comes back as the number 1984.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check datasets==5.2.0
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import json
import os

os.environ["HF_HUB_OFFLINE"] = "1"
import datasets

rows = [{"answer": "1984"}, {"answer": ["Orwell"]}]
with open("rows.jsonl", "w") as file:
    file.writelines(json.dumps(row) + "\n" for row in rows)
read = datasets.load_dataset("json", data_files="rows.jsonl", split="train", cache_dir="cache")
print("datasets", datasets.__version__)
print("features:", read.features)
print("written:", rows, "read:", list(read))
assert list(read)[0]["answer"] != "1984"
PY
