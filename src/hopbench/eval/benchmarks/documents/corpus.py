"""A folder of Markdown, HTML, PDF and text files as a corpus; what cannot be read is named, with the remedy."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hopbench.eval.benchmarks.beir import LAYOUTS, contents, no_data_set
from hopbench.eval.benchmarks.card import has_card
from hopbench.eval.benchmarks.documents.document import SAVE_AS_UTF8, Document, Section, UnreadableError, decode
from hopbench.eval.benchmarks.documents.html import decode_html, read_html
from hopbench.eval.benchmarks.documents.markdown import read_markdown
from hopbench.eval.benchmarks.documents.passages import passages_of
from hopbench.eval.benchmarks.documents.pdf import read_pdf
from hopbench.eval.types import Omission
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import read_bytes, regular, unreadable
from hopbench.retrieval.types import Passage

ENDINGS = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".txt": "plain",
    ".text": "plain",
    ".rst": "plain",
}
"""Ending of a file's name → who reads it."""

_ASSETS = frozenset(
    """.png .jpg .jpeg .gif .svg .webp .ico .bmp .css .js .mjs .map .woff .woff2 .ttf .otf .eot .mp4 .webm .mp3 .wav
    .lock .jsonl .json .yaml .yml .toml .tsv .csv .parquet""".split()
)
_OWN = frozenset({"qrels"})  # a folder of judgements, beside the documents


@dataclass(slots=True)
class Found:
    """The documents below a folder: path as ids name it → file; what was left out with the reason; endings not read."""

    documents: dict[str, Path] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    other: Counter[str] = field(default_factory=Counter)


def holds_documents(folder: Path) -> bool:
    """Whether any document stands below the folder; looks no further than the first."""
    return any(_ending(Path(entry.path)) in ENDINGS for entry, _ in _entries(folder, folder.resolve(), Found()))


def find_documents(folder: Path) -> Found:
    """All documents below `folder` in the order of their paths.

    Names that begin with a dot are passed over. A link counts where it leads to something inside the folder, once; one
    that leads elsewhere is left out, as files of others could be meant by it.

    Raises
    ------
    InputError
        When the folder itself cannot be listed.
    """
    found = Found()
    real = folder.resolve()
    seen: set[tuple[int, int]] = set()
    for entry, name in _entries(folder, real, found):
        path = Path(entry.path)
        ending = _ending(path)
        if ending not in ENDINGS:
            if ending not in _ASSETS:
                found.other[ending or "no ending"] += 1
            continue
        status = entry.stat()
        if (status.st_dev, status.st_ino) not in seen or not entry.is_symlink():
            seen.add((status.st_dev, status.st_ino))
            _add(name, path, found)
    found.documents = dict(sorted(found.documents.items()))
    return found


def _add(name: str, path: Path, found: Found) -> None:
    from hopbench.eval.benchmarks.documents.passages import document_id, fault_of

    if fault := fault_of(name):
        found.left_out.append(f"{name.encode(errors='backslashreplace').decode()!r}: {fault}")
    elif (key := document_id(name)) in found.documents:
        found.left_out.append(f"{name}: another file's name differs only in how its accents are written: rename one")
    else:
        found.documents[key] = path


def _ending(path: Path) -> str:
    return path.suffix.lower()


