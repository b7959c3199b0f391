"""Turn the text of AsciiDoc blocks into HTML: formatting, links, anchors, notes, attributes.

Source: https://docs.asciidoctor.org/asciidoc/latest/.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape

from hopbench.eval.benchmarks.documents.document import UnreadableError

GROWTH_LIMIT = 16 * 1024 * 1024  # characters that attributes, and cells written once for several, may add to a page
_INTRINSIC: Mapping[str, str] = {
    **dict.fromkeys(("empty", "blank", "wj", "zwsp"), ""),
    **dict.fromkeys(("sp", "nbsp"), " "),
    **{"plus": "+", "asterisk": "*", "tilde": "~", "caret": "^", "backtick": "`", "vbar": "|", "startsb": "["},
    **{"endsb": "]", "backslash": "\\", "lt": "<", "gt": ">", "amp": "&", "apos": "'", "quot": '"', "cpp": "C++"},
}
_REFERENCE = re.compile(r"(\\)?\{([A-Za-z0-9_][\w-]{0,100})\}")
_STASHED = re.compile("\0(\\d+)\0")
_TITLE_OF = re.compile("\1([^\1]*)\1")

_PASSED = re.compile(
    r"\+\+\+(?P<raw>.{0,10000}?)\+\+\+|pass:(?P<subs>[a-z,]*)\[(?P<pass>(?:\\\]|[^\]])*)\]"
    r"|`\+(?P<code>[^`]{1,10000}?)\+`|(?:stem|latexmath|asciimath):\[(?P<math>(?:\\\]|[^\]])*)\]"
    r"|(?<![\w+])\+\+(?P<plain>[^+\s][^+]*)\+\+|(?<![\w+;:}])\+(?P<one>[^+\s](?:[^+]*[^+\s])?)\+(?![\w+])"
)
_WORDS = r"\[(?P<words>(?:\\\]|[^\]\\]|\\)*?)\]"
_URL = r"(?:https?|ftp|irc)://[^\s\[\]<>\0]+"
_MACRO = re.compile(
    rf"(?P<escaped>\\)?(?:"
    rf"&lt;&lt;(?P<ref>[^&\n\[\]]{{1,500}}?)(?:,\s*(?P<refwords>.{{1,1000}}?))?&gt;&gt;"
    rf"|\[\[(?P<anchor>[\w:][\w:.-]*)(?:,[^\]]*)?\]\]"
    rf"|(?P<macro>xref|link|mailto|image|icon|kbd|btn|menu|footnote|footnoteref|anchor|indexterm2?):(?!:)"
    rf"(?P<target>[^\s\[\]\2]*){_WORDS}"
    rf"|(?<![\w/=\"'])(?P<url>{_URL}|{{[\w-]{{1,100}}}}[^\s\[\]<>\0\2]{{0,500}}){_WORDS.replace('words', 'urlwords')}"
    rf"|(?P<angle>&lt;)?(?<![\w/=\"'])(?P<bare>{_URL})(?(angle)&gt;)"
    rf"|\(\(\((?P<hidden>[^()]*)\)\)\)|\(\((?P<term>[^()]+)\)\)"
    rf")"
)
_ROLE = r"(?:\[[^\[\]\n]{1,200}\])?"
_FORMATTING = [
    (re.compile(rf"(?<!\\){_ROLE}``([^`]+)``"), r"<code>\1</code>"),
    (re.compile(rf"(?<![\w\\;:}}]){_ROLE}(?<![\w\\`\"'])`(?=\S)([^`]+)(?<=\S)`(?![\w`\"'])"), r"<code>\1</code>"),
    (re.compile(r"\"`(?=\S)([^`]+)(?<=\S)`\""), r'"\1"'),
    (re.compile(r"'`(?=\S)([^`]+)(?<=\S)`'"), r"'\1'"),
    (re.compile(rf"(?<!\\){_ROLE}\*\*([^*]+)\*\*"), r"<b>\1</b>"),
    (re.compile(rf"(?<![\w\\;:}}*]){_ROLE}\*(?=[^\s*])([^*]+)(?<=\S)\*(?![\w*])"), r"<b>\1</b>"),
    (re.compile(rf"(?<!\\){_ROLE}__([^_]+)__"), r"<i>\1</i>"),
    (re.compile(rf"(?<![\w\\;:}}]){_ROLE}_(?=[^\s_])([^_]+)(?<=\S)_(?!\w)"), r"<i>\1</i>"),
    (re.compile(rf"(?<!\\){_ROLE}##([^#]+)##"), r"\1"),
    (re.compile(rf"(?<![\w\\;:}}&]){_ROLE}#(?=[^\s#])([^#]+)(?<=\S)#(?!\w)"), r"\1"),
    (re.compile(r"(?<!\\)\^([^\s^]+)\^"), r"<sup>\1</sup>"),
    (re.compile(r"(?<!\\)~([^\s~]+)~"), r"<sub>\1</sub>"),
    (re.compile(r"\\([*_`#^~+\"'\[(])"), r"\1"),
]


class Inline:
    """Writes text as HTML under a page's attributes; collects the notes of a block, and the titles of sections."""

    def __init__(self) -> None:
        self.attributes = dict[str, str]()
        self.notes: list[str] = []
        self.titles = dict[str, str]()
        self._count = self._growth = 0

    def grow(self, size: int) -> None:
        """Count characters that are written more often than they stand in the file."""
        self._growth += max(size, 0)
        if self._growth > GROWTH_LIMIT:
            raise UnreadableError(
                f"grows by over {GROWTH_LIMIT:,} characters when its attributes and repeated cells are filled in: "
                "write them out, or split it"
            )

    def filled(self, text: str) -> str:
        """Replace the `{attributes}` that are known by their values."""

        def value(found: re.Match[str]) -> str:
            name = found[2].lower()
            known = self.attributes.get(name, _INTRINSIC.get(name))
            if found[1] or known is None:
                return found[0].removeprefix("\\")
            self.grow(len(known) - len(found[0]))
            return known

        return _REFERENCE.sub(value, text) if "{" in text else text

    def html(self, text: str) -> str:
        """Write a block's text as HTML."""
        stash: list[str] = []

        def keep(markup: str) -> str:
            stash.append(markup)
            return f"\0{len(stash) - 1}\0"

        closed, bracket, rest = " ".join(text.split()).replace("\0", " ").rpartition("]")
        text = closed + bracket + rest.replace("[", "\2")  # or each would look for its end again
        text = _PASSED.sub(lambda found: keep(_passed(found)), text)
        text = escape(self.filled(text), quote=False)
        text = _MACRO.sub(lambda found: self._macro(found, keep), text)
        for pattern, written in _FORMATTING:
            text = pattern.sub(written, text)
        for _ in range(3):  # a link's words may hold what was passed through
            text = _STASHED.sub(lambda found: stash[int(found[1])], text)
        return text.replace("\2", "[")

    def with_titles(self, markup: str) -> str:
        """Write the titles of sections where links name none."""

        def title(found: re.Match[str]) -> str:
            words = self.titles.get(found[1], found[1])
            self.grow(len(words))
            return words

        return _TITLE_OF.sub(title, markup)

    def _macro(self, found: re.Match[str], keep: Callable[[str], str]) -> str:
        made = found["term"] or ""
        if found["escaped"]:
            made = found[0][1:]
        elif found["ref"]:
            made = self._link(self._reference(found["ref"]), found["refwords"] or "", keep)
        elif found["anchor"]:
            made = keep(f'<a id="{found["anchor"]}"></a>')
        elif found["url"]:
            made = self._link(found["url"], _first(found["urlwords"]) or found["url"], keep)
        elif found["bare"]:
            url = found["bare"].rstrip(".,;:!?)'\"")
            made = self._link(url, url, keep) + found["bare"][len(url) :]
        elif found["macro"]:
            made = self._named(found["macro"], found["target"], found["words"].replace("\\]", "]"), keep)
        return made

    def _named(self, macro: str, target: str, words: str, keep: Callable[[str], str]) -> str:
        made = ""
        match macro:
            case "xref":
                made = self._link(self._reference(target), _first(words), keep)
            case "link":
                made = self._link(target, _first(words) or target, keep)
            case "mailto":
                made = self._link(f"mailto:{target}", _first(words) or target, keep)
            case "image":
                made = keep(f'<img alt="{_quoted(_first(words))}">')
            case "anchor":
                made = keep(f'<a id="{_quoted(target)}"></a>')
            case "kbd" | "btn" | "indexterm2":
                made = words
            case "menu":
                made = f"{target} &gt; {words}" if words else target
            case "footnote" | "footnoteref" if words:
                self._count += 1
                self.notes.append(f"[{self._count}] {words}")
                made = keep(f'<sup class="footnote-ref">{self._count}</sup>')
        return made

    @staticmethod
    def _reference(target: str) -> str:
        """The target of a cross reference: a file with its id, or an id of this page."""
        name = target.strip()
        file = "#" in name.lstrip("#") or name.endswith((".adoc", ".asciidoc")) or "/" in name
        return name if file and not name.startswith("#") else f"#{name.lstrip('#')}"

    @staticmethod
    def _link(target: str, words: str, keep: Callable[[str], str]) -> str:
        shown = words.removesuffix("^") or (f"\1{target[1:]}\1" if target.startswith("#") else target)
        return keep(f'<a href="{_quoted(target)}">') + _shown(shown, keep) + keep("</a>")


def _shown(words: str, keep: Callable[[str], str]) -> str:
    return keep(words) if "://" in words or words.startswith("\1") else words


def _quoted(text: str) -> str:
    return text.replace('"', "&quot;")


def _passed(found: re.Match[str]) -> str:
    if found["raw"] is not None:
        return found["raw"]
    if found["pass"] is not None:
        text = found["pass"].replace("\\]", "]")
        return escape(text, quote=False) if {"c", "v", "specialchars"} & set(found["subs"].split(",")) else text
    if found["code"] is not None:
        return f"<code>{escape(found['code'], quote=False)}</code>"
    return escape(next(found[name] for name in ("math", "plain", "one") if found[name] is not None), quote=False)


def _first(words: str) -> str:
    """The first value of a macro's list: its words, without a window or role."""
    text = words.strip()
    if text.startswith('"') and (end := text.find('"', 1)) > 0:
        return text[1:end]
    if "=" in text and "," in text:
        text = text.split(",", 1)[0].strip()
    return "" if re.fullmatch(r"[\w-]+=[^,]*", text) else text
