"""`hopbench synthesize` says when its questions would measure nothing, and no run on such a set names a best label."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.flows.cli.conftest import call

from hopbench.eval.benchmarks.beir import read_card
from hopbench.eval.synthesize.write import UNFIT, statements_of

REMEDY = "write 30 with `hopbench annotate DATASET`, or use --llm MODEL[@URL]"
PAGES = 40


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, home_with_database: Callable[[Path], Path]) -> Path:
    return home_with_database(tmp_path_factory.mktemp("limits-home"))


@pytest.fixture(scope="module")
def salad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages without links: boilerplate headings that text mentions, commands, identifiers."""
    folder = tmp_path_factory.mktemp("limits") / "salad"
    folder.mkdir()
    for number in range(PAGES):
        key = f"{number * 2654435761 % 2**32:08x}"
        (folder / f"page{number}.md").write_text(
            f"# Thing {key}\n\n## Setup\n\nExample: Overview of the deployment {key}-c449 and what it is for.\n\n"
            f"```sh\n$ run --id={key} | tee Setup\nexport Overview={{{key}}}\n```\n\n"
            f"## Overview\n\nRun Setup as it is told by what is here. Creating Deployment {key}; Setup = `{key}`\n"
        )
    return folder


@pytest.fixture(scope="module")
def forced(salad: Path, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("limits-forced") / "made"
    done = call("synthesize", "--dataset", salad, "--out", out, "--questions", 20, "--force", home=home)
    assert 0 == done.code, done.err
    assert "warning: these questions would not measure anything: " in done.err
    return out


def test_word_salad_is_refused_with_the_remedy_and_nothing_is_written(salad: Path, home: Path, tmp_path: Path) -> None:
    done = call("synthesize", "--dataset", salad, "--out", tmp_path / "made", "--questions", 20, home=home)
    assert (2, False) == (done.code, (tmp_path / "made").exists()), done.err
    said = " ".join(done.err.split())
    assert "these questions would not measure anything (" in said
    assert REMEDY in said
    assert "answers that are names, settings or values" in done.out


def test_a_set_that_is_written_by_force_says_so_in_card_and_provenance(forced: Path) -> None:
    check = read_card(forced)["synthetic"]["check"]
    assert {"links", "answers", "sentences", "faults"} <= check.keys()
    assert check["faults"]
    assert [f"{UNFIT}: {'; '.join(check['faults'])}"] == statements_of(forced)
    assert UNFIT in (forced / "README.md").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in (forced / "provenance.jsonl").read_text(encoding="utf-8").splitlines()]
    assert all("sentences" in row["check"] for row in rows)


def test_no_run_on_such_a_set_names_a_best_label(forced: Path, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    ran = call("run", "--dataset", forced, "--strategies", "bm25,vector", "--out", out, "--no-prefect", home=home)
    assert 0 == ran.code, ran.err
    assert UNFIT in " ".join((ran.out + ran.err).split())
    assert "No label here may be called the best: the questions measure nothing" in (out / "report.html").read_text()
    told = call("recommend", out, home=home)
    assert "No label can be recommended: the questions measure nothing (" in " ".join(told.out.split())
    assert "Take " not in told.out


@pytest.mark.parametrize("flags", [(), ("--force",)])
def test_rules_ask_in_english_alone(home: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    folder = tmp_path / "seiten"
    folder.mkdir()
    for number in range(6):
        (folder / f"seite{number}.md").write_text(
            f"# Seite {number}\n\nEin Auftrag wird hier in einer Warteschlange abgelegt und dort von einem Arbeiter "
            f"abgeholt, sobald er frei ist. Mehr dazu steht auf der [nächsten Seite](seite{(number + 1) % 6}.md), "
            "die auch erklärt, wie lange er dort bleibt und wer ihn danach noch lesen darf.\n"
        )
    done = call("synthesize", "--dataset", folder, "--out", tmp_path / "made", *flags, home=home)
    said = " ".join(done.err.split())
    assert (2, False) == (done.code, (tmp_path / "made").exists()), done.err
    assert "the corpus is German, and rules ask in English alone" in said
    assert REMEDY in said
    checked = call("synthesize", "--check", folder, home=home)
    assert 2 == checked.code


def test_force_has_no_meaning_with_a_check(home: Path) -> None:
    done = call("synthesize", "--check", "hopworld", "--force", home=home)
    assert (2, True) == (done.code, "so --force cannot be used" in done.err), done.err
