"""What sites add to Markdown: containers, tabs, components of MDX, definition lists, attributes, includes."""

from __future__ import annotations

import time

import pytest

from hopbench.eval.benchmarks.documents.document import Document, passages_of
from hopbench.eval.benchmarks.documents.html import read_html
from hopbench.eval.benchmarks.documents.markdown import PLACEHOLDERS, read_markdown, read_mdx
from hopbench.retrieval.types import Link


def text_of(document: Document) -> str:
    return "\n".join(passage.text for passage in passages_of(document, "a.md"))


def links_of(document: Document) -> list[Link]:
    return [link for passage in passages_of(document, "a.md") for link in passage.links]


def omitted(document: Document) -> dict[str, tuple[int, int]]:
    return {one.kind: (one.parts, one.words) for one in document.omissions}


CONTAINERS = {
    '!!! note "A *title*"\n    Body.\n\n        code\n\n\n    More.\n\nAfter.': (
        "A title\nBody.\n```\ncode\n```\nMore.\nAfter."
    ),
    "!!! danger\n    - a\n    - b\nAfter.": "Danger\na\nb\nAfter.",
    '!!! note ""\n    Body.': "Body.",
    '??? tip inline end "T"\n    Body.\n\n    !!! note\n        Deep.': "T\nBody.\nNote\nDeep.",
    '=== "Pip"\n\n    ```bash\n    pip\n    ```\n\n=== "Conda"\n\n    conda': "Pip\n```bash\npip\n```\nConda\nconda",
    "Before.\n/// tip | Hinweis `a`\n    open: True\n\nInside.\n///\nAfter.": "Before.\nHinweis `a`\nInside.\nAfter.",
    "//// tab | One\n\n/// note\nx\n///\n\n////": "One\nNote\nx",
    ":::note[Some *title*]\nBody.\n:::\nAfter.": "Some title\nBody.\nAfter.",
    ":::tip Other title\nBody.\n:::": "Other title\nBody.",
    '::: {.callout-note title="Quarto"}\nBody.\n:::': "Quarto\nBody.",
    "::::{grid} 2\n:::{card} First\n:link: x\nBody.\n:::\n::::": "First\nBody.",
    ":::warning\nBody.\n:::": "Warning\nBody.",
    ":::columns\nBody.\n:::": "Body.",
    "> [!NOTE]\n> Body.": "Note\nBody.",
    "> [!tip]- Folded\n> Body.": "Folded\nBody.",
    "Term\n: One\n: Two `x`": "Term\nOne\nTwo `x`",
    "[a](b){ target=_blank } ![c](d){ width=3 } **e**{: .f } `g`{ .h }": "a c e `g`",
    "Text.\n{: .class #id }\n\n{ .annotate }": "Text.",
    # what is none
    "::: package.module\n    options:": "::: package.module options:",
    "///\n\n:::\n\na /// b\n\n=== x": "///\n:::\na /// b\n=== x",
    "Great!!! note\n\n!!!": "Great!!! note\n!!!",
    "[!NOTE] here, {a: 1} and {x}": "[!NOTE] here, {a: 1} and {x}",
}


@pytest.mark.parametrize("written", CONTAINERS)
def test_containers_are_unwrapped(written: str) -> None:
    assert CONTAINERS[written] == text_of(read_markdown(f"Start.\n\n{written}")).removeprefix("Start.\n")


MDX = {
    "<Note>\nText **bold** [l](x.md) {/* no */}.\n</Note>": "Text bold l .",
    '<Tabs>\n  <Tab title="One">\n    Text.\n\n    - a\n    - b\n\n    ```sh\n    ls\n      -l\n    ```\n  </Tab>\n'
    '  <Tab title="Two">in a line</Tab>\n</Tabs>': "One\nText.\na\nb\n```sh\nls\n  -l\n```\nTwo\nin a line",
    '<Card\n  title="A card"\n  href="/a"\n  style={{ a: { b: ">" } }}\n>\n  Body.\n</Card>': "A card\nBody.",
    '<Steps>\n<Step title={"First"}>\nDo.\n</Step>\n</Steps>': "First\nDo.",
    '<Accordion title="Q &amp; A" description="why">\nBody.\n</Accordion>': "Q & A\nwhy\nBody.",
    '<Frame caption="Below"><img src="x" alt="A map" /></Frame>': "Below\nA map",
    "1. one\n\n    <CodeGroup>\n    ```bash pip\n    x\n    ```\n    </CodeGroup>\n2. two": (
        "one\n```bash pip\nx\n```\ntwo"
    ),
    '<TabItem value="v" label="Label">\n\nx\n\n</TabItem>': "Label\nx",
    '<Tree><Tree.Folder name="src"><Tree.File name="a.py" /></Tree.Folder></Tree>': "src\na.py",
    'See <Link to="/q">the page</Link> and{" "}<b>this</b> if a < b.': "See the page and this if a < b.",
    '<Icon name="x" /> Text <Badge text="new" /> more.': "Text new more.",
    "    Indented is no code.": "Indented is no code.",
    "```jsx\nimport a from 'b'\n{/* kept */}\n```": "```jsx\nimport a from 'b'\n{/* kept */}\n```",
}


@pytest.mark.parametrize("written", MDX)
def test_components_of_mdx_are_unwrapped(written: str) -> None:
    assert f"Start.\n{MDX[written]}" == text_of(read_mdx(f"Start.\n\n{written}"))


