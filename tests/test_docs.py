"""What is registered is documented."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.places import ROOT

from hopbench.eval.metrics import all_metrics
from hopbench.retrieval.strategies.hoprank.candidates import BASE_FEATURES
from hopbench.retrieval.strategies.hoprank.edges import EDGE_FEATURES, TRIPLE_FEATURES
from hopbench.retrieval.strategies.hoprank.tree_features import GROUPS
from hopbench.retrieval.strategies.registry import registry


@pytest.mark.parametrize("name", all_metrics())
def test_every_metric_stands_in_the_docs(name: str) -> None:
    assert f"| `{name}` | {all_metrics()[name].meaning} |" in (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", registry().names())
def test_every_strategy_and_parameter_stands_in_the_docs(name: str) -> None:
    text = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    assert f"## {name}" in text
    section = text.split(f"## {name}\n")[1].split("\n## ")[0]
    assert [] == [field for field in registry().get(name).parameters() if f"`{field}`" not in section]


def test_every_feature_of_hoprank_has_its_formula_in_its_page() -> None:
    page = (ROOT / "docs" / "hoprank.md").read_text(encoding="utf-8")
    of_trees = [name for group in GROUPS.values() for name in group]

    described = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", page, re.MULTILINE)

    assert [*BASE_FEATURES, *EDGE_FEATURES, *TRIPLE_FEATURES, *of_trees] == described


def shown_flags() -> Iterator[tuple[str, list[str], str]]:
    """File, words and flag for each flag of a `hopbench` line in the documentation."""
    for file in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for line in re.findall(r"hopbench ([a-z][^`#&>]*)", file.read_text(encoding="utf-8")):
            first = line.splitlines()[0]
            for flag in re.findall(r"--[a-z][a-z0-9-]+", first):
                yield file.name, first.split(), flag


def test_every_flag_of_a_command_in_the_docs_exists() -> None:
    from typer.main import get_command

    from hopbench.flows.cli.main import app

    whole: Any = get_command(app)  # once: to build all commands takes a tenth of a second

    def known(words: list[str]) -> set[str]:
        command = whole
        for word in words:
            if word not in getattr(command, "commands", {}):
                break
            command = command.commands[word]
        options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        return options | (known(["nightly"]) if words[0] == "serve" else set())

    shown = list(shown_flags())
    assert len(shown) > 50  # the line of cron and the unit of systemd among them
    assert ("nightly.md", "--no-prefect") in {(file, flag) for file, _, flag in shown}
    assert [] == [(file, words[0], flag) for file, words, flag in shown if flag not in known(words)]


def test_the_site_builds_and_no_link_or_anchor_is_broken(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    assert 0 == done.returncode, done.stderr
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"} <= {
        page.name for page in (tmp_path / "site").iterdir()
    }
