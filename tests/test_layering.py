"""The core stays light: what importing it brings along, and that our folder of data shadows no library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
