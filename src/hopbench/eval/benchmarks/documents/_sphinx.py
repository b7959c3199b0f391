"""Teach docutils what Sphinx adds to reStructuredText: its directives and roles, as far as their text and links go."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.directives import unchanged
from docutils.parsers.rst.languages import en
from docutils.utils import unescape

LINKS = frozenset({"doc", "ref", "numref", "any", "download", "keyword"})
_PROSE = frozenset({"abbr", "guilabel", "menuselection", "term", "dfn", "kbd", "numref", "index", "sub", "sup"})
_CHANGES = {
    "versionadded": "Added in",
    "versionchanged": "Changed in",
    "deprecated": "Deprecated since",
    "versionremoved": "Removed in",
}
_SILENT = frozenset(
    """index currentmodule py:currentmodule module py:module js:module highlight highlightlang default-domain meta
    sectionauthor codeauthor moduleauthor rst-class role default-role tabularcolumns contents sectnum section-numbering
    ifconfig only""".split()
)
"""Say something about what stands below or in them, and are not shown themselves."""
_INCLUDED = frozenset({"include", "literalinclude", "raw", "mdinclude"})
_OWN = frozenset({"code", "code-block", "sourcecode", "class", "toctree", "seealso", *_CHANGES, *_SILENT, *_INCLUDED})
_DIRECTIVE = re.compile(r"\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w][\w:.+-]*?)[ \t]?::(?:\s|$)", re.MULTILINE)
_ROLE = re.compile(r":([a-zA-Z][\w:.+-]*?):`|`:([a-zA-Z][\w:.+-]*?):")
_TITLED = re.compile(r"(.+?)\s*<([^<>]*)>\Z", re.DOTALL)


def register(text: str) -> None:
    """Make docutils know the directives and roles of a text that are not its own."""
    for name in {*map(str.lower, _DIRECTIVE.findall(text))}:
        if name in _OWN or name not in en.directives:
            directives.register_directive(name, _class_of(name))
    for found in _ROLE.findall(text):
        name = (found[0] or found[1]).lower()
        if name not in en.roles:
            roles.register_local_role(name, _role)  # type: ignore[arg-type] # the stubs allow references only


def _class_of(name: str) -> type[Directive]:
    if name in ("code", "code-block", "sourcecode"):
        return _Code
    return _TocTree if name == "toctree" else _Container


class _AnyOption(Mapping[str, Callable[[str], str]]):
    """Takes every option as its text."""

    def __getitem__(self, name: str) -> Callable[[str], str]:
        return unchanged

    def __iter__(self) -> Any:
        return iter(("any",))

    def __len__(self) -> int:
        return 1


class _Shown(Directive):
    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[Any] = _AnyOption()

    def leave_out(self, kind: str) -> list[nodes.Node]:
        """Count the directive among what is left out."""
        words = [*self.arguments, *(str(one) for one in self.options.values() if one), *self.content]
        self.state.document.settings.left_out.append((kind, " ".join(words)))
        return []

    def nested(self) -> list[nodes.Node]:
        """The content as blocks."""
        box = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, box, match_titles=True)
        return [*box.children]

    def inline(self, text: str) -> list[nodes.Node]:
        """A paragraph with the markup of a text."""
        made, messages = self.state.inline_text(text, self.lineno)
        return [nodes.paragraph(text, "", *made), *messages]


class _Code(_Shown):
    def run(self) -> list[nodes.Node]:
        """The lines with their language, below their caption."""
        text = "\n".join(self.content)
        language = self.arguments[0].split()[0] if self.arguments else ""
        block = nodes.literal_block(text, text, classes=["code", *([f"language-{language}"] if language else [])])
        caption = self.options.get("caption")
        return [*(self.inline(caption) if caption else ()), block] if text else []


class _TocTree(_Shown):
    def run(self) -> list[nodes.Node]:
        """The pages listed, as links."""
        caption = self.options.get("caption")
        lines = [line.strip() for line in self.content if line.strip() and "*" not in line]
        items = [nodes.list_item("", nodes.paragraph("", "", *_reference("doc", line))) for line in lines]
        return [*(self.inline(caption) if caption else ()), *([nodes.bullet_list("", *items)] if items else [])]


class _Container(_Shown):
    def run(self) -> list[nodes.Node]:
        """What the directive says in words, and its content."""
        name, argument = self.name.lower(), " ".join(" ".join(self.arguments).split())
        shown: list[nodes.Node] = []
        if name in _INCLUDED:
            return self.leave_out("included files")
        if name in _CHANGES:
            return self._change(_CHANGES[name], argument)
        if name.startswith("auto") and name not in ("autosummary", "autolink"):
            self.leave_out("documentation made from code")
        elif name == "seealso":
            shown = self.inline(f"See also: {argument}".removesuffix(": "))
        elif (":" in name or name in _OBJECTS) and name not in _SILENT:
            signatures = [line.strip() for line in "\n".join(self.arguments).split("\n") if line.strip()]
            shown = [nodes.paragraph("", "", nodes.literal(line, line)) for line in signatures]
            if name == "class" and not self.content and not re.search(r"[A-Z.(]", argument):
                shown = []  # docutils's own, which names a style
        elif argument and name not in _SILENT:
            shown = self.inline(argument)
        return [*shown, *self.nested()]

    def _change(self, verb: str, argument: str) -> list[nodes.Node]:
        version, *words = argument.split(maxsplit=1) or [""]
        where = f"{verb} version {version}"
        content = self.nested()
        first = content[0] if content and isinstance(content[0], nodes.paragraph) else None
        if words or first is None:
            return [*self.inline(": ".join([where, *words])), *content]
        first.insert(0, nodes.Text(f"{where}: "))
        return content


_OBJECTS = frozenset(
    """class data function method attribute exception decorator property staticmethod classmethod option cmdoption
    envvar confval setting describe object program macro type var member struct""".split()
)


def _role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = ()
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    words = unescape(text)
    kind = name.lower().rpartition(":")[2]
    if kind in LINKS and not words.startswith("!"):
        return _reference(kind, words), []
    titled = _TITLED.match(words)
    shown = titled[1] if titled else words.lstrip("!")
    if shown.startswith("~"):
        shown = shown.rpartition(".")[2] or shown[1:]
    if kind in _PROSE or titled:
        return [nodes.Text(shown)], []
    return [nodes.literal(rawtext, shown)], []


def _reference(kind: str, words: str) -> list[nodes.Node]:
    """A link to a page or label, which is resolved when the whole page is read."""
    titled = _TITLED.match(words)
    shown, target = (titled[1], titled[2]) if titled else ("", words)
    target = " ".join(target.split()).lstrip("~!")
    made = nodes.reference("", shown or target, refuri=target)
    if kind in ("doc", "download"):
        outside = "://" in target or kind == "download" or target.endswith((".rst", ".md", ".html"))
        made["refuri"] = target if outside else f"{target}.rst"
    else:
        made["label"], made["shown"] = target, bool(shown)
    return [made]
