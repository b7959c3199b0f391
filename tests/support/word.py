"""Word documents for tests: the parts that Word itself writes, as far as readers look at them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

_TYPES = """<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="xml" ContentType="application/xml"/></Types>"""
_RELATIONS = """<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="h1" TargetMode="External" Target="https://tidewatch.example"
 Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink"/></Relationships>"""
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_STYLES = f"""<?xml version="1.0"?><w:styles {_W}>
<w:style w:type="paragraph" w:styleId="Title"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="Code"><w:name w:val="Source Code"/></w:style></w:styles>"""


def words(text: str, style: str = "", *, bold: bool = False) -> str:
    """A paragraph in a style."""
    styled = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return (
        f'<w:p>{styled}<w:r>{"<w:rPr><w:b/></w:rPr>" if bold else ""}<w:t xml:space="preserve">{text}</w:t></w:r></w:p>'
    )


def table(*rows: tuple[str, ...]) -> str:
    """A table whose first row is bold."""
    cells = ("".join(f"<w:tc>{words(cell, bold=row is rows[0])}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def write_docx(path: Path, body: str, others: Mapping[str, str] = {}) -> Path:
    """Write a document of the paragraphs in `body`; `others` are further parts, or the same in another form."""
    parts = {
        "[Content_Types].xml": _TYPES,
        "word/document.xml": f'<?xml version="1.0"?><w:document {_W} {_R}><w:body>{body}</w:body></w:document>',
        "word/styles.xml": _STYLES,
        "word/_rels/document.xml.rels": _RELATIONS,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**parts, **others}.items():
            archive.writestr(name, content.replace("W_NS", _W))
    return path


GUIDE = "".join(
    (
        words("Tide Gauge Guide", "Title"),
        words("Tidewatch reads gauges."),
        words("Quick Start", "Heading1"),
        words("$ pip install tidewatch", "Code"),
        words("$ tidewatch --version", "Code"),
        table(("Name", "Default"), ("interval", "60"), ("unit", "m")),
        '<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:bookmarkStart w:id="1" w:name="_Ref9"/>'
        '<w:r><w:t>Calibration &amp; care</w:t></w:r><w:bookmarkEnd w:id="1"/></w:p>',
        '<w:p><w:r><w:t xml:space="preserve">See </w:t></w:r><w:hyperlink w:anchor="_Ref9"><w:r><w:t>care</w:t></w:r>'
        '</w:hyperlink><w:r><w:t xml:space="preserve"> and </w:t></w:r>'
        '<w:hyperlink r:id="h1"><w:r><w:t>home</w:t></w:r>'
        '</w:hyperlink><w:r><w:t>.</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r>'
        "<w:del><w:r><w:delText>old words</w:delText></w:r></w:del></w:p>",
    )
)
NOTES = {
    "word/footnotes.xml": f'<?xml version="1.0"?><w:footnotes {_W}><w:footnote w:id="2">{words("A note on tides.")}'
    "</w:footnote></w:footnotes>",
    "word/header1.xml": f'<?xml version="1.0"?><w:hdr {_W}>{words("Header words")}</w:hdr>',
    "word/comments.xml": f'<?xml version="1.0"?><w:comments {_W}><w:comment w:id="1">{words("Is this so?")}</w:comment>'
    "</w:comments>",
}
