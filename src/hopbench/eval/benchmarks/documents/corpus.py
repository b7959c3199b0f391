"""Read a folder of documents as a corpus; name what cannot be read, with the remedy."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hopbench.eval.benchmarks.beir import LAYOUTS, contents, has_card, no_data_set
from hopbench.eval.benchmarks.documents.asciidoc import read_asciidoc
from hopbench.eval.benchmarks.documents.document import (
    SAVE_AS_UTF8,
    Document,
    Section,
    UnreadableError,
    decode,
    passages_of,
)
from hopbench.eval.benchmarks.documents.docx import read_docx
from hopbench.eval.benchmarks.documents.html import declared_encoding, read_html
from hopbench.eval.benchmarks.documents.markdown import read_markdown, read_mdx
from hopbench.eval.benchmarks.documents.notebook import read_notebook
from hopbench.eval.benchmarks.documents.pdf import read_pdf
from hopbench.eval.benchmarks.documents.redirects import read_redirects, redirected
from hopbench.eval.benchmarks.documents.references import with_references
from hopbench.eval.benchmarks.documents.restructuredtext import read_restructuredtext
from hopbench.eval.types import Omission
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import read_bytes, regular, unreadable
from hopbench.retrieval.types import Passage

TEXT_LIMIT = 16 * 1024 * 1024  # bytes of a Markdown, HTML or text file
PDF_LIMIT = 512 * 1024 * 1024  # also of Word documents, which may hold images
NOTEBOOK_LIMIT = 64 * 1024 * 1024  # images are written as text
PATH_LIMIT = 1000  # characters, so that an id with its section stays within the limit of 2,000
MAX_REASONS = 5
_ASSETS = frozenset(
    """.png .jpg .jpeg .gif .svg .webp .ico .bmp .css .js .mjs .map .woff .woff2 .ttf .otf .eot .mp4 .webm .mp3 .wav
    .lock .jsonl .json .yaml .yml .toml .tsv .csv .parquet""".split()
)
_BLANK = re.compile(r"\n\s*\n")
_UNDERLINE = re.compile(r"([=\-~^\"'#*+.`:_])\1{2,}")


def read_plain(text: str) -> Document:
    """Read the whole text as one section.

    A first line that is underlined, or over- and underlined (as in reStructuredText), is the title; else there is none.
    """
    paragraphs = [" ".join(part.split()) for part in _BLANK.split(text.replace("\r\n", "\n").replace("\r", "\n"))]
    filled = tuple(filter(None, paragraphs))
    lines = [line.strip() for line in text.lstrip().splitlines()[:3]]
    if lines and _UNDERLINE.fullmatch(lines[0]):
        lines = lines[1:]
    title = lines[0] if len(lines) > 1 and _UNDERLINE.fullmatch(lines[1]) else ""
    return Document(title, [Section((), filled)] if filled else [])


def _read_text(parse: Callable[[str], Document], declared: Callable[[bytes], str] | None, path: Path) -> Document:
    content = read_bytes(path, TEXT_LIMIT)
    text, encoding = decode(content, declared(content) if declared else "")
    return replace(parse(text.removeprefix("\ufeff")), encoding=encoding)


class Reader(NamedTuple):
    """Reads one kind of document of at most `limit` bytes."""

    kind: str
    read: Callable[[Path], Document]
    limit: int = TEXT_LIMIT


_MARKDOWN = Reader("markdown", partial(_read_text, read_markdown, None))
_MDX = Reader("markdown", partial(_read_text, read_mdx, None))
_HTML = Reader("html", partial(_read_text, read_html, declared_encoding))
_ASCIIDOC = Reader("asciidoc", partial(_read_text, read_asciidoc, None))
_PLAIN = Reader("plain", partial(_read_text, read_plain, None))
READERS: Mapping[str, Reader] = {
    **dict.fromkeys((".md", ".markdown"), _MARKDOWN),
    ".mdx": _MDX,
    **dict.fromkeys((".html", ".htm", ".xhtml"), _HTML),
    **dict.fromkeys((".adoc", ".asciidoc"), _ASCIIDOC),
    ".pdf": Reader("pdf", read_pdf, PDF_LIMIT),
    ".docx": Reader("docx", read_docx, PDF_LIMIT),
    ".ipynb": Reader("notebook", read_notebook, NOTEBOOK_LIMIT),
    ".rst": Reader("restructuredtext", partial(_read_text, read_restructuredtext, None)),
    **dict.fromkeys((".txt", ".text"), _PLAIN),
}
"""Ending of a file's name → its reader."""


