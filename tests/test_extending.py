"""docs/extending.md, carried out: its blocks are written where it says, and both of its additions work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.places import ROOT
from tests.support.several_commands import several

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(?P<kind>python|diff|markdown)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`((?:retrieval|eval|docs)/[\w/]+\.(?:py|md))`")
FACTS = (
    ("Beads of water are formed by water vapor condensing.", "Clouds are made of water vapor.", "clouds"),
    ("Mercury in a thermometer expands when it warms.", "A thermometer measures temperature.", "temperature"),
    ("Bats sleep through the winter in caves.", "Animals that sleep through the winter hibernate.", "hibernating"),
)
QUESTIONS = ("Beads of water form what?", "Mercury that expands measures what?", "What do bats do in caves?")


def blocks() -> Iterator[tuple[str, str, str]]:
    """File, kind and text of each block, in order; the file is the last one that is named before it."""
    for block in BLOCK.finditer(PAGE):
        yield FILE.findall(PAGE[: block.start()])[-1], block["kind"], block["text"]


def changed(text: str, diff: str) -> str:
    """The text after a diff, whose old lines stand in it once."""
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] != "+")
    assert (old, 1) == (old, text.count(old))
    return text.replace(old, "".join(line[1:] for line in lines if line[0] != "-"))


def own_file(root: Path, name: str) -> Path:
    """A file that may be written: its folder is one of the overlay's own, which links to all the checkout has there."""
    here, there = root, ROOT
    for part in Path(name).parts[:-1]:
        here, there = here / part, there / part
        if here.is_symlink():
            here.unlink()
            here.mkdir()
            for child in there.iterdir():
                if child.name != "__pycache__":  # it holds what the checkout's own files compile to
                    (here / child.name).symlink_to(child)
    return here / Path(name).name


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site folder whose `hopbench` links to the checkout's code and docs, but for the files that the page writes."""
    site = tmp_path_factory.mktemp("site")
    package = site / "hopbench"
    package.mkdir()
    (package / "__init__.py").symlink_to(ROOT / "src" / "hopbench" / "__init__.py")
    for folder in ("retrieval", "eval", "flows", "docs"):
        (package / folder).symlink_to(ROOT / folder)
    for name, kind, text in blocks():
        file = own_file(package, name)
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        assert (kind == "python") == (before == ""), name
        file.unlink(missing_ok=True)  # the link
        file.write_text(changed(before, text) if kind == "diff" else before + text, encoding="utf-8")
    return site


@pytest.fixture(scope="module")
def done(site: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a run of the new strategy, and what `strategies mmr` prints."""
    folder = tmp_path_factory.mktemp("facts")
    corpus, queries = [], []
    for number, (text, (first, second, answer)) in enumerate(zip(QUESTIONS, FACTS, strict=True)):
        gold = [f"{number}a", f"{number}b"]
        corpus += [{"_id": gold[0], "text": first}, {"_id": gold[1], "text": second}]
        queries.append({"_id": f"q{number}", "text": text, "answer": answer, "gold": gold})
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = ["--dataset", ".", "--strategies", "mmr,mmr[relevance=1,pool=100],vector", "--out", "run"]
    commands = ["run", "--no-prefect", "--no-ragas", *words], ["strategies", "mmr"]
    ran, listed = several(site, folder, *commands)
    assert (0, "", 0, "") == (ran.code, ran.err, listed.code, listed.err)
    return folder / "run", listed.out


@pytest.fixture(scope="module")
def run(done: tuple[Path, str]) -> Path:
    return done[0]


def test_the_page_names_a_file_for_each_of_its_blocks() -> None:
    written = [name for name, kind, _ in blocks() if kind == "python"]
    assert ["retrieval/strategies/mmr.py"] == written
    assert {name for name, _, _ in blocks()} <= set(FILE.findall(PAGE.partition("\n## ")[0])) | set(written)


def test_the_strategy_is_listed_and_ranks(site: Path, done: tuple[Path, str]) -> None:
    run, told = done
    assert ("relevance" in told, "0..1" in told, "pool" in told) == (True, True, True), told
    labels = json.loads((run / "results.json").read_text(encoding="utf-8"))["strategies"]
    assert ["mmr", "mmr[relevance=1,pool=100]", "vector"] == list(labels)
    # With all weight on the question it is the vector ranking.
    assert labels["vector"]["metrics"] == labels["mmr[relevance=1,pool=100]"]["metrics"]
    section = (site / "hopbench" / "docs" / "strategies.md").read_text(encoding="utf-8").split("## mmr\n")[1]
    assert all(f"`{name}`" in section for name in ("relevance", "pool", "fill"))


def test_the_metric_stands_in_the_results(run: Path) -> None:
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    assert (3, 6) == (results["benchmark"]["questions"], results["benchmark"]["passages"])
    assert {1.0} == {entry["metrics"]["success@10"] for entry in results["strategies"].values()}  # six facts in all
