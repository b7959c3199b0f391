#!/usr/bin/env bash
# pyarrow 25.0.1. Expected: to_pylist of a Parquet file with two columns of one name raises, or gives both.
# Observed: each row has the last of them alone; nothing is said.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==25.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import pyarrow as pa
import pyarrow.parquet as pq

table = pa.Table.from_arrays([pa.array(["first"]), pa.array(["second"])], names=["text", "text"])
pq.write_table(table, "twice.parquet")
read = pq.ParquetFile("twice.parquet").read()
rows = read.to_pylist()
print("pyarrow", pa.__version__)
print("columns:", read.column_names, "rows:", rows)
assert len(rows[0]) == 1
PY
