#!/usr/bin/env bash
# markdown-it-py 4.3.0. Expected: parsing the inline content of a block oneself (md.inline.parse) gives the same text as md.parse.
# Observed: entities and escapes become tokens of type text_special, which only the core rule text_join turns into text: whoever
# collects `text` tokens from the inline parser drops them ("AT&amp;T" reads "ATT").
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check markdown-it-py==4.3.0
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
from importlib.metadata import version

from markdown_it import MarkdownIt

source = "AT&amp;T costs 5 \\* 3"
md = MarkdownIt("commonmark")
whole = [token.content for block in md.parse(source) for token in block.children or [] if token.type == "text"]
tokens = []
md.inline.parse(source, md, {}, tokens)
own = [token.content for token in tokens if token.type == "text"]
print("markdown-it-py", version("markdown-it-py"))
print("md.parse:", whole, "md.inline.parse:", own, "types:", sorted({token.type for token in tokens}))
assert "".join(whole) == "AT&T costs 5 * 3" and "".join(own) != "".join(whole)
PY
