"""Every snippet of docs/api.md runs, one after the other as in a notebook."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.flows.cli.conftest import SERVERS
from tests.support.places import ROOT

import hopbench

PAGE = ROOT / "docs" / "api.md"


def cell(code: str, names: dict[str, Any]) -> Any:
    """Run a snippet; the value of its last line, as a notebook shows it."""
    tree = ast.parse(code)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    exec(compile(tree, str(PAGE), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(PAGE), "eval"), names)


def test_the_snippets_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home_with_graph: Callable[[Path, str], Path]
) -> None:
    for name in SERVERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOPBENCH_HOME", str(home_with_graph(tmp_path / "home", "hopworld")))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown = [cell(code, names) for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)]
    found, board, made, compared, gold, trials, taken = shown
    assert 3 == len(found)
    assert {"bm25", "hybrid", "hoprank"} == set(board.index)
    assert made.startswith('{"_id": "s00000", "text": "')
    assert [40] == compared["n"].tolist()
    assert ["passage", "title", "fate", "rank", "why"] == list(gold.columns)
    assert 2 == len(trials)
    assert taken == names["corpus"].retrieve("Who founded Hahom Academy?", names["sweep"].best["strategies"], 3).ids


def test_every_public_name_stands_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [] == [name for name in hopbench.__all__ if f"`{name}" not in page and name != "RetrievedPassage"]
