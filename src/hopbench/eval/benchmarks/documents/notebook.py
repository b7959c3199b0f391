"""Read Jupyter notebooks: Markdown cells as Markdown, code cells and what they print as code."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks.documents.document import Document, UnreadableError
from hopbench.eval.benchmarks.documents.markdown import read_markdown
from hopbench.eval.benchmarks.files import read_json
from hopbench.eval.types import Omission

OUTPUT_LINES = 40  # of a cell's output that is read; longer ones are logs and tables of numbers
_BACKTICKS = re.compile(r"`{3,}")
_TERMINAL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def read_notebook(path: Path) -> Document:
    """Read the cells in their order as one page of Markdown; the title is the first heading's, else the metadata's."""
    notebook = read_json(path)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if isinstance(notebook, dict) and cells is None and isinstance(sheets := notebook.get("worksheets"), list):
        cells = [cell for sheet in sheets if isinstance(sheet, dict) for cell in sheet.get("cells") or ()]  # format 3
    if not isinstance(cells, list):
        raise UnreadableError("is no Jupyter notebook (it has no list of cells): save it again in Jupyter")
    reader = _Cells(notebook.get("metadata"))
    document = read_markdown("\n\n".join(filter(None, map(reader.markdown, cells))))
    left_out = tuple(Omission(kind, count, reader.words[kind]) for kind, count in reader.parts.items())
    return replace(document, title=document.title or reader.title, omissions=(*document.omissions, *left_out))


class _Cells:
    def __init__(self, metadata: object) -> None:
        known = metadata if isinstance(metadata, dict) else {}
        named = [known.get(name) for name in ("language_info", "kernelspec")]
        stated = [one.get(key) for one, key in zip(named, ("name", "language"), strict=True) if isinstance(one, dict)]
        self._language = next((one for one in stated if isinstance(one, str) and one.isprintable()), "python")
        self.title = known["title"] if isinstance(known.get("title"), str) else ""
        self.parts, self.words = Counter[str](), Counter[str]()
        self._first = True

    def markdown(self, cell: object) -> str:
        """Write a cell as Markdown."""
        if not isinstance(cell, dict):
            return ""
        text = _text(cell.get("source", cell.get("input")))
        first, self._first = self._first, False
        match cell.get("cell_type"):
            case "markdown":
                return text
            case "code":
                shown = [_fenced(text, self._language), *(self._output(one) for one in cell.get("outputs") or ())]
                return "\n\n".join(filter(None, shown))
            case "heading":
                level = cell.get("level")
                return f"{'#' * (level if isinstance(level, int) and 0 < level < 7 else 1)} {text}"
        if first and text.startswith("---"):
            return text  # front matter
        return self._leave_out("cells without a format", text)

    def _output(self, output: Any) -> str:
        if not isinstance(output, dict):
            return ""
        data = output.get("data")
        shown = data if isinstance(data, dict) else output
        text = _TERMINAL.sub("", _text(shown.get("text/plain", shown.get("text"))))
        if output.get("output_type") in ("pyerr", "error"):
            return self._leave_out("errors that cells raised", _text(output.get("evalue")))
        drawn = any(kind.startswith(("image/", "application/")) for kind in shown)
        if drawn or not text or text.count("\n") >= OUTPUT_LINES:
            return self._leave_out("images and long output of cells", text)
        return _fenced(text, "")

    def _leave_out(self, kind: str, text: str) -> str:
        self.parts[kind] += 1
        self.words[kind] += len(text.split())
        return ""


def _text(value: object) -> str:
    if isinstance(value, list):
        return "".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _fenced(text: str, language: str) -> str:
    fence = "`" * (1 + max((len(one) for one in _BACKTICKS.findall(text)), default=2))
    return f"{fence}{language}\n{text}\n{fence}" if text.strip() else ""
