"""What is named in the files that nobody imports is there: folders move, and these are found out last."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec

import pytest
from tests.support.places import ROOT

FILES = ("Makefile", ".ci/run", "CONTRIBUTING.md", "README.md", "pyproject.toml")
PAGES = tuple(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").glob("*.md")))
PLACE = re.compile(r"(?<![\w/.-])(?:retrieval|eval|flows|tests|datasets|requirements|docs|src)/[\w./-]*\w")
MODULE = re.compile(r"hopbench\.(?:retrieval|eval|flows)[\w.]*\w")
# What a reader is to fill in, or to write, and what a package holds that is not a checkout.
OTHERS = re.compile(r"NAME|-N\.yaml|mmr|qasc|test_x\.py|eval/benchmarks/data/")


@pytest.mark.parametrize("file", [*FILES, *PAGES])
def test_every_path_and_module_that_a_file_names_is_there(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    places = [place for place in PLACE.findall(text) if not OTHERS.search(place)]
    modules = [module for module in MODULE.findall(text) if not OTHERS.search(module)]
    assert [] == [place for place in places if not (ROOT / place).exists()]
    assert [] == [module for module in modules if not is_there(module)]


def is_there(module: str) -> bool:
    """Whether it is a module, or a name in one."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # what stands before the last dot is no package: the name is one of a module's
        outer, _, name = module.rpartition(".")
        return hasattr(import_module(outer), name)
