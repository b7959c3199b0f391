"""Markdown, with or without front matter, read by markdown-it-py (CommonMark and tables)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hopbench.eval.benchmarks.documents.document import Document, Outline, UnreadableError
from hopbench.eval.benchmarks.documents.html import text_of
from hopbench.retrieval.support.yaml_file import YamlError, parse_yaml

if TYPE_CHECKING:
    from markdown_it.token import Token

NESTING_LIMIT = 60  # levels; the parser leaves out what is deeper
PARAGRAPH_LIMIT = 5000  # characters; a longer paragraph keeps its markup
_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n(.*?)^\1[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def read_markdown(text: str) -> Document:
    """The sections by heading; the title is the front matter's, else the first heading's."""
    facts, body = split_front_matter(text)
    outline = Outline()
    first = _read(_parse(body), outline)
    title = facts.get("title")
    return Document(title if isinstance(title, str) and title.strip() else first, outline.sections())


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The fields of YAML (`---`) or TOML (`+++`) front matter, and the rest; what does not parse stays in the text."""
    found = _FRONT_MATTER.match(text)
    if not found:
        return {}, text
    try:
        facts = parse_yaml(found[2], "front matter") if found[1] == "---" else tomllib.loads(found[2])
    except (YamlError, tomllib.TOMLDecodeError, RecursionError):
        return {}, text
    return (facts, text[found.end() :]) if isinstance(facts, dict) else ({}, text)


def _parse(text: str) -> Sequence[Token]:
    """The blocks, the text of each parsed where it is not too long: the parser takes quadratic time in its length."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": NESTING_LIMIT}).enable("table")
    parser.core.ruler.disable("inline")
    known: dict[str, Any] = {}
    tokens = parser.parse(text, known)
    if any(token.level >= NESTING_LIMIT - 1 for token in tokens):
        raise UnreadableError(f"nests lists or quotes over {NESTING_LIMIT} levels deep: write it flatter")
    for token in tokens:
        if token.type == "inline" and len(token.content) <= PARAGRAPH_LIMIT:
            token.children = []
            parser.inline.parse(token.content, parser, known, token.children)
    return tokens


def _read(tokens: Sequence[Token], outline: Outline) -> str:
    """Put the blocks into `outline`; returns the first heading."""
    first, row = "", list[str]()
    for before, token in zip([None, *tokens], tokens, strict=False):
        match token.type:
            case "inline" if before is not None and before.type == "heading_open":
                heading = _words(token)
                first = first or heading
                outline.heading(int(before.tag[1:]), heading)
            case "inline" if before is not None and before.type in ("th_open", "td_open"):
                row.append(_words(token))
            case "tr_close":
                outline.paragraph(" | ".join(filter(None, row)))
                row = []
            case "inline":
                outline.paragraph(_words(token))
            case "fence" | "code_block":
                outline.paragraph(token.content)
            case "html_block":
                outline.paragraph(text_of(token.content))
    return first


def _words(inline: Token) -> str:
    """An inline token's text without markup; an image counts by its alternative text."""
    if inline.children is None:
        return " ".join(inline.content.split())
    parts = []
    for token in inline.children:
        if token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type in ("text", "code_inline", "image"):
            parts.append(token.content)
    return " ".join("".join(parts).split())
