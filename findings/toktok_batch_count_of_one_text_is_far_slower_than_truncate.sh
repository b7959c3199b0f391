#!/usr/bin/env bash
# toktok-rs 0.3.0. Expected: counting the tokens of one text costs about the same by every function.
# Observed: batch_count of a list of one short text takes more than ten times as long as truncate, which also returns the count.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check toktok-rs==0.3.0
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import timeit
from importlib.metadata import version

import toktok

text = "The Ardmore Yard lies in Norhaven and opened in 1888."
toktok.truncate(text, 10_000, "o200k_base")
batch, single = (
    min(timeit.repeat(function, number=2000, repeat=3)) / 2000 * 1e6
    for function in (lambda: toktok.batch_count([text], "o200k_base"), lambda: toktok.truncate(text, 10_000, "o200k_base"))
)
print("toktok-rs", version("toktok-rs"))
print(f"microseconds: batch_count {batch:.1f}, truncate {single:.1f}")
assert batch > 5 * single
PY