def _entries(folder: Path, real: Path, found: Found) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Files below the folder with their paths in it, those of links last; each real folder is entered once."""
    entered = {_identity(real)}
    waiting = [(folder, "")]
    links: list[tuple[os.DirEntry[str], str]] = []
    while waiting or links:
        if not waiting:
            entry, name = links.pop(0)
            if entry.is_file():
                yield entry, name
            elif entry.is_dir() and (key := _identity(Path(entry.path))) not in entered:
                entered.add(key)
                waiting.append((Path(entry.path), f"{name}/"))
            continue
        place, prefix = waiting.pop()
        for entry in _listed(place, prefix, found):
            name = prefix + entry.name
            if entry.name.startswith(".") or (not prefix and entry.name in _OWN):
                continue
            if entry.is_symlink():
                if _inside(entry, name, real, found):
                    links.append((entry, name))
            elif entry.is_dir(follow_symlinks=False):
                entered.add(_identity(Path(entry.path)))
                waiting.append((Path(entry.path), f"{name}/"))
            elif entry.is_file(follow_symlinks=False):
                yield entry, name
            elif _ending(Path(name)) in ENDINGS:
                found.left_out.append(f"{name}: is no ordinary file: write what it should give into a file")


def _listed(place: Path, prefix: str, found: Found) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        if not prefix:
            raise unreadable(str(place), error) from error
        found.left_out.append(f"{prefix} cannot be listed ({error.strerror}): allow it, or move it out of the folder")
        return []


def _inside(entry: os.DirEntry[str], name: str, real: Path, found: Found) -> bool:
    """Whether a link leads to something in the folder; else why it is left out, if it could be a document."""
    try:
        target = Path(entry.path).resolve(strict=True)
    except (OSError, RuntimeError):
        found.left_out.append(f"{name}: is a link that leads nowhere, or in a circle: remove it")
        return False
    if target.is_relative_to(real):
        return True
    if target.is_dir() or _ending(Path(name)) in ENDINGS:
        found.left_out.append(f"{name}: is a link out of the folder: copy what it leads to into the folder")
    return False


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}): check what it is and who may read it") from error
    return status.st_dev, status.st_ino


_BLANK = re.compile(r"\n\s*\n")
_UNDERLINE = re.compile(r"([=\-~^\"'#*+.`:_])\1{2,}")


def read_plain(text: str) -> Document:
    """The whole text as one section.

    A first line that is underlined, or over- and underlined (as in reStructuredText), is the title; else there is none.
    """
    paragraphs = [" ".join(part.split()) for part in _BLANK.split(text.replace("\r\n", "\n").replace("\r", "\n"))]
    filled = tuple(filter(None, paragraphs))
    return Document(_underlined_title(text), [Section((), filled)] if filled else [])


def _underlined_title(text: str) -> str:
    lines = [line.strip() for line in text.lstrip().splitlines()[:3]]
    if lines and _UNDERLINE.fullmatch(lines[0]):
        lines = lines[1:]
    return lines[0] if len(lines) > 1 and _UNDERLINE.fullmatch(lines[1]) else ""


TEXT_LIMIT = 16 * 1024 * 1024  # bytes of a Markdown, HTML or text file
PDF_LIMIT = 512 * 1024 * 1024
_REASONS = 5


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
            problems.append(f"files of other kinds are not read ({kinds}): a document ends in {', '.join(ENDINGS)}")
        return (*problems, *self.remarks)


def read_documents(folder: Path) -> DocumentCorpus:
    """Read every document below `folder`.

    Raises
    ------
    InputError
        When none of them gives a passage; the message has the reasons.
    """
    if not holds_documents(folder):
        raise no_data_set(folder)
    found = find_documents(folder)
    left_out, kinds = list(found.left_out), Counter[str]()
    remarks: list[str] = []
    omissions: list[Omission] = []
    passages: list[Passage] = []
    for name, path in found.documents.items():
        kind = ENDINGS[path.suffix.lower()]
        try:
            document, encoding = _read(path, kind)
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
        kinds[kind] += 1
        left_out += [f"{name}: {remark}" for remark in document.remarks]
        if encoding:
            remarks.append(f"{name} is not UTF-8 and was read as {encoding}: if letters are wrong, {SAVE_AS_UTF8}")
    if not passages:
        reasons = "; ".join(left_out[:_REASONS]) or "there are none"
        raise InputError(f"{folder}: no document can be read: {reasons}; {contents(folder)}. {LAYOUTS}")
    return DocumentCorpus(tuple(passages), kinds, tuple(left_out), tuple(remarks), found.other, tuple(omissions))


def _read(path: Path, kind: str) -> tuple[Document, str]:
    """The document, and its encoding where that is not UTF-8."""
    try:
        regular(path)
        _refuse_large(path, PDF_LIMIT if kind == "pdf" else TEXT_LIMIT)
        if kind == "pdf":
            return read_pdf(path), ""
        content = read_bytes(path, TEXT_LIMIT)
    except OSError as error:
        raise UnreadableError(f"cannot be read ({error.strerror}): check who may read it") from error
    except InputError as error:
        raise UnreadableError(str(error).removeprefix(f"{path}: ")) from error
    text, encoding = decode_html(content) if kind == "html" else decode(content)
    try:
        readers = {"html": read_html, "markdown": read_markdown, "plain": read_plain}
        return readers[kind](text.removeprefix("\ufeff")), encoding
    except RecursionError as error:
        raise UnreadableError("nests too deeply to be read: write it flatter") from error


def _refuse_large(path: Path, limit: int) -> None:
    size = path.stat().st_size
    if size > limit:
        raise UnreadableError(f"has {size:,} bytes, over the limit of {limit:,}: split it into several files")
