"""The front matter of a Markdown file: YAML between two `---`, or TOML between two `+++`."""

from __future__ import annotations

import re
import tomllib
from typing import Any, NamedTuple

from hopbench.retrieval.support.yaml_file import YamlError, parse_yaml

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_BLANK_LINE = re.compile(r"[ \t]*\r?\n")


class FrontMatter(NamedTuple):
    """The title as it is written, the fields' text, the rest of the file, and what keeps the fields from being read."""

    title: str
    fields: str
    body: str
    fault: str = ""


def split_front_matter(text: str) -> FrontMatter:
    """Split a file; what are no named fields stays in the text, with a fault where it is broken YAML or TOML.

    A `---` before a blank line is a rule, as in Pandoc, unless a title stands below it.
    """
    found = _FRONT_MATTER.match(text)
    if not found:
        return FrontMatter("", "", text)
    yaml = found[1] == "---"
    try:
        facts = parse_yaml(found[2], "front matter") if yaml else tomllib.loads(found[2])
    except YamlError as error:
        place = f"line {error.line + 1}" if error.line else "line 1"
        return FrontMatter("", "", text, f"is not YAML ({error.problem}, {place})")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return FrontMatter("", "", text, f"is not TOML ({error}, counted from line 2)")
    if not isinstance(facts, dict) or ("title" not in facts and _BLANK_LINE.match(found[2])):
        return FrontMatter("", "", text)
    title = facts.get("title")
    return FrontMatter(_as_written(title, found[2], yaml), found[2], text[found.end() :])


def _as_written(title: Any, fields: str, yaml: bool) -> str:
    """A title that YAML or TOML takes for a number, date or boolean, as the file has it."""
    if isinstance(title, str):
        return title
    if title is None or isinstance(title, dict | list):
        return ""
    if not yaml:
        return str(title).lower() if isinstance(title, bool) else str(title)
    return next((value for key, value in _scalars(fields) if key == "title"), str(title))


def _scalars(fields: str) -> list[tuple[str, str]]:
    from yaml import SafeLoader, ScalarNode, compose

    root = compose(fields, SafeLoader)
    pairs: list[tuple[Any, Any]] = root.value if root is not None else []
    return [(key.value, value.value) for key, value in pairs if isinstance(value, ScalarNode)]
