"""A folder of Markdown, HTML, PDF and text files as a corpus; what cannot be read is named, with the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hopbench.eval.benchmarks.card import has_card
from hopbench.eval.benchmarks.documents.decode import SAVE_AS_UTF8, decode
from hopbench.eval.benchmarks.documents.document import Document, UnreadableError
from hopbench.eval.benchmarks.documents.files import ENDINGS, find_documents
from hopbench.eval.benchmarks.documents.html import decode_html, read_html
from hopbench.eval.benchmarks.documents.markdown import read_markdown
from hopbench.eval.benchmarks.documents.passages import passages_of
from hopbench.eval.benchmarks.documents.pdf import read_pdf
from hopbench.eval.benchmarks.documents.plain import read_plain
from hopbench.eval.types import Omission
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import read_bytes, regular
from hopbench.retrieval.types import Passage

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
        raise InputError(f"{folder}: no document can be read: {reasons}")
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
