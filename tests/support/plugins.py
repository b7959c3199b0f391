"""Small real plug-ins: packages with an entry point, installed into a folder of their own without a network."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from hopbench.eval.benchmarks.formats import loaders
from hopbench.eval.metrics import catalogue
from hopbench.retrieval.embedding.factory import embedders
from hopbench.retrieval.graph.construction.extraction import extractors
from hopbench.retrieval.strategies.registry import registry
from hopbench.retrieval.strategies.reranker import rerankers

STRATEGY = '''
from dataclasses import dataclass
from typing import ClassVar

from hopbench_mine.rule import REVERSED
from hopbench.retrieval.strategies.base import param
from hopbench.retrieval.strategies.baselines import BM25


@dataclass(frozen=True, kw_only=True)
class Mine(BM25):
    """BM25, the right way round or not."""

    name: ClassVar[str] = "mine"
    summary: ClassVar[str] = "BM25 [or its reverse]"
    depth: int = param(3, "how many hits are turned round", 1, 10)

    def search(self, batch, counters):
        rankings = super().search(batch, counters)
        for ranking in rankings:
            ranking.hits = ranking.hits[: self.depth]
            if REVERSED:
                ranking.hits = ranking.hits[::-1]
        return rankings
'''
FILES: Mapping[str, str] = {
    "hopbench_mine/__init__.py": "",
    "hopbench_mine/strategy.py": STRATEGY,
    "hopbench_mine/rule.py": "REVERSED = False\n",
}
ENTRY = "[hopbench.strategies]\nmine = hopbench_mine.strategy:Mine\n"


def wheel(folder: Path, files: Mapping[str, str] = FILES, version: str = "1.0", entry: str = ENTRY) -> Path:
    """A wheel of `hopbench-mine` with these files."""
    info = f"hopbench_mine-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: hopbench-mine\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": entry,
    }
    content[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*content, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"hopbench_mine-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return path


def install(site: Path, files: Mapping[str, str] = FILES, version: str = "1.0", entry: str = ENTRY) -> None:
    """Install it as a user does, in place of what was there, and forget what was imported of it."""
    package = wheel(site.parent / "wheels", files, version, entry)
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--offline", "--no-cache"]
    chosen = ["--no-deps", "--reinstall", "--python", sys.executable, "--target", str(site), str(package)]
    subprocess.run([*uv, *chosen], check=True)
    forget()


def install_editable(site: Path, source: Path, files: Mapping[str, str] = FILES, entry: str = ENTRY) -> None:
    """What `pip install -e` leaves: a `.pth` file that names the source folder, and a record that lists no more."""
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    info = site / "hopbench_mine-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "_hopbench_mine.pth").write_text(f"{source}\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hopbench-mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry)
    (info / "direct_url.json").write_text(json.dumps({"dir_info": {"editable": True}, "url": source.as_uri()}))
    names = ("METADATA", "RECORD", "entry_points.txt", "direct_url.json")
    listed = ["_hopbench_mine.pth", *(f"{info.name}/{name}" for name in names)]
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in listed))
    forget()


def forget() -> None:
    """Make the next look at any registry import plug-ins anew."""
    for name in [name for name in sys.modules if name.partition(".")[0].startswith("hopbench_mine")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    for known in (registry, rerankers, catalogue, loaders, embedders, extractors):
        known.cache_clear()


def use(site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Import from a site folder, and from the folders that its `.pth` files name."""
    site.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # equal seconds and sizes would hide a change
    monkeypatch.syspath_prepend(site)
    for file in site.glob("*.pth"):
        monkeypatch.syspath_prepend(file.read_text().strip())
    return site
