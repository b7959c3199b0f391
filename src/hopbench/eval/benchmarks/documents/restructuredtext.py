"""Read reStructuredText by docutils, with Sphinx's directives and roles; no other file is opened."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hopbench.eval.benchmarks.documents.converted import read_converted
from hopbench.eval.benchmarks.documents.document import Document, UnreadableError
from hopbench.eval.benchmarks.documents.references import LABEL

if TYPE_CHECKING:
    from docutils import nodes

LINE_LIMIT = 10_000  # characters; docutils reads no text with a longer line, and no longer substitution
SUBSTITUTION_LIMIT = 20_000  # of a text, each of which may have `LINE_LIMIT` characters
_LANGUAGE = re.compile(r'<pre class="[^"]*" lang="([^"]*)">')  # as docutils writes it
_SUBSTITUTION = re.compile(r"\|[^|\s](?:[^|\n]*[^|\s])?\|")
_SETTINGS = {
    "_disable_config": True,  # no docutils.conf of the working folder
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 3,
    "halt_level": 5,
    "warning_stream": False,
    "line_length_limit": LINE_LIMIT,
    "syntax_highlight": "none",
    "doctitle_xform": False,
    "docinfo_xform": False,
    "smart_quotes": False,
    "auto_id_prefix": "id",  # as Sphinx has it
}
_WRITER = {
    **_SETTINGS,
    "report_level": 5,
    "output_encoding": "unicode",
    "embed_stylesheet": False,
    "stylesheet_path": "",
    "math_output": "latex",
    "toc_backlinks": False,
    "footnote_backlinks": False,
    "section_self_link": False,
}


def read_restructuredtext(text: str) -> Document:
    """Read the sections by heading, with the ids that docutils and Sphinx give them; the title is the first heading."""
    if any(len(line) > LINE_LIMIT for line in text.splitlines()):
        raise UnreadableError(f"has a line of over {LINE_LIMIT:,} characters: break it into several")
    if len(_SUBSTITUTION.findall(text)) > SUBSTITUTION_LIMIT:
        raise UnreadableError(f"has over {SUBSTITUTION_LIMIT:,} substitutions: split it into several files")
    from docutils.core import publish_doctree, publish_from_doctree

    from hopbench.eval.benchmarks.documents._sphinx import register

    register(text)
    left_out: list[tuple[str, str]] = []
    tree = publish_doctree(text, settings_overrides={**_SETTINGS, "left_out": left_out})
    remarks = _kept_text(tree)
    _prepare(tree, left_out)
    labels = _with_targets(tree)
    markup = publish_from_doctree(tree, writer="html5", settings_overrides=_WRITER)
    body = _LANGUAGE.sub(r'<pre class="language-\1">', markup.partition("<body")[2].partition(">")[2])
    return replace(read_converted(body, left_out, remarks=remarks), labels=labels)


def _kept_text(tree: nodes.document) -> tuple[str, ...]:
    """Put the text that docutils could not read in the place of its message; return a remark on the first."""
    from docutils import nodes

    found = []
    for message in [*tree.findall(nodes.system_message)]:
        blocks = [one for one in message.children if isinstance(one, nodes.literal_block)]
        if blocks:
            found.append((message.get("line", 0), " ".join(message.children[0].astext().split())[:120]))
        message.parent.replace(message, blocks)
    for unresolved in [*tree.findall(nodes.problematic)]:
        unresolved.parent.replace(unresolved, nodes.Text(unresolved.astext()))
    if not found:
        return ()
    line, problem = found[0]
    where = f"{len(found)} times, first in line {line}: {problem}"
    return (f"what is not valid reStructuredText is read as it stands ({where}): correct it",)


def _prepare(tree: nodes.document, left_out: list[tuple[str, str]]) -> None:
    """Leave out fields about the file and comments; give titles their sections' ids, and cells their words alone."""
    from docutils import nodes

    for section in tree.findall(nodes.section):
        if isinstance(title := section.children[0], nodes.title):
            own = nodes.make_id(title.astext())  # a label of the same name takes it, but not on the site
            title["ids"], section["ids"] = sorted(section["ids"], key=lambda one: one != own), []
    about = next((one for one in tree.children if not isinstance(one, nodes.comment | nodes.target)), None)
    if isinstance(about, nodes.field_list):
        left_out.append(("front matter", about.astext()))
        tree.remove(about)
    for comment in [*tree.findall(nodes.comment)]:
        left_out.append(("comments", comment.astext()))
        comment.parent.remove(comment)
    for entry in tree.findall(nodes.entry):
        if len(entry.children) == 1 and isinstance(words := entry.children[0], nodes.paragraph):
            entry.children[:] = words.children
    for label in [*tree.findall(nodes.label)]:
        note = label.parent
        if len(note.children) > 1 and isinstance(words := note.children[1], nodes.paragraph):
            words.insert(0, nodes.Text(f"[{label.astext()}] "))
            note.remove(label)
    for code in tree.findall(nodes.literal):
        code["classes"].append("code")  # or it is written as a span
    for block in tree.findall(nodes.doctest_block):
        block["classes"].append("language-pycon")


def _with_targets(tree: nodes.document) -> dict[str, str]:
    """Resolve the labels that links of this page name; return those that links of others may name, with their ids."""
    from docutils import nodes

    titles: dict[str, str] = {}
    sections: dict[str, str] = {}
    current = ""
    for node in tree.findall():
        if isinstance(node, nodes.title) and node["ids"]:
            current = node["ids"][0]
            titles.update(dict.fromkeys(node["ids"], node.astext()))
        if isinstance(node, nodes.Element):
            for identity in node["ids"]:
                sections.setdefault(identity, current)
    for reference in tree.findall(nodes.reference):
        if "label" in reference:
            name = nodes.fully_normalize_name(reference["label"])
            identity = tree.nameids.get(name)
            reference["refuri"] = f"#{identity}" if identity else f"{LABEL}{name}"
            if identity in titles and not reference["shown"]:
                reference.children[:] = [nodes.Text(titles[identity])]
    return {name: sections.get(identity, "") for name, identity in tree.nameids.items() if identity}
