"""Read the fields before a Markdown file's text, in YAML or TOML."""

from __future__ import annotations

import re
import tomllib
from typing import Any, NamedTuple

from hopbench.retrieval.support.input_files import YamlError, parse_yaml

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_BLANK_LINE = re.compile(r"[ \t]*\r?\n")
_SUMMARIES = ("description", "subtitle", "summary", "excerpt")


class FrontMatter(NamedTuple):
    """The title as it is written, what the fields say of the page, their text, and why they cannot be read."""

    title: str = ""
    summary: str = ""
    fields: str = ""
    fault: str = ""


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Split a file into its front matter and the rest.

    What are no named fields stays in the text, with the reason where it is broken YAML or TOML. A `---` before a blank
    line is a rule, as in Pandoc, unless a title stands below it.
    """
    found = _FRONT_MATTER.match(text)
    if not found:
        return FrontMatter(), text
    fields, yaml = found[2], found[1] == "---"
    try:
        facts = parse_yaml(fields, "front matter") if yaml else tomllib.loads(fields)
    except YamlError as error:
        return FrontMatter(fault=f"is not YAML ({error.problem}, line {error.line + 1})"), text
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return FrontMatter(fault=f"is not TOML ({error}, counted from line 2)"), text
    if not isinstance(facts, dict) or ("title" not in facts and _BLANK_LINE.match(fields)):
        return FrontMatter(), text
    given = (facts.get(name) for name in _SUMMARIES)
    summary = next((" ".join(one.split()) for one in given if isinstance(one, str) and one.strip()), "")
    return FrontMatter(_title(facts.get("title"), fields, yaml), summary, fields), text[found.end() :]


def _title(title: Any, fields: str, yaml: bool) -> str:
    """A number, date or boolean is a title as the file has it."""
    if title is None or isinstance(title, dict | list):
        return ""
    if isinstance(title, str):
        return title
    if yaml:
        return _yaml_title(fields, str(title))
    return str(title).lower() if isinstance(title, bool) else str(title)


def _yaml_title(fields: str, default: str) -> str:
    from yaml import MappingNode, SafeLoader, ScalarNode, compose

    root = compose(fields, SafeLoader)
    for key, value in root.value if isinstance(root, MappingNode) else ():
        if key.value == "title" and isinstance(value, ScalarNode):
            return str(value.value)
    return default
