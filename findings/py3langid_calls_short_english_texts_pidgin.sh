#!/usr/bin/env bash
# py3langid 0.4.0. Expected: short plain English sentences are told to be English.
# Observed: some are told to be Nigerian Pidgin (pcm).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check py3langid==0.4.0
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
from importlib.metadata import version

import py3langid

texts = [
    "The dog sat on the mat.", "He go to the market with him brother.", "Set the flag to false.", "Water flows down.",
    "This option sets the port of the server.", "Run the command again.", "They come from the village.", "Make sure say it works.",
    "Who made the film?", "It has no effect.", "Dem boats dey the harbour.", "The bank is near the river.", "See the next page.",
]
told = {text: str(py3langid.classify(text)[0]) for text in texts}
print("py3langid", version("py3langid"))
for text, language in told.items():
    print(language, text)
PY
