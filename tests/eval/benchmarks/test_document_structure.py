"""What of a document's structure passages have: lines of code, sections' own ids, links, titles, footnotes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.benchmarks.beir import write_benchmark
from hopbench.eval.benchmarks.documents import read_documents
from hopbench.eval.benchmarks.documents.document import PASSAGE_TOKENS, passages_of
from hopbench.eval.benchmarks.documents.html import read_html
from hopbench.eval.benchmarks.documents.markdown import read_markdown
from hopbench.eval.benchmarks.fields import Place
from hopbench.eval.benchmarks.passages import read_links
from hopbench.retrieval.corpus import MappedPassages
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import Link, Passage

PLACE = Place("corpus.jsonl", "line", 3)
CODE = "def f(x):\n    if x:\n\n\treturn   1\n    return 2"


def markdown(text: str) -> list[Passage]:
    return list(passages_of(read_markdown(text), "a.md"))


def page(text: str) -> list[Passage]:
    return list(passages_of(read_html(text), "a.html"))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (markdown(f"Two\nlines.\n\n```python\n{CODE}\n```\n\nAfter."), f"Two lines.\n```python\n{CODE}\n```\nAfter."),
        (markdown("- item\n\n  ~~~\n  a\n    b\n  ~~~\n"), "item\n```\na\n  b\n```"),
        (markdown("Before.\n\n    a\n      b\n\nAfter."), "Before.\n```\na\n  b\n```\nAfter."),
        (
            page(f"<p>Two\nlines.</p><pre><code>\r\n{CODE}\n</code></pre>After."),
            f"Two lines.\n```\n{CODE}\n```\nAfter.",
        ),
        (page("<pre>a<br>  b<div>c</div><div>d</div></pre>"), "```\na\n  b\nc\nd\n```"),
        (markdown("````md\n```\nx\n```\n````"), "````md\n```\nx\n```\n````"),
        (markdown('``` python title="app.py" hl_lines="1"\nx\n```'), "```python app.py\nx\n```"),
        (markdown("```yaml With prefect.yaml [expandable]\nx\n```"), "```yaml With prefect.yaml\nx\n```"),
        (markdown("```{ .sh .annotate }\nx\n```"), "```sh\nx\n```"),
        (markdown("```js {1,3-5} showLineNumbers\nx\n```"), "```js\nx\n```"),
        (page("<pre class='language-js'><code>x</code></pre>y"), "```js\nx\n```\ny"),
        (page("<div class='highlight-toml notranslate'><div><pre>x</pre></div></div>"), "```toml\nx\n```"),
    ],
)
def test_code_keeps_its_lines(made: list[Passage], text: str) -> None:
    assert [text] == [passage.text for passage in made]


def test_long_code_is_cut_between_its_lines() -> None:
    lines = [f"    call({number})  # {number}" for number in range(200)]  # 200 lines of 10 tokens, 30 in a passage
    made = markdown("```py\n" + "\n".join(lines) + "\n```\n\nSee [the pool](a.md).")
    *codes, last = [passage.text.split("\n") for passage in made]
    assert "See the pool." == last.pop()
    assert lines == [line for code in [*codes, last] for line in code[1:-1]]
    assert all(code[0] == "```py" and code[-1] == "```" for code in [*codes, last])
    assert all(count_tokens(passage.text) <= PASSAGE_TOKENS for passage in made)
    assert 7 == len(made)
    assert [()] * 6 + [(Link("the pool", "a.md"),)] == [passage.links for passage in made]


def test_a_long_table_is_cut_between_its_rows() -> None:
    """The cells of a narrow one are labelled; in a wide one each part has the row of headings."""
    rows = [f"--flag-{number} | meaning {number} | {number} | yes" for number in range(60)]
    made = markdown(
        "| Flag | Meaning | Default | Required |\n|---|---|---|---|\n" + "\n".join(f"|{row}|" for row in rows)
    )
    parts = [passage.text.split("\n") for passage in made]
    assert rows == [row for part in parts for row in part[1:]]
    assert ["Flag | Meaning | Default | Required"] * len(parts) == [part[0] for part in parts]
    narrow = markdown("| Flag | Meaning |\n|---|---|\n" + "".join(f"| `-{n}` | turns {n} on |\n" for n in range(60)))
    assert [f"Flag: `-{n}`; Meaning: turns {n} on" for n in range(60)] == [
        row for passage in narrow for row in passage.text.split("\n")
    ]
    assert 1 < min(len(made), len(narrow))


@pytest.mark.parametrize(
    ("heading", "key", "title"),
    [
        ("## Open { #open-it }", "a.md#open-it", "Open (T)"),
        ("## Open {#open}", "a.md#open", "Open (T)"),
        ("## Open {: #v1.2 .new key='a b' }", "a.md#v1.2", "Open (T)"),
        ("## Open {.new}", "a.md#open", "Open (T)"),
        ("## *Open* {#open} ##", "a.md#open", "Open (T)"),
        ("Open { #open-it }\n---", "a.md#open-it", "Open (T)"),
        ("## Öffnen {#öffnen}", "a.md#öffnen", "Öffnen (T)"),
        ("## Part {#a&part=2}", "a.md#a-part-2", "Part (T)"),
        ("## GET /items/{id}", "a.md#get-itemsid", "GET /items/{id} (T)"),
        ("## The set {a, b}", "a.md#the-set-a-b", "The set {a, b} (T)"),
        ("## Code `{#x}`", "a.md#code-x", "Code {#x} (T)"),
        ("## Written \\{#x}", "a.md#written-x", "Written {#x} (T)"),
    ],
)
def test_a_heading_states_its_id(heading: str, key: str, title: str) -> None:
    (made,) = markdown(f"# T\n\n{heading}\n\nBody.")
    assert (key, title, "Body.") == (made.id, made.title, made.text)


def test_stated_ids_are_unique_too() -> None:
    made = markdown("# T\n\n## A {#b}\n\nx\n\n## B\n\nx\n\n## C {#b}\n\nx")
    assert ["a.md#b", "a.md#b-1", "a.md#b-2"] == [passage.id for passage in made]


LINKS = {
    "See [the pool](other.md#pool).": ("See the pool.", [("the pool", "other.md#pool")]),
    "[a *b* `c`](<x y.md> 'title')": ("a b `c`", [("a b `c`", "x y.md")]),
    "[x][y] and [y]\n\n[y]: ../Ü%20b.md?q=1&amp;r=2": (
        "x and y",
        [("x", "../Ü%20b.md?q=1&r=2"), ("y", "../Ü%20b.md?q=1&r=2")],
    ),
    "<https://a.b/ü> <me@a.b>": (
        "https://a.b/ü me@a.b",
        [("https://a.b/ü", "https://a.b/ü"), ("me@a.b", "mailto:me@a.b")],
    ),
    "[![a pool](pool.png)](other.md) ![no link](x.png)": ("a pool no link", [("a pool", "other.md")]),
    "<a href='o.html#p'>the\npool</a> <a name='x'>anchor</a>": ("the pool anchor", [("the pool", "o.html#p")]),
    "| a | b |\n|---|---|\n| [c](d) | e | [f](g) |": ("a: c; b: e; f", [("c", "d"), ("f", "g")]),
    "- [a](b)\n\n> [c](d)": ("a\nc", [("a", "b"), ("c", "d")]),
    "[javascript](javascript:alert(1))": ("javascript", [("javascript", "javascript:alert(1)")]),
    "word " * 1500 + "[late](late.md)": (None, [("late", "late.md")]),
}


@pytest.mark.parametrize("text", LINKS)
def test_links_of_markdown(text: str) -> None:
    words, links = LINKS[text]
    made = markdown(text)
    assert [Link(*link) for link in links] == [link for passage in made for link in passage.links]
    if words is not None:
        assert [words] == [passage.text for passage in made]
    assert all(link.text in passage.text for passage in made for link in passage.links)


@pytest.mark.parametrize(
    ("heading", "title", "links"),
    [
        ('Quay <a class="headerlink" href="#quay">¶</a>', "Quay", []),
        ('<a name="q"></a>Quay<a href="#quay" title="Permalink">#</a>', "Quay", []),
        ('<a href="pool.html">Pool</a> at sea <a href="#pool">\u200b</a>', "Pool at sea", ["Pool"]),
        ('<a href="#c">#</a>', "#", ["#"]),
        ('Stage <a href="#two">2</a>', "Stage 2", ["2"]),
        ('Signs <a href="signs.html">¶</a>', "Signs ¶", ["¶"]),
    ],
)
def test_a_sign_that_links_a_heading_to_itself_is_no_part_of_it(heading: str, title: str, links: list[str]) -> None:
    made = page(f"<h1>Harbour</h1><p>Deep.<h2>{heading}</h2><p>See <a href='x.html'>the x</a>.")[-1]
    assert (f"{title} (Harbour)", "See the x.") == (made.title, made.text)
    assert [*links, "the x"] == [link.text for link in made.links]


def test_links_of_html() -> None:
    made = page(
        "<h1>T</h1><p>See <a href=' other.html#p&amp;q '>the <b>pool</b></a>, <a href='x'><img alt='a map'></a>."
        "<nav><a href='home'>Home</a></nav><h2>On <a href='on'>links</a></h2>"
        "<a href='whole'><h3>Whole</h3><p>card</p></a><a href='empty'></a><a>none</a>"
    )
    assert [
        ("a.html", "See the pool, a map .", (Link("the pool", "other.html#p&q"), Link("a map", "x"))),
        ("a.html#whole", "card\nnone", (Link("links", "on"), Link("Whole card", "whole"), Link("", "empty"))),
    ] == [(passage.id, passage.text, passage.links) for passage in made]


def test_a_link_that_is_never_closed_ends_with_its_block() -> None:
    made = page("<p><a href='x'>one <b>two</b><p>three <a href='y'>four<p>five")
    assert [(Link("one two", "x"), Link("four", "y"))] == [passage.links for passage in made]
    assert ["one two\nthree four\nfive"] == [passage.text for passage in made]


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["a", "here", "the pool"])), min_size=1, max_size=8))
def test_a_link_is_in_the_part_that_has_its_words(found: list[tuple[int, str]]) -> None:
    text = "".join("here is a pool. " * before + f"[{words}](t{n}.md). " for n, (before, words) in enumerate(found))
    for passage in passages_of(read_markdown(text), "a.md", max_tokens=20):
        at = 0
        for link in passage.links:
            at = passage.text.index(link.text, at)
    made = [link for passage in passages_of(read_markdown(text), "a.md", max_tokens=20) for link in passage.links]
    assert [Link(words, f"t{n}.md") for n, (_, words) in enumerate(found)] == made


def test_links_are_written_and_read_back_however_passages_are_held(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# T\n\nSee [the pool](other.md#pool).\n\n## Plain\n\nText.")
    written = load_benchmark(folder, need_questions=False)
    write_benchmark(written, tmp_path / "out")

    linked, plain = map(json.loads, (tmp_path / "out" / "corpus.jsonl").read_text().splitlines())
    assert [{"text": "the pool", "target": "other.md#pool"}] == linked["links"]
    assert {"_id", "title", "text", "metadata"} == set(plain)
    read = load_benchmark(tmp_path / "out", need_questions=False)
    mapped = load_benchmark(tmp_path / "out", need_questions=False, mapped=tmp_path / "kept")
    assert isinstance(mapped.passages, MappedPassages)
    assert list(written.passages) == list(read.passages) == list(mapped.passages)
    assert mapped.passages[0].links == mapped.by_id["a.md"].links == (Link("the pool", "other.md#pool"),)
    assert written.digest == read.digest == mapped.digest
    write_benchmark(mapped, tmp_path / "again")
    assert (tmp_path / "out/corpus.jsonl").read_bytes() == (tmp_path / "again/corpus.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ()),
        ([{"text": "t", "target": "x"}], (Link("t", "x"),)),
        ('[{"text": "t", "target": "x"}]', (Link("t", "x"),)),  # as a table's cell
        ([{"text": None, "target": "x"}], (Link("", "x"),)),
        (["Berlin", "Paris"], ()),  # fields of this name in other people's corpora
        ([{"url": "x"}], ()),
        ("[see", ()),
    ],
)
def test_the_links_of_a_row(given: object, expected: tuple[Link, ...]) -> None:
    assert expected == read_links({"links": given}, PLACE)


def test_a_link_without_a_target_is_refused() -> None:
    with pytest.raises(InputError, match=r"line 3: field 'links: target' must be a string, not the number 5"):
        read_links({"links": [{"text": "t", "target": 5}]}, PLACE)


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("title: 1984", "1984"),
        ("title: 007", "007"),
        ("title: 1_000", "1_000"),
        ("title: 2024-01-05", "2024-01-05"),
        ("title: True", "True"),
        ("title: yes", "yes"),
        ("title: 1e3", "1e3"),
        ("title: 3.10", "3.10"),
        ('title: "1984"', "1984"),
        ("title: &year 1984\nother: *year", "1984"),
        ("title:", "Heading"),
        ("title: [a, b]", "Heading"),
        ("other: 1", "Heading"),
    ],
)
@pytest.mark.parametrize("end", ["---", "..."])
def test_the_title_of_front_matter_is_as_written(front: str, title: str, end: str) -> None:
    document = read_markdown(f"---\n{front}\n{end}\n# Heading\n\nText.")
    assert title == document.title
    assert [("front matter", 1, len(front.split()))] == [(o.kind, o.parts, o.words) for o in document.omissions]


@pytest.mark.parametrize(
    ("front", "title"), [("title = 1984", "1984"), ("title = true", "true"), ("title = 1979-05-27", "1979-05-27")]
)
def test_the_title_of_toml(front: str, title: str) -> None:
    assert title == read_markdown(f"+++\n{front}\n+++\nText.").title


BROKEN = {
    "---\nno: [front\nmore\n---\nText.": r"a\.md: its front matter is not YAML \(.*, line \d\) and is read as text",
    "---\ntitle: x\ntitle: y\n---\nText.": r"a\.md: its front matter is not YAML \(.*'title' stands twice.*, line 3\)",
    "---\ndate: 2024-13-45\n---\nText.": r"a\.md: its front matter is not YAML \(month must be in 1..12, line 1\)",
    "+++\ntitle = \n+++\nText.": r"a\.md: its front matter is not TOML \(.*line 1, .*counted from line 2\)",
    "---\nOnly prose between rules.\n---\nText.": "",
    "---\n\nNote: prose after a rule.\n\n---\nText.": "",
    "---\n- a list\n---\nText.": "",
    "---\nnever closed: x\n\nText.": "",
    "***\nNote: prose\n***\nText.": "",
}


@pytest.mark.parametrize("text", BROKEN)
def test_front_matter_that_is_none_is_text(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(text)
    made = read_documents(tmp_path)
    words = re.findall(r"\w+", " ".join(f"{p.title} {p.text}" for p in made.passages))
    assert set(re.findall(r"\w+", text)) <= set(words)
    assert bool(BROKEN[text]) == len(made.left_out)
    assert all(re.match(BROKEN[text], remark) for remark in made.left_out)


def test_front_matter_after_a_blank_line_needs_a_title() -> None:
    assert "X" == read_markdown("---\n\ntitle: X\n---\nText.").title


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("the harbour<sup>1</sup> is", "the harbour [1] is"),
        ("the harbour.<sup>12</sup> It", "the harbour. [12] It"),
        ("the harbour<sup>1,2</sup> is", "the harbour [1,2] is"),
        ("ox<sup class='reference'><a href='#n'>[1]</a></sup> is", "ox [1] is"),
        ("ox<a href='#fn1'><sup>1</sup></a>, is", "ox [1], is"),
        ("ox<sup>[<a href='#n'>a</a>]</sup> is", "ox [a] is"),
        ("ox<a class='footnote-reference' href='#n'>1</a>, is", "ox [1], is"),
        ("ox<a role='doc-noteref' href='#n'><sup>1</sup></a> is", "ox [1] is"),
        ("ox<sup><a role='doc-noteref' href='#n'>1</a></sup> is", "ox [1] is"),
        ("m<sup class='footnote-ref'>1</sup> is", "m [1] is"),
        ("A note. <a class='footnote-backref' href='#r'>↩</a>", "A note. ↩"),
        ("ox<sup><a href='#n'>citation needed</a></sup>", "ox [citation needed]"),
        ("10<sup>6</sup> and 10<sup>−3</sup>", "10⁶ and 10⁻³"),
        ("5 m<sup>2</sup>, 3 km<sup>2</sup>, x<sup>2</sup>, m<sup>-1</sup>", "5 m², 3 km², x², m⁻¹"),
        ("Ca<sup>2+</sup> and (a+b)<sup>2</sup>", "Ca²⁺ and (a+b)²"),
        ("the 1<sup>st</sup>, M<sup>lle</sup>, Brand<sup>TM</sup>", "the 1st, Mlle, BrandTM"),
        ("<a href='x'>the 1<sup>st</sup> ship</a>", "the 1st ship"),
        ("H<sub>2</sub>O", "H2O"),
    ],
)
def test_marks_of_footnotes_are_no_part_of_words(written: str, text: str) -> None:
    for made in (page(f"<p>{written}</p>"), markdown(written)):
        assert [text] == [passage.text for passage in made]
        assert all(link.text in text for passage in made for link in passage.links)


def test_footnotes_of_markdown_are_text() -> None:
    made = markdown(
        "The Kestrel[^1] and *Heron*[^note-a].\n\n[^1]: Ardmore\n[^note-a]: Built `twice`.\n\n    Indented.\n"
    )
    assert ["The Kestrel [1] and Heron [note-a].\n[1]: Ardmore\n[note-a]: Built `twice`.\nIndented."] == [
        passage.text for passage in made
    ]


def test_a_note_ends_the_section_that_refers_to_it() -> None:
    made = markdown("# A\n\nOne[^x], two[^x].\n\n# B\n\nThree.\n\n[^x]: See [^y].\n[^y]: Deep.\n[^z]: Alone.")
    assert ["One [x], two [x].\n[x]: See [y].\n[y]: Deep.", "Three.\n[z]: Alone."] == [one.text for one in made]


@pytest.mark.parametrize(
    ("written", "text", "hidden"),
    [
        ("<p hidden>no<p>yes", "yes", 1),
        ("<ul><li hidden>no<li>yes<li hidden=''>no</ul>", "yes", 2),
        ("<table><tr><td>a<td hidden>no<td>b<tr hidden><td>no</table>", "a | b", 2),
        ("<div hidden><div>no</div><p>no</div>yes", "yes", 1),
        ("<span style='color: red; DISPLAY:none'>no</span>yes", "yes", 1),
        ("<p style='visibility: hidden'>no</p>yes", "yes", 1),
        ("<p style='display: nonesuch'>yes", "yes", 0),
        ("<span aria-hidden='true'>yes</span>", "yes", 0),
        ("<details><summary>yes</summary>more</details>", "yes\nmore", 0),
        ("<div hidden='until-found'>yes</div>", "yes", 0),
        ("<dialog>no</dialog><dialog open>yes</dialog>", "yes", 1),
        ("<input hidden value='no'>yes<br hidden>more", "yesmore", 2),
        ("<body style='visibility: hidden'>yes", "yes", 0),
        ("<div hidden>never closed", "never closed", 0),
        ("<template><p>no</p></template>yes", "yes", 0),
    ],
)
def test_what_a_browser_does_not_show_is_left_out(written: str, text: str, hidden: int) -> None:
    document = read_html(written)
    assert [text] == [passage.text.replace(" more", "more") for passage in passages_of(document, "a.html")]
    assert hidden == sum(one.parts for one in document.omissions if one.kind == "hidden elements")


def test_hidden_elements_around_markdown() -> None:
    document = read_markdown("yes\n\n<div hidden>\n\nno *word*\n\n</div>\n\nUse <template> and <script> tags.\n\nmore")
    assert ["yes\nUse and tags.\nmore"] == [passage.text for passage in passages_of(document, "a.md")]
    assert [("hidden elements", 1, 2)] == [(one.kind, one.parts, one.words) for one in document.omissions]


def test_blocks_never_join_words() -> None:
    made = page("<div>a</div>b<br>c<ul><li>d<li>e</ul><dl><dt>f<dd>g</dl><td>h</td><td>i</td><hr>j<option>k<option>l")
    assert "a b c d e f g h | i j k l".split() == " ".join(passage.text for passage in made).split()
