"""Which benchmark a name means, and which role it gets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.places import ROOT

from hopbench.eval.benchmarks import benchmark_names, load_benchmark, shipped_benchmarks
from hopbench.eval.benchmarks import loader as registry
from hopbench.eval.benchmarks.beir import role_of
from hopbench.retrieval.support.errors import InputError, UnknownNameError


def write_folder(folder: Path, *, passages: int = 3, card: str = "") -> Path:
    folder.mkdir(parents=True)
    rows = (json.dumps({"_id": f"p{n}", "text": "x"}) for n in range(passages))
    (folder / "corpus.jsonl").write_text("\n".join(rows))
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "Who?"}\n{"_id": "q2", "text": "What?"}\n\n')
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("q1\tp0\t1\nq2\tp1\t1\n")
    if card:
        (folder / "README.md").write_text(card)
    return folder


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package whose data folder holds two benchmarks, and a file that is none."""
    data = tmp_path / "package" / "data"
    write_folder(data / "hopworld", card="---\npretty_name: HopWorld\nhopbench: {role: report}\n---\n# HopWorld\n")
    write_folder(data / "hopworld-tune", passages=2)
    (data / "README.md").write_text("no benchmark")
    monkeypatch.setattr(registry, "_DATA", data)
    return data


@pytest.mark.usefixtures("shipped")
def test_the_registry_lists_title_role_and_counts() -> None:
    assert benchmark_names() == ["hopworld", "hopworld-tune"]
    assert [
        (known.name, known.title, known.role, known.passages, known.questions) for known in shipped_benchmarks()
    ] == [("hopworld", "HopWorld", "report", 3, 2), ("hopworld-tune", "hopworld-tune", "tune", 2, 2)]


@pytest.mark.usefixtures("shipped")
def test_a_shipped_name_wins_over_a_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "here" / "hopworld", passages=9)
    monkeypatch.chdir(tmp_path / "here")

    assert (len(load_benchmark("hopworld").passages), len(load_benchmark("./hopworld").passages)) == (3, 9)
    assert len(load_benchmark(Path("hopworld")).passages) == 9  # a Path is always a path


@pytest.mark.usefixtures("shipped")
def test_unknown_names_get_the_nearest_one() -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown benchmark 'hopwrld'. Did you mean 'hopworld'\? Known: hopworld, hop"
    ):
        load_benchmark("hopwrld")
    with pytest.raises(UnknownNameError, match="unknown benchmark ''"):
        load_benchmark("")
    with pytest.raises(UnknownNameError, match="unknown benchmark 'xxx"):
        load_benchmark("x" * 5000)


@pytest.mark.parametrize(
    "name",
    [
        "no/such/folder",
        "./missing",
        "~nobody-of-that-name/x",
        "datasets/missing",
        "dev.json",
        "owner/dev.json",
        "missing/",
    ],
)
def test_missing_paths_are_not_looked_for_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "datasets").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hopbench.eval.benchmarks.loader.load_hub", lambda *_: pytest.fail("asked the Hub"))
    with pytest.raises(InputError, match=f"^{name}: no such file or folder"):
        load_benchmark(name)


@pytest.mark.parametrize(
    ("name", "has_gold", "role"),
    [
        ("hotpotqa-dev500", True, "report"),
        ("2wiki-train500", True, "tune"),
        ("2wikimultihop_train.sample", True, "tune"),
        ("HopWorld-Tune", True, "tune"),
        ("fortune-constraints", True, "report"),  # the words must stand alone
        ("my-corpus", False, "user"),
        ("train-tickets", False, "user"),  # without gold there is nothing to tune on
    ],
)
def test_roles_follow_from_gold_and_name(name: str, has_gold: bool, role: str) -> None:
    assert role == role_of(name, has_gold=has_gold)


def test_the_card_overrules_the_name(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "web-train", card="---\r\nhopbench:\r\n  role: report\r\n---\r\n")
    assert load_benchmark(folder).role == "report"


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        (
            "---\nhopbench: {role: tuning}\n---\n",
            "README.md: field 'hopbench.role' is 'tuning', must be one of tune, report, user",
        ),
        ("---\na: 1\nhopbench: {role: tune\n---\n", "README.md, line 3: the front matter is not YAML ("),
        ("---\n- tune\n---\n", "README.md, line 2: the front matter must hold named fields"),
    ],
)
def test_bad_cards_are_refused(tmp_path: Path, card: str, expected: str) -> None:
    folder = write_folder(tmp_path / "any", card=card)
    with pytest.raises(InputError) as caught:
        load_benchmark(folder)

    assert expected == str(caught.value).replace(f"{folder}/", "")[: len(expected)]


def test_readmes_without_front_matter_state_no_role(tmp_path: Path) -> None:
    for number, text in enumerate(("# Title\n", "---\nnever closed\n", "---\n---\n", "\n")):
        assert load_benchmark(write_folder(tmp_path / f"any{number}", card=text)).role == "report"


def test_loading_a_folder_imports_no_heavy_library(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "any")
    code = (
        "import sys; from hopbench.eval.benchmarks import load_benchmark; load_benchmark(sys.argv[1]); "
        "print(sorted({'datasets', 'pandas', 'pyarrow', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, folder], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