def test_links_and_headings_of_components() -> None:
    document = read_mdx(
        '# T\n\n<Card title="A" href="/a">x</Card>\n<Card href="/b">\n**Whole**\n</Card>\n[in](c)\n\n'
        '## Flows <Badge text="beta" />\n\ny'
    )
    assert [Link("A", "/a"), Link("Whole", "/b"), Link("in", "c")] == links_of(document)
    assert [("T",), ("T", "Flows beta")] == [section.headings for section in document.sections]


MDX_PAGE = """---
title: T
description: What it is for.
---
import X from 'y'
import { a,
  b } from "z"

export const c = {
  d: 1,

  e: 2
}

{/* over

lines */}

# T

Text {c.d}. <!-- html --> <FinalState />
"""


def test_what_mdx_does_not_show_is_counted() -> None:
    document = read_mdx(MDX_PAGE)
    assert "What it is for.\nText {c.d}." == text_of(document)
    assert {
        "imports and exports": (2, 21),
        "comments": (2, 3),
        "components without text": (1, 1),
        "front matter": (1, 3),
        PLACEHOLDERS: (1, 1),
    } == omitted(document)
    assert text_of(document) == text_of(read_markdown(MDX_PAGE))  # it begins as MDX does


def test_the_description_of_front_matter_changes_no_id() -> None:
    for body in ("# T\n\nText.\n\n## B\n\nMore.", "Text.\n\n## B\n\nMore.", "## B\n\nMore."):
        plain, described = (
            [one.id for one in passages_of(read_markdown(f"---\ntitle: T{line}\n---\n{body}"), "a.md")]
            for line in ("", "\ndescription: D")
        )
        assert described in (plain, ["a.md", *plain])


def test_includes_and_variables_stay_and_are_counted() -> None:
    document = read_markdown('{* ../x.py hl[1] *} {{ v }} `{{ code }}`\n\n```\n--8<-- "a.py"\n```\n\n::: a.b')
    assert '{* ../x.py hl[1] *} {{ v }} `{{ code }}`\n```\n--8<-- "a.py"\n```\n::: a.b' == text_of(document)
    assert {PLACEHOLDERS: (4, 11)} == omitted(document)
    assert document.omissions[-1].in_text


TABLES = {
    "<table><thead><tr><th><p>Flag</p><th><p>Meaning</p></thead><tr><td><p><code>-a</code></p><td><p>One.</p><p>Two</p>"
    "<tr><td>-b<td></table>": "Flag: `-a`; Meaning: One. Two\nFlag: -b",
    "<table><tr><th>A<th>B<tr><td rowspan=2>x<td>1<tr><td>2</table>": "A: x; B: 1\nB: 2",
    "<table><tr><th>A<th>B<th>C<tr><td colspan=2>x<td>z.<tr><td>p.<td>q</table>": "A: x; C: z.\nA: p. B: q",
    "<table><tr><th>A<th>B<tr><td>x<td></table>": "A | B\nA: x",
    "<table><tr><td>1<td>2<tr><td>3<td>4</table>": "1 | 2\n3 | 4",
    "<table><tr><th colspan=2>Kestrel<tr><th>Built<td>1900</table>": "Kestrel\nBuilt | 1900",
    "<table><tr><th>A<th><a href=x>B</a><tr><td>1<td>2</table>": "A | B\nA: 1; B: 2",
    "<table><tr><td><table><tr><th>A<tr><td>x</table>outer<td>b</table>": "A: x\nouter | b",
    f"<table><tr><th>A<th>{'long ' * 20}<tr><td>x<td>y</table>": f"A | {('long ' * 20).strip()}\nx | y",
    "<table><tr><th><th>A<th>B<th>C<tr><td>x<td>1<td><td>3</table>": "| A | B | C\nx | 1 | | 3",
}


@pytest.mark.parametrize("written", TABLES)
def test_cells_have_the_headings_of_their_columns(written: str) -> None:
    assert f"{TABLES[written]}\nafter" == text_of(read_html(f"{written}<p>after"))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("Use `a`, (`b`) and `c d`.", "Use `a`, (`b`) and `c d`."),
        ("`flow`s, re`run`, `a`-b", "flows, rerun, `a`-b"),
        ("`` a`b `` and ` `", "a`b and"),
        ("<code>x</code>, <tt>y</tt>s", "`x`, ys"),
        ("[`x`](y)", "`x`"),
    ],
)
def test_code_in_a_line_has_backticks_where_words_stay_as_they_are(written: str, text: str) -> None:
    assert text == text_of(read_markdown(written))


@pytest.mark.parametrize(
    "piece",
    [
        *("{/* ", "{/* a */} b\n", "<A b={", "<Tab title='", "<Tab>\n  x\n\n", "{a ", "export const a = {\n\n"),
        *(":::note\n", "/// tip\n", "!!! note\n    x\n\n", '=== "a"\n\n    ', "[^a]: x\n\n", "x[^a]\n\n", "a\n: b\n\n"),
        *("| a | b |\n|---|---|\n| c | d |\n\n", "</Tab>\n", "    - a\n"),
    ],
)
def test_no_markup_takes_long(piece: str) -> None:
    begun = time.process_time()
    assert read_mdx(piece * (60_000 // len(piece))) is not None
    assert time.process_time() - begun < 3
