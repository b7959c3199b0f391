"""The dataset card of a synthetic set."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopbench.eval.benchmarks.beir import read_card
from hopbench.eval.synthesize.quality import Quality
from hopbench.eval.synthesize.write import STATEMENT, Origin, card, statements_of


@pytest.mark.parametrize("name", ["notes: 2024", "a #b", "@home", "- list", 'say "so"', "{x}", "yes", "1e5", "日本"])
def test_a_folder_of_any_name_gives_a_card_that_can_be_read(tmp_path: Path, name: str) -> None:
    origin = Origin(corpus=name, corpus_digest="1e5", by="rules", seed=0, role="tune", dropped={}, check=Quality([], 0))
    (tmp_path / "README.md").write_text(card(name, 3, {"bridge": 1}, origin), encoding="utf-8")
    read = read_card(tmp_path)
    expected = {"by": "rules", "seed": 0, "corpus": name, "corpus_digest": "1e5", "check": {"faults": []}}
    assert expected == read["synthetic"]
    assert (name, {"role": "tune"}) == (read["pretty_name"], read["hopbench"])
    assert [STATEMENT] == statements_of(tmp_path)
