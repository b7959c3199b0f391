"""A folder of Markdown, HTML, PDF and text files as a corpus."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PageObject, PdfReader
from tests.support.documents import QUESTIONS, pdf, write_documents, write_questions

from hopbench.eval.benchmarks import load_benchmark, shown_warnings
from hopbench.eval.benchmarks.documents import read_documents
from hopbench.eval.benchmarks.documents.document import PASSAGE_TOKENS, Document, Section, passages_of
from hopbench.eval.benchmarks.documents.html import read_html
from hopbench.eval.benchmarks.documents.markdown import NESTING_LIMIT, read_markdown
from hopbench.eval.benchmarks.documents.pdf import read_pdf
from hopbench.eval.benchmarks.fields import ID_LIMIT
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import Source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_documents(tmp_path / "ferry")


def test_every_document_becomes_passages_with_ids_titles_and_sources(folder: Path) -> None:
    benchmark = load_benchmark(folder)

    assert ("ferry", "report", ()) == (benchmark.name, benchmark.role, benchmark.warnings)
    found = {passage.id: passage.title for passage in benchmark.passages}
    assert {
        "handbook.md": "Harbour handbook",
        "handbook.md#ships": "Ships (Harbour handbook)",
        "handbook.md#crew": "Crew (Harbour handbook: Ships)",
        "handbook.md#timetable": "Timetable (Harbour handbook)",
        "notes.txt": "notes",
        "safety.pdf#page=1": "Safety manual",
        "safety.pdf#page=2": "Safety manual",
        "web/talvik.html": "Talvik yard",
        "web/talvik.html#owners": "Owners (Talvik yard)",
    } == found
    assert Source(2, "safety.pdf", "safety.pdf") == benchmark.sources["safety.pdf#page=2"]
    assert Source(None, "web/talvik.html", "talvik.html") == benchmark.sources["web/talvik.html#owners"]
    assert {key: gold for key, *_, gold in QUESTIONS} == {q.id: q.gold for q in benchmark.questions}
    assert "gold" not in benchmark.questions[0].metadata


def test_markup_navigation_and_scripts_are_no_text(folder: Path) -> None:
    text = {passage.id: passage.text for passage in load_benchmark(folder).passages}
    assert text["web/talvik.html"] == "The Talvik yard lies in Norhaven."
    assert text["web/talvik.html#owners"] == "Piet Arkema owns the yard.\nHis sister audits it."
    assert text["handbook.md#timetable"] == "ship: Kestrel; leaves: 07:15\nship: Merganser; leaves: 09:40"


def test_questions_of_another_file_and_none_at_all(folder: Path, tmp_path: Path) -> None:
    (folder / "queries.jsonl").unlink()
    with pytest.raises(InputError, match=r"It is a corpus without questions, which are needed here.*--questions"):
        load_benchmark(folder)
    assert () == load_benchmark(folder, need_questions=False).questions

    other = write_questions(tmp_path / "asked.jsonl")
    assert 3 == len(load_benchmark(folder, questions=other).questions)
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("m1\tnotes.txt\t1\n")  # judgements decide where there are some
    assert [("m1", ("notes.txt",))] == [(q.id, q.gold) for q in load_benchmark(folder, questions=other).questions]


def test_gold_that_is_no_passage_is_refused(folder: Path) -> None:
    file = folder / "queries.jsonl"
    file.write_text('{"_id": "a", "text": "Who?", "gold": "handbook.md#nowhere"}\n')
    with pytest.raises(InputError, match=r"1 gold id is not in the corpus: 'handbook.md#nowhere' \(line 1\)"):
        load_benchmark(folder)
    file.write_text('{"_id": "a", "text": "Who?", "gold": [{"id": "notes.txt"}]}\n')
    with pytest.raises(InputError, match="line 1: field 'gold' must be a string, not an object"):
        load_benchmark(folder)


def test_a_table_of_questions_names_several_passages(folder: Path) -> None:
    (folder / "queries.jsonl").unlink()
    rows = 'id,question,answer,gold\na,Who?,Ada,notes.txt\nb,Where?,There,"[""notes.txt"", ""handbook.md""]"\n'
    (folder / "queries.csv").write_text(rows)
    assert [("notes.txt",), ("notes.txt", "handbook.md")] == [q.gold for q in load_benchmark(folder).questions]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: From the front\n---\n# Heading\nx", "From the front"),
        ('+++\ntitle = "From TOML"\n+++\nx', "From TOML"),
        ("intro\n\n## A *heading*\nx", "A heading"),
        ("---\nno: [front\n---\n# Heading\nx", "no: [front"),  # a setext heading, as no front matter parses
    ],
)
def test_titles_of_markdown(text: str, title: str) -> None:
    assert title == read_markdown(text).title


def test_code_markup_and_broken_lines_of_markdown_are_text() -> None:
    text = "one  \ntwo\nthree `code` ![a picture](x.png)\n\n```\nfenced\n```\n\n<div>in <b>a block</b></div>\n"
    (section,) = read_markdown(text).sections
    assert ("one two three `code` a picture", "```\nfenced\n```", "in a block") == tuple(
        map(str.strip, section.paragraphs)
    )


def test_a_declaration_that_no_html_has_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("good")
    (tmp_path / "bad.html").write_text("<p>text <![unheard[ of ]]>")
    (left_out,) = read_documents(tmp_path).left_out
    assert left_out.startswith("bad.html is no HTML (")
    assert left_out.endswith("): export it again")


def test_names_that_differ_only_in_how_accents_are_written_are_named(tmp_path: Path) -> None:
    for name in ("caf\u00e9.md", "cafe\u0301.md"):
        (tmp_path / name).write_text(name)
    corpus = read_documents(tmp_path)
    assert ["caf\u00e9.md"] == [passage.id for passage in corpus.passages]
    assert ["another file's name differs only in how its accents are written: rename one"] == [
        remark.partition(": ")[2] for remark in corpus.left_out
    ]


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<title>T</title><h2>a</h2><h1>b</h1>x", "b"),
        ("<title>T</title><h2>a</h2>x", "T"),
        ("<h2>a</h2>x", "a"),
        ("x", ""),
    ],
)
def test_titles_of_html(page: str, title: str) -> None:
    assert title == read_html(page).title


def test_the_content_of_a_page_is_main_or_its_only_article() -> None:
    def words(page: str) -> list[str]:
        return [text for section in read_html(page).sections for text in section.paragraphs]

    assert ["b"] == words("<p>a</p><main><p>b</main><p>c")
    assert ["b"] == words("<p>a<article><p>b</article>c")
    assert ["a", "b", "c"] == words("<article>a</article><article>b</article>c")
    assert ["never closed", "b"] == words("<nav>never closed<body>b")
    assert ["a 1 | 2 b"] == [" ".join(words("a<table><tr><td>1<td>2</table>b"))]


@given(st.text(max_size=300))
def test_no_word_of_a_text_is_lost(text: str) -> None:
    document = Document("T", [Section((), (text,))])
    passages = list(passages_of(document, "a.txt", max_tokens=5))
    assert "".join(text.split()) == "".join("".join(passage.text.split()) for passage in passages)
    assert all(count_tokens(passage.text) <= 5 for passage in passages)
    assert len({passage.id for passage in passages}) == len(passages)


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["A", "a", "A-1", "!", "part=2", "page=1", "B (c)"]))))
def test_ids_are_unique_and_of_the_content_alone(headings: list[tuple[int, str]]) -> None:
    text = "start\n\n" + "".join(
        f"{'#' * level} {words}\n\ntext {place}\n\n" for place, (level, words) in enumerate(headings)
    )
    ids = [passage.id for passage in passages_of(read_markdown(text), "a.md")]
    assert len(set(ids)) == len(ids) == len(headings) + 1
    assert all(len(one) < ID_LIMIT and one.startswith("a.md") for one in ids)


def test_a_long_section_is_cut_at_paragraphs_then_sentences() -> None:
    long = " ".join(f"Sentence number {n} is here." for n in range(150))  # 150 sentences of 6 or 7 tokens
    document = Document("T", [Section(("H",), ("First.", long, "Last."))])
    passages = list(passages_of(document, "a.md"))
    assert ["a.md#h", "a.md#h&part=2", "a.md#h&part=3", "a.md#h&part=4"] == [passage.id for passage in passages]
    assert all(count_tokens(passage.text) <= PASSAGE_TOKENS for passage in passages)
    assert all(passage.text.endswith(".") for passage in passages)
    assert passages[0].text.startswith("First.\nSentence number 0 is here. Sentence")
    endless = list(passages_of(Document("", [Section((), ("a" * 100_000,))]), "a.txt"))
    assert all(count_tokens(passage.text) <= PASSAGE_TOKENS for passage in endless)


UNREADABLE: dict[str, tuple[str, bytes | Callable[[], bytes], str]] = {
    "empty": ("x.md", b" \n", "x.md is empty: write something"),
    "binary": ("x.md", bytes(range(256)) * 50, "x.md is binary, not text: give it the ending of what it is"),
    "NUL": ("x.txt", b"a\0b", "x.txt is binary"),
    "half UTF-16": ("x.txt", b"\xff\xfea", "x.txt is not valid utf-16 at byte 2"),
    "deep quotes": ("x.md", b">" * 500 + b"x", f"x.md nests lists or quotes over {NESTING_LIMIT} levels"),
    "no PDF": ("x.pdf", b"<html>", r"x.pdf is damaged, or no PDF \("),
    "half a PDF": ("x.pdf", lambda: pdf(["hello"])[:300], r"x.pdf is damaged, or no PDF \("),
    "a password": ("x.pdf", lambda: pdf(["hello"], password="secret"), "x.pdf is encrypted: save it without"),
    "images": ("x.pdf", lambda: pdf(["", ""]), "x.pdf has no text on any of its 2 pages: .* OCR"),
    "an image among pages": (
        "x.pdf",
        lambda: pdf(["hello", "", ""]),
        r"x.pdf: 2 of its pages are without text .*\(2, 3\)",
    ),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read_is_named_with_the_remedy(tmp_path: Path, case: str) -> None:
    name, content, said = UNREADABLE[case]
    (tmp_path / name).write_bytes(content() if callable(content) else content)
    (tmp_path / "good.md").write_text("good")

    benchmark = load_benchmark(tmp_path, need_questions=False)

    (warning,) = benchmark.warnings
    assert re.match(said, warning)
    assert "good.md" in {passage.id for passage in benchmark.passages}


def test_a_folder_of_nothing_but_faults_is_refused_with_the_reasons(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"\0")
    (tmp_path / "b.pdf").write_bytes(b"")
    with pytest.raises(InputError, match=r"no document can be read: a.md is binary.*; b.pdf is damaged"):
        load_benchmark(tmp_path, need_questions=False)


def test_many_faults_and_files_of_other_kinds_are_counted(tmp_path: Path) -> None:
    for n in range(8):
        (tmp_path / f"{n}.md").write_bytes(b"")
    (tmp_path / "good.md").write_text("good")
    (tmp_path / "plan.pptx").write_bytes(b"PK")
    (tmp_path / "image.png").write_bytes(b"")
    benchmark = load_benchmark(tmp_path, need_questions=False)
    *left_out, other = benchmark.warnings
    *shown, more = shown_warnings(benchmark)
    assert (8, left_out[:5]) == (len(left_out), shown)
    assert "4 more files of the corpus have warnings: `hopbench check-data` lists them" in more
    assert other.startswith("files of other kinds are not read (1 .pptx): a document ends in .md,")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Café naïve façade für Straße", "cp1252"),
        ("São Paulo é a maior cidade do país, não há dúvida; coração", "cp1252"),
        ("Smørrebrød på Ærø, åbent hver dag", "cp1252"),
        ("Čeština je západoslovanský jazyk, nejbližší slovenštině.", "cp1250"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "cp1250"),
        ("Zażółć gęślą jaźń, łódź jest miastem w Polsce.", "cp1250"),
    ],
)
def test_the_code_page_of_a_text_without_a_declaration(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    assert [text] == [passage.text for passage in read_documents(tmp_path).passages]


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("Größe".encode("utf-8-sig"), ""),
        ("Größe".encode("utf-16"), "utf-16"),
        ("Größe".encode("utf-32"), "utf-32"),
        ('<meta charset="iso-8859-1"><p>Größe'.encode("latin-1"), "iso-8859-1"),
        ('<meta charset="base64"><p>Größe und schöne Füße, über Flüsse'.encode("latin-1"), "cp125"),  # no text encoding
    ],
)
def test_encodings(tmp_path: Path, content: bytes, read: str) -> None:
    (tmp_path / "a.html").write_bytes(content)
    corpus = read_documents(tmp_path)
    assert corpus.passages[0].text.startswith("Größe")
    assert [read] == [re.findall("read as (\\S+?):|$", remark)[0][: len(read)] for remark in corpus.remarks or ("",)]


def test_links_are_followed_inside_the_folder_only_and_never_in_circles(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.md").write_text("inside")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "b.md").write_text("behind a link")
    (folder / "deep" / "up").symlink_to(folder)
    (folder / "self.md").symlink_to(folder / "self.md")
    (folder / "again.md").symlink_to(folder / "deep" / "a.md")
    (folder / "shown").symlink_to(folder / ".hidden")
    (folder / "secret.md").symlink_to(outside / "secret.md")
    (folder / "others").symlink_to(outside)
    os.mkfifo(folder / "pipe.md")

    corpus = read_documents(folder)

    assert ["deep/a.md", "shown/b.md"] == [passage.id for passage in corpus.passages]
    assert [
        "others: is a link out of the folder: copy what it leads to into the folder",
        "pipe.md: is no ordinary file: write what it should give into a file",
        "secret.md: is a link out of the folder: copy what it leads to into the folder",
        "self.md: is a link that leads nowhere, or in a circle: remove it",
    ] == sorted(corpus.left_out)


def test_names_that_no_id_can_hold_are_named(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("good")
    (tmp_path / "a\tb.md").write_text("x")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")).write_text("x")
    assert [
        "'\\udcff.md': its name is not UTF-8: rename it",
        "'a\tb.md': its name holds a control character: rename it".replace("\t", "\\t"),
    ] == sorted(one.replace("\\\\", "\\") for one in read_documents(tmp_path).left_out)


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ("[" * 50_000, ""),  # as it is: so many brackets are not looked for
        ("*a_ " * 15_000, ""),
        ("[a](<b" * 15_000, ""),
        ("<a b=" * 20_000, ""),
        ("word [link](x) " * 5_000, "word link " * 5_000),
        ("a &amp; b " * 20_000, "a & b " * 20_000),
    ],
)
def test_a_paragraph_without_end_is_read_whole(tmp_path: Path, content: str, kept: str) -> None:
    (tmp_path / "a.md").write_text(content)
    page = "<div>" * 20_000 + content.replace("[link](x)", "<a href=x>link</a>")
    (tmp_path / "b.html").write_text(page)
    made = read_documents(tmp_path).passages
    for name in ("a.md", "b.html"):
        found = "".join(word for one in made if one.id.startswith(name) for word in one.text.split())
        assert "".join((kept or content).split()) == found


def test_bookmarks_name_the_pages_of_a_pdf(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(["one", "two", "evi-\ndence"], bookmarks=[("First", 0), ("Third", 2)]))
    passages = read_documents(tmp_path).passages
    assert ["First (a)", "First (a)", "Third (a)"] == [passage.title for passage in passages]
    assert "evidence" == passages[2].text


def raising(error: type[BaseException]) -> Callable[..., None]:
    def work(*_: object) -> None:
        raise error

    return work


def test_a_damaged_outline_is_told_and_the_pages_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(["one", "two"], bookmarks=[("First", 0)]))
    monkeypatch.setattr("pypdf.PdfReader.outline", property(raising(RecursionError)))

    documents = read_documents(tmp_path)

    assert ["one", "two"] == [passage.text for passage in documents.passages]
    assert ["a", "a"] == [passage.title for passage in documents.passages]
    assert any(warning.startswith("a.pdf: its outline is damaged") for warning in documents.warnings)


def test_damaged_metadata_are_told_and_the_title_is_the_file_s_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(["one"]))
    monkeypatch.setattr("pypdf.PdfReader.metadata", property(raising(KeyError)))

    documents = read_documents(tmp_path)

    assert [("a", "one")] == [(passage.title, passage.text) for passage in documents.passages]
    assert any(warning.startswith("a.pdf: its metadata are damaged (KeyError)") for warning in documents.warnings)


@pytest.mark.parametrize(
    ("pages", "bad", "said"),
    [
        (
            ["one", "two"],
            {0},
            r"a\.pdf: 1 of its pages are damaged \(bad stream 1\) and left out \(1\): if they",
        ),
        (["one", "two"], {0, 1}, r"a\.pdf has 2 of its 2 pages damaged \(bad stream 1\): export or download it again"),
        (["one", ""], {0}, r"a\.pdf has 1 of its 2 pages damaged \(bad stream 1\), and no text on the others: export"),
    ],
)
def test_damaged_pages_are_told_with_the_reason(
    pages: list[str], bad: set[int], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(pages))
    (tmp_path / "b.txt").write_text("Other text.")
    extract = PageObject.extract_text

    def text_of(page: PageObject) -> str:
        if page.page_number in bad:
            raise ValueError(f"bad stream {(page.page_number or 0) + 1}")
        return extract(page)

    monkeypatch.setattr("pypdf.PageObject.extract_text", text_of)
    assert any(re.search(said, warning) for warning in read_documents(tmp_path).warnings)


@pytest.mark.parametrize("at", ["pypdf.PageObject.extract_text", "pypdf.PdfReader.outline", "pypdf.PdfReader.metadata"])
def test_no_file_is_called_damaged_where_memory_ends(at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(["one"]))
    fails = raising(MemoryError)
    monkeypatch.setattr(at, fails if at.endswith("text") else property(fails))
    with pytest.raises(MemoryError):
        read_pdf(tmp_path / "a.pdf")


def test_a_card_among_documents_gives_the_role(folder: Path) -> None:
    (folder / "README.md").write_text("---\nnot: [a card\n---\n# About\nText.\n")
    assert "report" == load_benchmark(folder).role
    (folder / "README.md").write_text("---\nhopbench:\n  role: tune\n---\n# About\nText.\n")
    assert "tune" == load_benchmark(folder).role


def test_line_breaks_of_a_pdf_are_folded(tmp_path: Path) -> None:
    """pypdf 7.1.0 may put one between two strings that stand on one line."""
    (tmp_path / "a.pdf").write_bytes(pdf(["Ada\nLovelace wrote\nnotes."]))

    assert "Ada\nLovelace" in PdfReader(tmp_path / "a.pdf").pages[0].extract_text()
    (passage,) = read_documents(tmp_path).passages
    assert "Ada Lovelace wrote notes." == passage.text
