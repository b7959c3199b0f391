"""AsciiDoc, reStructuredText, notebooks and Word documents: snapshots of a page each, and files that are broken.

`HOPBENCH_WRITE_SNAPSHOTS=1` writes the snapshots in `pages/` again: read them.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support import word

from hopbench.eval.benchmarks.documents import DocumentCorpus, read_documents
from hopbench.eval.benchmarks.documents import docx as docx_module
from hopbench.eval.benchmarks.documents.asciidoc import read_asciidoc
from hopbench.eval.benchmarks.documents.document import Document, UnreadableError, passages_of
from hopbench.eval.benchmarks.documents.docx import read_docx
from hopbench.eval.benchmarks.documents.notebook import read_notebook
from hopbench.eval.benchmarks.documents.restructuredtext import read_restructuredtext
from hopbench.retrieval.types import Passage

PAGES = Path(__file__).parent / "pages"
READ = {".adoc": read_asciidoc, ".rst": read_restructuredtext}


def shown(document: Document, name: str) -> str:
    lines = [f"title: {document.title}"]
    for passage in passages_of(document, name):
        lines += ["", f"== {passage.id} | {passage.title}", passage.text]
        lines += [f"-> {link.text} | {link.target}" for link in passage.links]
    omitted = [f"left out: {one.kind}, {one.parts} parts, {one.words} words" for one in document.omissions]
    return "\n".join([*lines, "", *omitted, *(f"remark: {remark}" for remark in document.remarks), ""])


def document_of(ending: str, tmp_path: Path) -> Document:
    if ending == ".docx":
        return read_docx(word.write_docx(tmp_path / "tides.docx", word.GUIDE, word.NOTES))
    path = PAGES / f"tides{ending}"
    return read_notebook(path) if ending == ".ipynb" else READ[ending](path.read_text("utf-8"))


@pytest.mark.parametrize("ending", [".adoc", ".rst", ".ipynb", ".docx"])
def test_a_page_of_each_format(ending: str, tmp_path: Path) -> None:
    made = shown(document_of(ending, tmp_path), f"tides{ending}")
    snapshot = PAGES / f"tides{ending}.txt"
    if os.environ.get("HOPBENCH_WRITE_SNAPSHOTS"):
        snapshot.write_text(made, "utf-8")
    assert snapshot.read_text("utf-8") == made


def adoc(text: str) -> list[Passage]:
    return list(passages_of(read_asciidoc(text), "a.adoc"))


def rst(text: str) -> list[Passage]:
    return list(passages_of(read_restructuredtext(text), "a.rst"))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (
            "= T\n\nx\n\n== Set-up: the *first* day\n\nx\n\n== Set-up: the first day\n\nx",
            ["", "#_set_up_the_first_day", "#_set_up_the_first_day_2"],
        ),
        ("= T\n:idprefix:\n:idseparator: -\n\nx\n\n== My heading\n\nx", ["", "#my-heading"]),
        ("= T\n\n[[own]]\n== A\n\nx\n\n[#second]\n== B\n\nx\n\n== C [[third]]\n\nx", ["#own", "#second", "#third"]),
    ],
)
def test_sections_of_asciidoc_have_the_ids_of_their_site(text: str, ids: list[str]) -> None:
    assert [f"a.adoc{one}" for one in ids] == [passage.id for passage in adoc(text)]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("T\n=\n\nx\n\nMy heading\n----------\n\nx\n\nMy heading\n----------\n\nx", ["", "#my-heading", "#id1"]),
        ("T\n=\n\nx\n\n.. _my-heading:\n\nMy heading\n----------\n\nx", ["", "#my-heading"]),
    ],
)
def test_sections_of_restructuredtext_have_the_ids_of_their_site(text: str, ids: list[str]) -> None:
    assert [f"a.rst{one}" for one in ids] == [passage.id for passage in rst(text)]


INLINE = {
    "a *b* _c_ `d` **e**f __g__h ``i``j #k# [.path]_l.txt_": "a b c d ef gh ij k l.txt",
    "snake_case_name and 2 * 3 * 4 and a__b": "snake_case_name and 2 * 3 * 4 and a__b",
    "`+{raw} *x*+` and +++<u>html</u>+++ and pass:[*y*] and +z_z+": "{raw} *x* and html and *y* and z_z",
    "\\{known} {known} {unknown} \\*not bold*": "{known} value {unknown} *not bold*",
    "kbd:[Ctrl+C], btn:[OK] and menu:File[Save > As]": "Ctrl+C, OK and File > Save > As",
    'a < b && c > d -- "`quoted`"': 'a < b && c > d -- "quoted"',
    "H~2~O is ((wet))(((rain, heavy)))": "H2O is wet",
    "line +\nbreak": "line break",
}


@pytest.mark.parametrize("text", INLINE)
def test_words_of_asciidoc(text: str) -> None:
    (made,) = adoc(f"= T\n:known: value\n\n{text}")
    assert INLINE[text] == made.text.replace("`", "")


LINKS = {
    "link:a_b_c.html[the *page*^]": ("the page", "a_b_c.html"),
    "https://a.b/c_d_e?f=1&g=2[words, window=_blank]": ("words", "https://a.b/c_d_e?f=1&g=2"),
    "https://a.b/c_d_e.": ("https://a.b/c_d_e", "https://a.b/c_d_e"),
    "<https://a.b>": ("https://a.b", "https://a.b"),
    "{site}/x[words]": ("words", "https://s.t/x"),
    "{nowhere}/x[words]": ("words", "{nowhere}/x"),
    "xref:other.adoc#id[]": ("other.adoc#id", "other.adoc#id"),
    "<<other.adoc#id,words>>": ("words", "other.adoc#id"),
    "<<The End>>": ("The End", "#_the_end"),
    "xref:the-end[]": ("the-end", "#_the_end"),
    "<<mark>>": ("mark", "#_the_end"),
    "mailto:a@b.c[write]": ("write", "mailto:a@b.c"),
}


@pytest.mark.parametrize("text", LINKS)
def test_links_of_asciidoc(text: str) -> None:
    made = adoc(f"= T\n:site: https://s.t\n\nSee {text} there.\n\n== The End\n\n[[mark]]Words.")
    assert [LINKS[text]] == [(link.text, link.target) for link in made[0].links]
    assert f"See {LINKS[text][0]}" in made[0].text


def test_tables_of_asciidoc() -> None:
    table = '[cols="1,1,a",options="header"]\n|===\n|A |B |C\n2+|wide |c1\n\n|x\n|y \\| z\n|Words.\n3*|same\n|===\n'
    (made,) = adoc(f"= T\n\n{table}")
    for cell in ("wide", "y | z", "Words.", "same"):
        assert cell in made.text
    assert 3 == made.text.count("same")
    (made,) = adoc('= T\n\n[%header,format=csv]\n|===\nName,Value\n"a, b",1\n|===')
    assert "a, b" in made.text


def test_what_asciidoc_leaves_out_is_counted_and_every_branch_is_kept() -> None:
    document = read_asciidoc(
        "= T\n\nifdef::pro[]\nPro words.\nendif::[]\nifndef::pro[Other words.]\n\n----\ninclude::x.py[]\n----\n// note"
    )
    (made,) = passages_of(document, "a.adoc")
    assert "Pro words. Other words." == made.text
    assert {"included files": 1, "comments": 1} == {one.kind: one.parts for one in document.omissions}


def test_front_matter_of_a_site_names_an_asciidoc_page() -> None:
    document = read_asciidoc("---\ntitle: Named\n---\nWords.\n\n== A\n\nx")
    assert "Named" == document.title


DIRECTIVES = {
    ".. versionadded:: 2.0": "Added in version 2.0",
    ".. versionchanged:: 2.0\n   Words go on.": "Changed in version 2.0: Words go on.",
    ".. deprecated:: 2.0\n\n   Words go on.": "Deprecated since version 2.0: Words go on.",
    ".. seealso:: Words": "See also: Words",
    ".. unknown:: Words\n   :option: x\n\n   More.": "Words\nMore.",
    ".. class:: compact\n\nWords.": "Words.",
    ".. py:class:: Gauge(path)\n\n   Reads.": "Gauge(path)\nReads.",
    ".. only:: html\n\n   Words.": "Words.",
    ".. highlight:: python\n\nWords.": "Words.",
    "Use :kbd:`Ctrl`, :func:`~a.b`, :abbr:`LTS (long)`, |undefined|.": "Use Ctrl, b, LTS (long), |undefined|.",
    ".. tabs::\n\n   .. tab:: One\n\n      Words.": "One\nWords.",
}


@pytest.mark.parametrize("text", DIRECTIVES)
def test_directives_and_roles_of_sphinx(text: str) -> None:
    (made,) = rst(f"T\n=\n\n{text}\n")
    assert DIRECTIVES[text] == made.text.replace("`", "")


def test_restructuredtext_opens_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / "secret.txt"
    secret.write_text("secret words")
    (tmp_path / "docutils.conf").write_text("[general]\nfile_insertion_enabled: yes\nraw_enabled: yes\n")
    ways = [
        "include:: {0}",
        "literalinclude:: {0}",
        "raw:: html\n   :file: {0}",
        "csv-table:: X\n   :file: {0}",
        "csv-table:: X\n   :url: file://{0}",
    ]
    for way in ways:
        made = rst(f"T\n=\n\nWords.\n\n.. {way.format(secret)}\n")
        assert "secret words" not in made[0].text
        assert made[0].text.startswith("Words.")


def test_text_that_is_no_valid_restructuredtext_is_kept_with_a_remark() -> None:
    document = read_restructuredtext("T\n=\n\n=== ===\nlost words\n\nMore.")
    (made,) = passages_of(document, "a.rst")
    assert "lost words" in made.text
    assert "not valid reStructuredText" in document.remarks[0]
    assert "line" in document.remarks[0]


def folder_of(tmp_path: Path, **files: str) -> DocumentCorpus:
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return read_documents(tmp_path)


def targets(corpus: DocumentCorpus) -> Sequence[str]:
    return [link.target for passage in corpus.passages for link in passage.links]


def test_references_of_sphinx_lead_to_pages_and_sections(tmp_path: Path) -> None:
    index = "T\n=\n\n:ref:`use`, :ref:`top <page>`, :doc:`/sub/page`, :doc:`sub/page`, :ref:`lost`.\n"
    page = ".. _page:\n\nPage\n====\n\nx :doc:`/index`\n\n.. _use:\n\nHow to use\n----------\n\nx\n"
    corpus = folder_of(tmp_path, **{"index.rst": index, "sub__page.rst": page})
    assert [
        "/sub/page.rst#how-to-use",
        "/sub/page.rst",
        "/sub/page.rst",
        "sub/page.rst",
        ":ref:lost",
        "/index.rst",
    ] == targets(corpus)


def test_references_of_antora_lead_to_pages_of_modules(tmp_path: Path) -> None:
    page = (
        "= P\n\nxref:b.adoc[1] xref:ops:c.adoc#x[2] xref:comp:ops:c.adoc[3] xref:lost:c.adoc[4] xref:./b.adoc[5] <<x>>"
    )
    corpus = folder_of(
        tmp_path,
        **{
            "docs__modules__ROOT__pages__sub__a.adoc": page,
            "docs__modules__ROOT__pages__b.adoc": "= B\n\nx",
            "docs__modules__ops__pages__c.adoc": "= C\n\n[#x]\n== X\n\nx",
        },
    )
    modules = "/docs/modules"
    found = [f"{modules}/ROOT/pages/b.adoc", f"{modules}/ops/pages/c.adoc#x", f"{modules}/ops/pages/c.adoc"]
    assert [*found, "lost:c.adoc", "./b.adoc", "#x"] == targets(corpus)


def test_one_broken_file_stops_nothing_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("# Good\n\nWords.")
    (tmp_path / "a.docx").write_bytes(b"PK\x03\x04 no zip")
    (tmp_path / "b.docx").write_bytes(b"\xd0\xcf\x11\xe0 old")
    (tmp_path / "c.ipynb").write_text('{"cells": ')
    (tmp_path / "d.ipynb").write_text('{"data": []}')
    (tmp_path / "e.rst").write_text("T\n=\n\n" + "x" * 10_001)
    (tmp_path / "f.adoc").write_bytes(b"= T\n\n\x00\x01binary")
    with zipfile.ZipFile(tmp_path / "g.docx", "w") as archive:
        archive.writestr("other.xml", "<a/>")
    corpus = read_documents(tmp_path)
    assert {"markdown": 1} == corpus.kinds
    for name, reason in {
        "a.docx": "is damaged, or no Word document",
        "b.docx": "has a password, or is in Word's old format",
        "c.ipynb": "line 1: not JSON",
        "d.ipynb": "is no Jupyter notebook (it has no list of cells)",
        "e.rst": "has a line of over 10,000 characters",
        "f.adoc": "is binary, not text",
        "g.docx": "is damaged, or no Word document (Could not find main document part",
    }.items():
        (found,) = (one for one in corpus.left_out if one.startswith(name))
        assert reason in found
        assert ": " in found


ENTITIES = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><w:document W_NS>&b;</w:document>'


def test_entities_in_word_documents_are_refused(tmp_path: Path) -> None:
    path = word.write_docx(tmp_path / "a.docx", "", {"word/document.xml": ENTITIES})
    with pytest.raises(UnreadableError, match=r"declares entities in word/document\.xml"):
        read_docx(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", ENTITIES.replace('"1.0"', '"1.0" encoding="UTF-16"').encode("utf-16"))
    with pytest.raises(UnreadableError, match="declares entities"):
        read_docx(path)


def test_word_documents_that_unpack_to_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docx_module, "XML_LIMIT", 100_000)
    path = word.write_docx(tmp_path / "a.docx", "", {"word/document.xml": " " * 1_000_000})
    assert path.stat().st_size < 10_000
    with pytest.raises(UnreadableError, match=r"unpacks to 1,00\d,\d{3} bytes of text in 4 parts, over the limit"):
        read_docx(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("= T\n:a: " + "x" * 1000 + "\n\n" + "{a}" * 20_000, "grows by over"),
        (
            "= T\n" + "".join(f":a{n}: {{a{n - 1}}}{{a{n - 1}}}\n" if n else ":a0: xx\n" for n in range(40)),
            "grows by over",
        ),
        ("= T\n\n|===\n" + "9999*|" + "x" * 3000 + "\n|===", "grows by over"),
        ("= T\n\n" + "".join(f"{'=' * (4 + n)}\n" for n in range(100)), "nests blocks over 60 levels deep"),
    ],
)
def test_asciidoc_that_would_grow_beyond_measure_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UnreadableError, match=problem):
        read_asciidoc(text)


@pytest.mark.parametrize(
    "part", ["*a ", "_a ", "`a ", "<<a ", "link:a[", "[[a", "{a", "((a", "+a ", "footnote:[a ", "a::", "[a"]
)
def test_asciidoc_that_closes_nothing_takes_no_long_time(part: str) -> None:
    assert adoc("= T\n\n" + part * 5_000)


def test_cells_of_notebooks(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "raw", "source": "---\ntitle: Named\n---\n"},
        {"cell_type": "code", "source": "x = '```'", "outputs": [{"output_type": "stream", "text": "line\n" * 41}, 5]},
        {"cell_type": "code", "source": [], "outputs": None},
        {"cell_type": "heading", "level": 2, "source": "Old"},
        "no cell",
        {"cell_type": "markdown", "source": ["Words ", "here."]},
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "R"}}}))
    document = read_notebook(path)
    made = list(passages_of(document, "a.ipynb"))
    assert ("Named", "a.ipynb#old", "Words here.") == (document.title, made[1].id, made[1].text)
    assert "x = '```'" in made[0].text
    assert ("images and long output of cells", 1, 41) in [
        (one.kind, one.parts, one.words) for one in document.omissions
    ]
    path.write_text(json.dumps({"worksheets": [{"cells": [{"cell_type": "code", "input": "y = 1"}]}]}))
    (passage,) = passages_of(read_notebook(path), "a.ipynb")
    assert "y = 1" in passage.text
