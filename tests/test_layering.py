"""The layers: what importing the core loads, no circles, few folders, and one name on the import path."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import grimp
import pytest
from tests.support.places import ROOT

OUTSIDE = ("prefect", "mlflow", "ragas", "hopbench.eval", "hopbench.flows")


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_no_module_of_the_core_brings_scheduler_tracker_judge_or_the_layers_above() -> None:
    code = f"""
import importlib, pkgutil, sys
import hopbench.retrieval
for module in pkgutil.walk_packages(hopbench.retrieval.__path__, "hopbench.retrieval."):
    importlib.import_module(module.name)
print(sorted(name for name in {OUTSIDE!r} if name in sys.modules))
print(len([name for name in sys.modules if name.startswith("hopbench.retrieval.")]) > 20)
"""
    assert "[]\nTrue" == run(code)


def test_the_folder_of_data_is_no_package_and_shadows_no_library() -> None:
    assert not (ROOT / "datasets" / "__init__.py").exists()

    found = Path(run("import importlib.util; print(importlib.util.find_spec('datasets').origin)"))

    assert "site-packages" in found.parts
    assert ROOT / "datasets" not in found.parents


def test_the_data_folder_holds_no_code() -> None:
    assert [] == list((ROOT / "datasets").rglob("*.py"))


def test_no_package_has_a_circle_between_its_modules_or_folders() -> None:
    graph = grimp.build_graph("hopbench", cache_dir=None)
    packages = [module for module in sorted(graph.modules) if graph.find_children(module)]

    assert len(packages) > 40  # all of them: hopbench, its three layers and their folders
    assert {} == {name: circle for name in packages if (circle := graph.nominate_cycle_breakers(name))}


def test_a_circle_would_be_found() -> None:
    graph = grimp.build_graph("hopbench", cache_dir=None)
    graph.add_import(importer="hopbench.retrieval.types", imported="hopbench.retrieval.strategies.base")

    assert graph.nominate_cycle_breakers("hopbench.retrieval")


@pytest.mark.parametrize(("layer", "most"), [("flows", 12), ("eval", 15), ("retrieval", 15)])
def test_a_layer_has_few_folders(layer: str, most: int) -> None:
    folders = sorted(init.parent.name for init in (ROOT / layer).glob("*/__init__.py"))

    assert len(folders) <= most, f"{layer} has {len(folders)} folders, at most {most}: {', '.join(folders)}"


def test_nothing_but_hopbench_is_put_on_the_import_path() -> None:
    assert ["hopbench"] == [folder.name for folder in (ROOT / "src").iterdir() if not folder.name.startswith(".")]

    installed = {file.parts[0] for file in files("hopbench") or () if file.parts[0] != ".."}
    added = {name for name in installed if not name.endswith((".dist-info", ".pth"))}

    assert added <= {"hopbench"}  # an editable install only points to the checkout, and copies no data sets
