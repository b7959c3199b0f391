"""Rules for markdown-it-py: containers of MkDocs, Docusaurus and their like, and the tags and expressions of MDX.

A container's first and last line are read as lines of their own, and what stands between them as if nothing were
around it: a title becomes the token `container_title`, and what is left out `omission`, with its kind in `info`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from hopbench.eval.benchmarks.documents.components import EXPRESSION, TAG, TAG_LIMIT

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.ruler import RuleOptionsType
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline

_KINDS = frozenset(
    """abstract attention bug caution check danger deprecated details error example fail failure faq hint important
    info memo note question quote see-also seealso success summary tip todo warning""".split()
)
_SLASHES = re.compile(r"/{3,}\s*([\w-]+)\s*(?:\|[ \t]*(.*?))?[ \t]*")
_COLONS = re.compile(r":{3,}\s*\{?\.?([A-Za-z][\w-]*)\}?[ \t]*(?:\[(.*)\])?(.*?)[ \t:]*")
_ENDS = {"/": re.compile(r"/{3,}[ \t]*"), ":": re.compile(r":{3,}[ \t]*")}
_LAST_COLONS = re.compile(r"^[ \t>]*:{3,}[ \t]*$", re.MULTILINE)
_BRACES = re.compile(r"\{[^{}]*\}")
_QUOTED_TITLE = re.compile(r"""\btitle\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_OPTION = re.compile(r"[ \t]{4,}[\w-]+:(?:[ \t].*)?|:[\w-]+:(?:[ \t].*)?")
_ADMONITION = re.compile(r'(?:!!!|\?\?\?\+?) ?([\w-]+(?: +[\w-]+)*)(?: +"(.*)")?[ \t]*')
_TAB = re.compile(r'===[!+]? +"(.*)"[ \t]*')
_IMPORTS = re.compile(
    r"""import\s+(?:[\w*{}\s,$]+\s+from\s+)?["'][^"'\n]+["']
    |export\s+(?:const|let|var|function|default|class|async|type|interface|\{|\*)""",
    re.VERBOSE,
)
LONGEST_EXPORT = 200  # lines, if braces are never closed
_RAW = frozenset(("script", "style", "pre", "textarea"))
_INTERRUPTS: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}


def containers(parser: MarkdownIt) -> None:
    """Add the rules of `:::note`, `/// note`, `!!! note` and `=== "Tab"`."""
    parser.block.ruler.before("fence", "container", _container, _INTERRUPTS)
    parser.block.ruler.before("fence", "indented_container", _indented_container, _INTERRUPTS)


def mdx(parser: MarkdownIt) -> None:
    """Add the rules of MDX, where nothing indented is code."""
    parser.block.ruler.disable("code")
    parser.block.ruler.before("html_block", "jsx", _tags, _INTERRUPTS)
    parser.block.ruler.before("table", "mdx_comment", _comment, _INTERRUPTS)
    parser.block.ruler.before("table", "imports", _import)
    parser.inline.ruler.before("html_inline", "jsx", _tag)
    parser.inline.ruler.before("html_inline", "expression", _expression)


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _omit(state: StateBlock, kind: str, text: str) -> None:
    token = state.push("omission", "", 0)
    token.info, token.content = kind, text


def _title(state: StateBlock, kind: str, title: str | None) -> None:
    """Push a container's title; without one, the kind is shown where it is one of admonitions."""
    if title is None:
        title = kind.capitalize() if kind.lower() in _KINDS else ""
    state.push("container_title", "", 0).content = title


