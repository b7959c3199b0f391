"""`python -m tools.counts`, on a checkout made by hand and on a short command."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.places import ROOT
from tools.counts import counts, executed, importers, main, modules_below, with_one_importer

FILES = {
    "src/hopbench/__init__.py": "",
    "src/hopbench/a/__init__.py": "from hopbench.a.shared import f\n",
    "src/hopbench/a/shared.py": "def f():\n    pass\n",
    "src/hopbench/a/own.py": "class A:\n    class B:\n        pass\n",
    "src/hopbench/a/user.py": "from hopbench.a import own, f\n",
    "src/hopbench/b.py": "def long():\n" + "    pass\n" * 50 + "from hopbench.a import f\n" + "\n" * 400,
    "tools/t.py": "import hopbench.b\n",
    "README.md": "three words here\n",
    "docs/page.md": "# A title\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


def test_code_and_docs_are_counted(root: Path) -> None:
    assert {
        "modules of the product": 5,  # the empty __init__.py is none
        "modules of the tools": 1,
        "lines of the product": 1 + 2 + 3 + 1 + 452,
        "lines of the tools": 1,
        "classes": 2,
        "functions over 50 lines": 1,
        "modules over 400 lines": 1,
        "modules with one importer, in their own folder": 1,
        "words of docs": 3 + 2,
    } == counts(root)


def test_a_name_that_a_package_exports_counts_for_its_module(root: Path) -> None:
    modules = modules_below(root / "src/hopbench", root / "src")

    assert {"hopbench.a.user", "hopbench.b"} == importers(modules)["hopbench.a.shared"]
    assert ["hopbench.a.own"] == with_one_importer(modules)


def test_a_command_is_profiled() -> None:
    found = executed(ROOT, ["strategies"])

    assert (str(ROOT / "src/hopbench/flows/cli/main.py"), "main") in found
    assert all(file.startswith(str(ROOT / "src/hopbench")) and "<module>" not in name for file, name in found)


def test_the_counts_are_printed_one_a_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--root", str(root), "--no-run"])

    assert ["words", "of", "docs", "5"] == capsys.readouterr().out.splitlines()[-1].split()
