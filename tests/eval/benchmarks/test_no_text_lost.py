"""Every reader: the words of the input, less markup, are the words of the passages, in their order."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.documents import pdf

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.benchmarks.documents.tables import LABELLED_COLUMNS
from hopbench.eval.types import Benchmark
from hopbench.retrieval.types import Passage

LETTERS = "abcdefghijklmnopqrstuvwxyzÄÖüßéñçøйкаδλ中文日本किमا"  # no letter is an entity's name or begins markup
WORDS = st.text(LETTERS, min_size=1, max_size=9)
LONG = 1200  # words: more than 5,000 characters


class Piece(NamedTuple):
    """Something as a format writes it, with its words, and what of it is left out by the kind that findings name."""

    written: str
    words: list[str]
    left_out: str = ""


INLINE = {
    "a.md": (
        *("{}", "*{}*", "**{}**", "`{}`", "[{}](target.md)", "<b>{}</b>", "![{}](image.png)", "[{}][reference]"),
        *("<span title='never'>{}</span>", "{}  \nbroken", "{}<br>broken", "{}\nbroken"),
        *(r"\*{}\*", "&eacute;{}&amp;", "{}<!-- never -->", "<span hidden>never</span> {}", "![](image.png) {}"),
    ),
    "a.html": (
        *("{}", "<em>{}</em>", "<a href='target.html'>{}</a>", "<img alt='{}' src='image.png'>", "{}<br>broken"),
        *("&eacute;{}&amp;", "{}<!-- never -->", "<span hidden>never</span> {}", "<img src='image.png'> {}"),
        *("<button>{}</button>broken", "<span style='display: none'>never</span> {}", "<code>{}</code>"),
    ),
}
LEFT_OUT = {
    "<!-- never -->": "comments",
    "hidden": "hidden elements",
    "display: none": "hidden elements",
    "![](": "images without alternative text",
    "<img src": "images without alternative text",
}


def inline(name: str) -> st.SearchStrategy[Piece]:
    def piece(form: str, word: str) -> Piece:
        marked = "`" in form or "<code>" in form
        shown = (
            [f"`{word}`"]
            if marked
            else [f"é{word}&"]
            if "&eacute;" in form
            else [f"*{word}*"]
            if form.startswith("\\")
            else [word]
        )
        kind = next((kind for mark, kind in LEFT_OUT.items() if mark in form), "")
        return Piece(form.format(word), shown + ["broken"] * ("broken" in form), kind)

    return st.builds(piece, st.sampled_from(INLINE[name]), WORDS)


def joined(pieces: Sequence[Piece], form: str, between: str = " ") -> list[Piece]:
    """The pieces inside a form, the first of them with its beginning and the last with its end."""
    before, after = form.split("{}")
    first, *rest = [Piece(between + one.written, one.words, one.left_out) for one in pieces]
    opened = [first._replace(written=before + first.written.removeprefix(between)), *rest]
    return [*opened[:-1], opened[-1]._replace(written=opened[-1].written + after)]


def cells(name: str, rows: Sequence[Sequence[str]]) -> list[Piece]:
    """A table with as many columns as its first row has, however many the others have."""
    words = [word for row in rows for word in row]
    if name == "a.md" and len(rows) > 1 and len(rows[0]) <= LABELLED_COLUMNS:
        head, *body = rows
        whole = [] if max(map(len, body)) >= len(head) else list(head)
        words = [*whole, *(word for row in body for word in labelled(row, head))]
    if name == "a.html":
        body = "".join(f"<tr>{''.join(f'<td>{word}</td>' for word in row)}</tr>" for row in rows)
        return [Piece(f"<table>{body}</table>\n", words)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [Piece("\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]) + "\n\n", words)]


def labelled(row: Sequence[str], head: Sequence[str]) -> Iterator[str]:
    for number, word in enumerate(row):
        yield from [f"{head[number]}:"] * (number < len(head))
        yield f"{word};" if number + 1 < len(row) else word


def blocks(name: str) -> st.SearchStrategy[list[Piece]]:
    some = st.lists(inline(name), min_size=1, max_size=6)
    many = st.lists(WORDS, min_size=3, max_size=5).map(
        lambda words: [Piece(" ".join(words * (LONG // len(words))), words * (LONG // len(words)))]
    )
    code = st.lists(st.lists(WORDS, min_size=1), min_size=1, max_size=5).map(
        lambda lines: ("\n".join("   ".join(words) for words in lines), [word for words in lines for word in words])
    )
    language = "```python" if name == "a.md" else "```"
    forms, fence, noise = {
        "a.md": (
            ("{}\n\n", "- {}\n\n", "> {}\n\n", "1. {}\n\n", "   {}\n\n", "## {}\n\nbelow\n\n"),
            "```python\n{}\n```\n\n",
            {"<script>never</script>\n\n": "scripts", "<nav>never</nav>\n\n": "navigation"},
        ),
        "a.html": (
            ("<p>{}</p>", "<ul><li>{}</ul>", "<div>{}</div>", "<td>{}</td>", "<h2>{}</h2><p>below</p>", "<p>{}"),
            "<pre>{}</pre>",
            {
                "<script>never</script>": "scripts",
                "<style>never</style>": "styles",
                "<nav>never</nav>": "navigation",
                "<template><p>never</p></template>": "templates",
                "<p hidden>never<p>": "hidden elements",
            },
        ),
    }[name]

    def block(pieces: Sequence[Piece], form: str) -> list[Piece]:
        flat = [one._replace(written=one.written.replace("  \n", " ").replace("\n", " ")) for one in pieces]
        made = joined(flat if "##" in form else pieces, form)
        return [*made, Piece("", ["below"])] if "below" in form else made

    return st.one_of(
        st.builds(block, st.one_of(some, some, many), st.sampled_from(forms)),
        code.map(lambda lines: [Piece(fence.format(lines[0]), [language, *lines[1], "```"])]),
        st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=1, max_size=3).map(lambda rows: cells(name, rows)),
        st.sampled_from(sorted(noise)).map(lambda written: [Piece(written, [], noise[written])]),
    )


def documents(name: str) -> st.SearchStrategy[list[Piece]]:
    return st.lists(blocks(name), min_size=1, max_size=6).map(lambda found: [one for block in found for one in block])


def loaded(name: str, content: bytes) -> Benchmark:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        return load_benchmark(folder, need_questions=False)


def words_of(passages: Sequence[Passage]) -> list[str]:
    """Headings and texts in order; a heading that a title shortens is in the text."""
    found: list[str] = []
    for passage in passages:
        heading, _, _ = passage.title.partition(" (")
        found += [] if "part=" in passage.id or heading.endswith("...") else heading.split()
        found += [word for word in passage.text.split() if word != "|"]
    return found


@pytest.mark.parametrize("name", INLINE)
@given(data=st.data())
def test_markup(name: str, data: st.DataObject) -> None:
    pieces = data.draw(documents(name))
    before, after = {
        "a.md": ("# Top\n\nbegin\n\n", "\n\n[reference]: <elsewhere.md>\n"),
        "a.html": ("<h1>Top</h1>", ""),
    }[name]
    first = Piece("" if name == "a.md" else "<p>begin</p>", ["Top", "begin"])

    made = loaded(name, (before + "".join(one.written for one in [first, *pieces]) + after).encode())

    assert [word for one in [first, *pieces] for word in one.words] == words_of(made.passages)
    told = Counter({one.kind: one.parts for one in made.omissions if one.kind != UNUSED})
    assert Counter(one.left_out for one in pieces if one.left_out) == told


UNUSED = "definitions of links that are not used"
TEXTS = st.text(
    st.characters(
        codec="utf-8", exclude_categories=["Cc", "Cs"], include_characters="\n\t", exclude_characters="\ufeff"
    )
)


@given(TEXTS.filter(str.strip), st.integers(1, 400))
def test_plain_text(text: str, times: int) -> None:
    text = f"{text} " * times
    made = loaded("a.txt", text.encode())
    assert "".join(text.split()) == "".join("".join(passage.text.split()) for passage in made.passages)
    if all(len(word) <= 200 for word in text.split()):
        assert text.split() == [word for passage in made.passages for word in passage.text.split()]


def jsonl(rows: Sequence[tuple[str, str]]) -> bytes:
    return "".join(
        json.dumps({"_id": n, "title": title, "text": text}) + "\n" for n, (title, text) in enumerate(rows)
    ).encode()


def table(rows: Sequence[tuple[str, str]]) -> bytes:
    written = io.StringIO()
    csv.writer(written).writerows([("_id", "title", "text"), *((n, *row) for n, row in enumerate(rows))])
    return written.getvalue().encode()


@pytest.mark.parametrize(("name", "write"), [("corpus.jsonl", jsonl), ("corpus.csv", table)])
@given(rows=st.lists(st.tuples(TEXTS, TEXTS.filter(str.strip)), min_size=1, max_size=5))
def test_tables(name: str, write: Callable[[Sequence[tuple[str, str]]], bytes], rows: list[tuple[str, str]]) -> None:
    made = loaded(name, write(rows))
    assert [(title.split(), text.split()) for title, text in rows] == [
        (passage.title.split(), passage.text.split()) for passage in made.passages
    ]


LATIN = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789()\\.,;!?", min_size=1, max_size=12)


@given(st.lists(st.lists(st.lists(LATIN, min_size=1, max_size=8), max_size=40), min_size=1, max_size=4))
def test_pdf(pages: list[list[list[str]]]) -> None:
    texts = ["\n".join(" ".join(words) for words in lines) for lines in pages]
    with_words = [text for text in texts if any(map(str.isalnum, text))]
    if not with_words:
        return

    made = loaded("a.pdf", pdf(texts))

    assert " ".join(with_words).split() == [word for passage in made.passages for word in passage.text.split()]
    without = len(texts) - len(with_words)
    assert [f"a.pdf: {without} of its pages are without text and left out"][:without] == [
        warning.partition(" (")[0] for warning in made.warnings
    ]


def test_filled_forms_and_comments_of_a_pdf_are_counted() -> None:
    from pypdf import PdfReader, PdfWriter
    from pypdf.annotations import FreeText
    from pypdf.generic import ArrayObject, DictionaryObject, NameObject, TextStringObject

    writer = PdfWriter(PdfReader(io.BytesIO(pdf(["words of the page"]))))
    field = {"/FT": NameObject("/Tx"), "/T": TextStringObject("name"), "/V": TextStringObject("Ada Lovelace")}
    made = writer._add_object(DictionaryObject({NameObject(key): value for key, value in field.items()}))
    form = DictionaryObject({NameObject("/Fields"): ArrayObject([made])})
    writer._root_object[NameObject("/AcroForm")] = form
    writer.add_annotation(0, FreeText(text="check this again", rect=(50, 550, 200, 650)))
    content = io.BytesIO()
    writer.write(content)

    benchmark = loaded("a.pdf", content.getvalue())

    assert ["words of the page"] == [passage.text for passage in benchmark.passages]
    assert [("values of form fields", 1, 2), ("comments", 1, 3)] == [
        (one.kind, one.parts, one.words) for one in benchmark.omissions
    ]


def test_what_a_page_shows_beside_its_main_content_is_counted() -> None:
    made = loaded("a.html", b"<title>A page</title><header>the site</header><main><h1>Top</h1>words</main><p>imprint")
    assert ["words"] == [passage.text for passage in made.passages]
    assert [("text outside the main content", 2, 3), ("page titles other than the heading", 1, 2)] == [
        (one.kind, one.parts, one.words) for one in made.omissions
    ]


@pytest.mark.parametrize("heading", ["word " * 1200, "a " * 99 + "end", "(word) " * 40])
def test_a_title_that_is_shortened_is_in_the_text(heading: str) -> None:
    made = loaded("a.md", f"# {heading}\n\n## {heading} two\n\n### Deep\n\nBody.".encode())
    words = " ".join(f"{passage.title} {passage.text}" for passage in made.passages)
    assert {"two", "Deep", "Body.", *re.findall(r"\w+", heading)} <= {*re.findall(r"\w+\.?", words)}
    assert 2 * heading.count("word") <= words.count("word")