def _container(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    mark = state.src[state.bMarks[line] + state.tShift[line]] if state.eMarks[line] > state.bMarks[line] else ""
    if mark not in _ENDS or state.is_code_block(line):
        return False
    text = _line(state, line)
    opened = state.env.setdefault("containers", {"/": 0, ":": 0})
    if _ENDS[mark].fullmatch(text):
        if not opened[mark]:
            return False
        if not silent:
            opened[mark] -= 1
            _title(state, "", "")
            state.line = line + 1
        return True
    found = (_SLASHES if mark == "/" else _COLONS).fullmatch(text)
    if found is None or (mark == ":" and not _is_closed(state, line)):
        return False
    if silent:
        return True
    opened[mark] += 1
    _title(state, found[1], found[2] if mark == "/" else _colon_title(found))
    after = line + 1
    while after < end and _OPTION.fullmatch(state.src[state.bMarks[after] : state.eMarks[after]]):
        after += 1
    if after > line + 1:
        _omit(state, "options of containers", state.src[state.bMarks[line + 1] : state.eMarks[after - 1]])
    state.line = after
    return True


def _colon_title(found: re.Match[str]) -> str | None:
    if found[2] is not None:
        return found[2]
    if named := _QUOTED_TITLE.search(found[3]):
        return named[1] if named[1] is not None else named[2]
    title = _BRACES.sub("", found[3]).strip()
    return None if title.isdecimal() else title or None  # the columns of a grid are no title


def _is_closed(state: StateBlock, line: int) -> bool:
    """Whether a line of colons alone follows: without one, `::: package.module` is no container."""
    if "last_colons" not in state.env:
        ends = [found.start() for found in _LAST_COLONS.finditer(state.src)]
        state.env["last_colons"] = ends[-1] if ends else -1
    return bool(state.env["last_colons"] > state.bMarks[line])


def _indented_container(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    mark = state.src[state.bMarks[line] + state.tShift[line]] if state.eMarks[line] > state.bMarks[line] else ""
    if mark not in ("!", "?", "=") or state.is_code_block(line):
        return False
    found = (_TAB if mark == "=" else _ADMONITION).fullmatch(_line(state, line))
    if found is None or silent:
        return found is not None
    kind, title = ("", found[1]) if mark == "=" else (found[1].split()[0], found[2])
    indent, after, last = state.sCount[line] + 4, line + 1, line + 1
    while after < end and (state.isEmpty(after) or state.sCount[after] >= indent):
        after += 1
        last = last if state.isEmpty(after - 1) else after
    _title(state, kind, title)
    outside = state.blkIndent, state.lineMax
    state.blkIndent, state.lineMax = indent, last
    state.level += 1
    state.md.block.tokenize(state, line + 1, last)
    state.level -= 1
    state.blkIndent, state.lineMax = outside
    _title(state, "", "")
    state.line = last
    return True


def _import(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    begin = state.bMarks[line]
    if state.src[begin : begin + 1] not in ("i", "e") or not _IMPORTS.match(state.src, begin):
        return False
    if silent:
        return True
    balance, after, first_end = 0, line, 0
    end = min(end, line + LONGEST_EXPORT)
    while after < end:
        text = state.src[state.bMarks[after] : state.eMarks[after]]
        if not text.strip():
            first_end = first_end or after
            if balance <= 0:
                break
        elif after > line and balance <= 0 and text[0] in "#<":
            break
        balance += sum(map(text.count, "{([")) - sum(map(text.count, "})]"))
        after += 1
    last = first_end if balance > 0 and first_end else after
    _omit(state, "imports and exports", state.src[begin : state.eMarks[last - 1]])
    state.line = last
    return True


def _comment(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    begin = state.bMarks[line] + state.tShift[line]
    if not state.src.startswith("{/*", begin):
        return False
    stop = state.env.get("comment_end", 0)
    if 0 <= stop < begin + 3:
        stop = state.env["comment_end"] = state.src.find("*/}", begin + 3)
    after = bisect_left(state.eMarks, stop, line, end)
    if stop < 0 or after >= end or state.src[stop + 3 : state.eMarks[after]].strip():
        return False
    if not silent:
        _omit(state, "comments", state.src[begin + 3 : stop])
        state.line = after + 1
    return True


def _tags(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """Read lines that hold nothing but tags."""
    begin = place = state.bMarks[line] + state.tShift[line]
    found = None
    while state.src.startswith("<", place):
        found = TAG.match(state.src, place, min(len(state.src), place + TAG_LIMIT))
        if found is None or (found["tag"] or "") in _RAW:
            return False
        place = state.skipSpaces(found.end())
    if found is None:
        return False
    after = line
    while after < end and state.eMarks[after] < place:
        after += 1
    if after >= end or state.eMarks[after] != place:
        return False
    if not silent:
        state.push("jsx", "", 0).content = state.src[begin:place]
        state.line = after + 1
        _dedent(state, after + 1, end)
    return True


def _dedent(state: StateBlock, line: int, end: int) -> None:
    """Take the indentation of the first line off the lines below a tag."""
    while line < end and state.isEmpty(line):
        line += 1
    extra = state.sCount[line] - state.blkIndent if line < end else 0
    while extra > 0 and line < end and (state.isEmpty(line) or state.sCount[line] - state.blkIndent >= extra):
        begin = state.bMarks[line]
        if state.src[begin : begin + extra].isspace() and "\t" not in state.src[begin : begin + extra]:
            state.bMarks[line] += extra
            state.tShift[line] -= extra
            state.sCount[line] -= extra
        line += 1


def _tag(state: StateInline, silent: bool) -> bool:
    found = TAG.match(state.src, state.pos, min(state.posMax, state.pos + TAG_LIMIT))
    if found is None or (found["tag"] or "") in _RAW:
        return False
    if not silent:
        state.push("jsx_inline", "", 0).content = found[0]
    state.pos = found.end()
    return True


def _expression(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "{":
        return False
    found = EXPRESSION.match(state.src, state.pos, min(state.posMax, state.pos + TAG_LIMIT))
    if found is None:
        return False
    if not silent:
        state.push("expression", "", 0).content = found[0]
    state.pos = found.end()
    return True