@dataclass(frozen=True)
class DocumentCorpus:
    """The passages of a folder of documents, in the order of their paths.

    `kinds` counts the documents by reader; `left_out` names each file, or part of one, that could not be read, with the
    reason and the remedy; `remarks` name files that were not UTF-8; `other` counts files with endings that no reader
    takes; `omissions` say what is left out of each file on purpose.
    """

    passages: tuple[Passage, ...]
    kinds: Mapping[str, int]
    left_out: tuple[str, ...]
    remarks: tuple[str, ...]
    other: Mapping[str, int]
    omissions: tuple[Omission, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that a reader of results may want to know: what was left out first."""
        problems = [*self.left_out]
        if self.other:
            kinds = ", ".join(f"{count} {ending}" for ending, count in sorted(self.other.items()))
            problems.append(f"files of other kinds are not read ({kinds}): a document ends in {', '.join(READERS)}")
        return (*problems, *self.remarks)


def holds_documents(folder: Path) -> bool:
    """Whether any document stands below the folder; looks no further than the first."""
    return any(path.suffix.lower() in READERS for _, path in _files(folder, []))


def read_documents(folder: Path) -> DocumentCorpus:
    """Read every document below `folder`. Raises InputError when none of them gives a passage, with the reasons."""
    if not holds_documents(folder):
        raise no_data_set(folder)
    left_out: list[str] = []
    kinds, other = Counter[str](), Counter[str]()
    remarks: list[str] = []
    omissions: list[Omission] = []
    passages: list[Passage] = []
    labels: dict[str, str] = {}
    for name, path in _documents(folder, left_out, other).items():
        reader = READERS[path.suffix.lower()]
        try:
            document = _read(reader, path)
        except UnreadableError as error:
            left_out.append(f"{name} {error}")
            continue
        omissions += [replace(one, document=name) for one in document.omissions]
        made = list(passages_of(document, name))
        if not made and name == "README.md" and has_card(folder):
            continue  # a card alone, which `hopbench check-data --set-role` wrote
        if not made:
            only = ", ".join(one.kind for one in document.omissions)
            empty = f"has no text but what is left out ({only})" if only else "is empty"
            left_out.append(f"{name} {empty}: write something into it, or move it out of the folder")
            continue
        passages += made
        ids = {passage.id for passage in made}
        for label, section in document.labels.items():
            place = f"{name}#{section}"
            labels.setdefault(label, place if place in ids else name)
        kinds[reader.kind] += 1
        left_out += [f"{name}: {remark}" for remark in document.remarks]
        if document.encoding:
            read_as = f"{name} is not UTF-8 and was read as {document.encoding}"
            remarks.append(f"{read_as}: if letters are wrong, {SAVE_AS_UTF8}")
    if not passages:
        reasons = "; ".join(left_out[:MAX_REASONS]) or "there are none"
        raise InputError(f"{folder}: no document can be read: {reasons}; {contents(folder)}. {LAYOUTS}")
    passages = list(with_references(passages, labels, {passage.source.document_id for passage in passages}))
    if any(passage.links for passage in passages):
        rules, problems = read_redirects(folder)
        left_out += problems
        passages = redirected(passages, rules, folder.resolve().name) if rules else passages
    return DocumentCorpus(tuple(passages), kinds, tuple(left_out), tuple(remarks), other, tuple(omissions))


def _read(reader: Reader, path: Path) -> Document:
    try:
        if (size := regular(path).stat().st_size) > reader.limit:
            raise UnreadableError(
                f"has {size:,} bytes, over the limit of {reader.limit:,}: split it into several files"
            )
        return reader.read(path)
    except OSError as error:
        raise UnreadableError(f"cannot be read ({error.strerror}): check who may read it") from error
    except InputError as error:
        raise UnreadableError(str(error).removeprefix(f"{path}: ")) from error
    except RecursionError as error:
        raise UnreadableError("nests too deeply to be read: write it flatter") from error


def _documents(folder: Path, left_out: list[str], other: Counter[str]) -> dict[str, Path]:
    """Path as ids name it → file, in the order of the paths; a file is read once, however many links lead to it."""
    found: dict[str, Path] = {}
    seen: set[tuple[int, int]] = set()
    for name, path in _files(folder, left_out):
        ending = path.suffix.lower()
        if ending not in READERS:
            if ending not in _ASSETS:
                other[ending or "no ending"] += 1
            continue
        if (identity := _identity(path)) in seen and path.is_symlink():
            continue
        seen.add(identity)
        key = unicodedata.normalize("NFC", name)  # macOS writes an accent as a character of its own
        if fault := _fault_of(name):
            left_out.append(f"{name.encode(errors='backslashreplace').decode()!r}: {fault}")
        elif key in found:
            left_out.append(f"{name}: another file's name differs only in how its accents are written: rename one")
        else:
            found[key] = path
    return dict(sorted(found.items()))


def _fault_of(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8: rename it"
    if any(unicodedata.category(mark) == "Cc" for mark in path):
        return "its name holds a control character: rename it"
    return f"its path has over {PATH_LIMIT:,} characters: shorten it" if len(path) > PATH_LIMIT else ""


def _files(folder: Path, left_out: list[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files below the folder with their paths in it, those of links last; each real folder is entered once.

    Hidden names and `qrels` are passed over. Links out of the folder are left out: they could lead to files of others.
    """
    real = folder.resolve()
    entered = {_identity(real)}
    links: list[Path] = []
    waiting = [folder]

    def unlistable(error: OSError) -> None:
        place = Path(str(error.filename))
        if place == folder:
            raise unreadable(str(place), error) from error
        name = place.relative_to(folder)
        left_out.append(f"{name}/ cannot be listed ({error.strerror}): allow it, or move it out of the folder")

    while waiting or links:
        if not waiting:
            path = links.pop(0)
            if path.is_file():
                yield path.relative_to(folder).as_posix(), path
            elif path.is_dir() and (key := _identity(path)) not in entered:
                entered.add(key)
                waiting.append(path)
            continue
        for place, folders, names in os.walk(waiting.pop(), onerror=unlistable):
            paths = [Path(place, name) for name in sorted([*folders, *names]) if not name.startswith(".")]
            own = [path for path in paths if path != folder / "qrels"]
            links += [path for path in own if path.is_symlink() and _leads_inside(path, folder, real, left_out)]
            folders[:] = [path.name for path in own if path.is_dir() and not path.is_symlink()]
            entered.update(_identity(Path(place, name)) for name in folders)
            for path in own:
                if path.is_symlink() or path.is_dir():
                    continue
                if path.is_file():
                    yield path.relative_to(folder).as_posix(), path
                elif path.suffix.lower() in READERS:
                    name = path.relative_to(folder)
                    left_out.append(f"{name}: is no ordinary file: write what it should give into a file")


def _leads_inside(link: Path, folder: Path, real: Path, left_out: list[str]) -> bool:
    """Whether a link leads to something in the folder; else why it is left out, if it could be a document."""
    name = link.relative_to(folder)
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        left_out.append(f"{name}: is a link that leads nowhere, or in a circle: remove it")
        return False
    if target.is_relative_to(real):
        return True
    if target.is_dir() or link.suffix.lower() in READERS:
        left_out.append(f"{name}: is a link out of the folder: copy what it leads to into the folder")
    return False


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}): check what it is and who may read it") from error
    return status.st_dev, status.st_ino
