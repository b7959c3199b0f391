"""The model card of docs/hoprank.md: written from the weights file, and what the page says now."""

from __future__ import annotations

import pytest
from tests.support.places import ROOT
from tools.docs.model_card import parts
from tools.docs.places import filled

from hopbench.retrieval.strategies.hoprank.scoring import shipped
from hopbench.retrieval.support.errors import InputError

PLACES = "a\n<!-- learned from -->x<!-- /learned from -->\n<!-- left out --><!-- /left out -->b"
FIGURE = {"setting": "left out", "dataset": "one", "triples": False, "embedder": "words:1@2", "questions": 7}
FIGURE |= {"recall_at_5": 0.5, "recall_interval": [0.25, 0.75], "all_gold_at_10": 1.0, "all_gold_interval": [1.0, 1.0]}
CARD = {
    "learned_from": {"two": {"questions": 9, "role": "tune", "digest": "0123456789abcdef01"}},
    "folds": 5,
    "figures": [{**FIGURE, "model": "trees"}, {**FIGURE, "model": "linear", "recall_at_5": 0.4}],
}


def test_both_models_stand_in_one_row() -> None:
    found = parts(CARD)

    assert "| two | 9 | tune | `0123456789abcdef` |" in found["learned from"]
    linear, trees = ("0.400 [0.250, 0.750]", "1.000 [1.000, 1.000]"), ("0.500 [0.250, 0.750]", "1.000 [1.000, 1.000]")
    assert f"| one | words | 7 | {' | '.join([*linear, *trees])} |" in found["left out"].splitlines()
    assert "Not measured.\n" == found["cross-validated"]


def test_weights_without_figures_have_no_card() -> None:
    with pytest.raises(InputError, match=r"do not say what they were learned from .*KeyError.*train hoprank"):
        parts({**CARD, "figures": [{"setting": "left out"}]})


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(InputError, match=r"no place for what is cross-validated"):
        filled(PLACES, parts(CARD))
    names = ("cross-validated", "cross-validated apart")
    page = filled(PLACES + "".join(f"<!-- {name} --><!-- /{name} -->" for name in names), parts(CARD))
    assert page == filled(page, parts(CARD))
    assert page.startswith("a\n<!-- learned from -->\n| data set")


def test_the_page_has_the_card_of_the_shipped_weights() -> None:
    page = (ROOT / "docs" / "hoprank.md").read_text(encoding="utf-8")

    assert page == filled(page, parts(shipped().provenance))
