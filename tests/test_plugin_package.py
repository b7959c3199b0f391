"""docs/plugins.md, carried out: its package is installed as it stands, and one run uses a plug-in of each kind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.flows.cli.conftest import Done
from tests.support import plugins
from tests.support.places import ROOT
from tests.support.several_commands import several

PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(?:python|yaml|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`((?:hopbench_mine/[\w/]+|pyproject)\.(?:py|yaml|toml))`")
HELP = [
    {"page": "Passwords", "text": "Open Settings in the Account Menu to change it.", "asked": ["Passwords: how?"]},
    {"page": "Billing", "text": "Invoices are sent by Stripe each month.", "asked": ["Who sends invoices?"]},
    {"page": "Account Menu", "text": "The menu stands in the corner.", "asked": ["Where is the menu?"]},
]


def package() -> dict[str, str]:
    """File → content, the file being the last one that the page names before a block."""
    return {FILE.findall(PAGE[: block.start()])[-1]: block[1] for block in BLOCK.finditer(PAGE)}


def entry_points(files: dict[str, str]) -> str:
    """entry_points.txt, as a build writes it from pyproject.toml."""
    groups = tomllib.loads(files["pyproject.toml"])["project"]["entry-points"]
    lines = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups.items())
    return "".join(lines)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("plugins") / "site"
    files = package()
    plugins.install(site, {name: text for name, text in files.items() if "/" in name}, entry=entry_points(files))
    return site


@pytest.fixture(scope="module")
def done(site: Path) -> dict[str, Done]:
    """What the page's run and the commands after it did."""
    folder = site.parent
    (folder / "faq.jsonl").write_text("".join(json.dumps(line) + "\n" for line in HELP), encoding="utf-8")
    command = re.search(r"hopbench run (.*?--out out)", PAGE, re.DOTALL)
    assert command is not None
    lines = {
        "run": ["run", "--no-prefect", "--no-ragas", *command[1].replace("\\\n", " ").replace("'", "").split()],
        "compare": ["compare", "out", "--metric", "success@3"],
        "explain": ["explain", "Who sends invoices?", "--run", "out", "--strategy", "bm25+overlap"],
        "export": ["export", "bm25+overlap[depth=2]", "--dataset", "faq.jsonl", "--out", "exported"],
        **{name: [name] for name in ("strategies", "metrics", "benchmarks", "doctor")},
    }
    return dict(zip(lines, several(site, folder, *lines.values()), strict=True))


@pytest.fixture(scope="module")
def run(site: Path, done: dict[str, Done]) -> Path:
    assert 0 == done["run"].code, done["run"].err
    return site.parent / "out"


def entry(run: Path, label: str) -> dict[str, Any]:
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = results["strategies"][label]
    return found


def test_the_page_holds_a_file_for_each_entry_point() -> None:
    files = package()
    groups = tomllib.loads(files["pyproject.toml"])["project"]["entry-points"]
    modules = {point.partition(":")[0] for points in groups.values() for point in points.values()}
    assert 6 == len(groups)
    assert {f"{module.replace('.', '/')}.py" for module in modules} <= set(files)


def test_a_run_uses_a_plugin_of_each_kind(run: Path) -> None:
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    assert ("faq", 3, 3) == tuple(results["benchmark"][name] for name in ("name", "questions", "passages"))
    assert ["titles", "titles:tuned", "bm25+overlap"] == list(results["strategies"])
    tuned, reranked = entry(run, "titles:tuned"), entry(run, "bm25+overlap")
    assert ("tuned", 0.5) == (tuned["kind"], tuned["params"]["bonus"])
    assert {"success@1", "success@3", "success@5", "first_length"} <= set(entry(run, "titles")["metrics"])
    assert 1.0 == entry(run, "titles")["metrics"]["success@3"]  # three passages in all
    assert {"value": 1.0, "passed": True} == results["targets"]["success@5>=0.5"]["titles"]
    assert results["embedder"].startswith("trigrams:128:trigrams-128@1@hopbench-mine 1.0+")
    assert 3 < results["graph"]["nodes"]["Entity"]  # the titles, Settings, Stripe, …
    assert ["overlap", 50, 4] == [
        reranked["params"][name] for name in ("reranker", "reranker.depth", "reranker.letters")
    ]
    assert ["hopbench-mine"] == list(reranked["plugins"])


def test_the_report_shows_its_metrics(run: Path) -> None:
    assert "success@3" in (run / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("command", "shown"), [("compare", "success@3"), ("explain", "Billing")])
def test_compare_and_explain_take_its_names(done: dict[str, Done], command: str, shown: str) -> None:
    assert (0, True) == (done[command].code, shown in done[command].out), done[command].err


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("strategies", ["titles", "Reranker overlap"]),
        ("metrics", ["success@5", "success@1..100"]),
        ("benchmarks", ["format faq"]),
        ("doctor", ["titles", "overlap", "mine", "faq", "trigrams", "capitals"]),
    ],
)
def test_the_lists_name_it_with_its_package(done: dict[str, Done], command: str, shown: list[str]) -> None:
    assert [] == [name for name in [*shown, "hopbench-mine 1.0"] if name not in done[command].out]


def test_a_shell_completes_its_names_without_importing_it(site: Path) -> None:
    program = (
        "import sys; from hopbench.flows.settings.values import complete as c\n"
        "print(c('labels', 'tit'), c('labels', 'bm25,hoprank+'), c('embedders', 'tri'))\n"
        "print(c('extractors', 'cap'), c('metrics', 'mi'))\n"
        "print('hopbench_mine' in sys.modules, 'numpy' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(site)}
    told = subprocess.check_output([sys.executable, "-c", program], env=environment, text=True).splitlines()
    assert "['titles', 'titles:tuned'] ['bm25,hoprank+overlap'] ['trigrams']" == told[0]
    assert "['capitals'] ['mine@']" == told[1]
    assert "False False" == told[2]


def test_an_exported_retriever_wants_the_code_it_was_exported_with(site: Path, done: dict[str, Done]) -> None:
    assert 0 == done["export"].code, done["export"].err
    program = "import hopbench; print(hopbench.load('exported').label)"
    command = [sys.executable, "-c", program]
    told: dict[bool, str] = {}
    for changed in (False, True):
        copy = site.parent / f"changed-{changed}"
        shutil.copytree(site, copy)
        with (copy / "hopbench_mine" / "reranker.py").open("a", encoding="utf-8") as file:
            file.write("# touched\n" * changed)
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        loaded = subprocess.run(command, cwd=site.parent, env=environment, capture_output=True, text=True, check=False)
        told[changed] = loaded.stdout + loaded.stderr
    assert "bm25+overlap[depth=2]" == told[False].strip()
    assert "was exported with the plug-ins {'hopbench-mine': '1.0+" in told[True]
