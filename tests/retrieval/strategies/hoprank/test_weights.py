"""Files of learned weights: what is refused, and what their numbers decide."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from hopbench.retrieval.strategies.hoprank import HopRank
from hopbench.retrieval.strategies.hoprank.weights import FEATURES, from_json, load, shipped, to_json
from hopbench.retrieval.support.errors import InputError


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda content: content["features"]["base"].reverse(), "other base features"),
        (lambda content: content.update(schema="hopbench.hoprank/0"), "this version reads 'hopbench.hoprank/5'"),
        (lambda content: content["first"].pop(), r"holds \[11, 18"),
        (lambda content: content.update(passes=[]), "no pass"),
        (lambda content: content.update(first=[[one] for one in content["first"]]), "lists in lists"),
        (lambda content: content["edges"][0].update(bias="x"), "no weights file"),
        (lambda content: content["first"].__setitem__(0, math.nan), "not finite"),
        (lambda content: content["passes"][0].__setitem__(3, -1e308), r"the number 1e\+308, 1,000,000 is allowed"),
        (lambda content: content.pop("features"), "no weights file"),
        (lambda content: content.update(provenance=None), "provenance is no object"),
        (lambda content: content["provenance"].update(learned_from=[]), "provenance is no object"),
        (lambda content: content["provenance"].update(learned_from={"one": 1}), "provenance is no object"),
    ],
    ids=[
        *["names", "schema", "length", "no pass", "nested", "text", "nan", "huge", "lacking"],
        *["no provenance", "no sets", "no set"],
    ],
)
def test_weights_for_something_else_are_refused(tmp_path: Path, spoil: object, message: str) -> None:
    content = json.loads(to_json(shipped()))
    spoil(content)  # type: ignore[operator]
    file = tmp_path / "weights.json"
    file.write_text(json.dumps(content), encoding="utf-8")

    with pytest.raises(InputError, match=message):
        HopRank(weights=str(file)).coefficients()


def test_a_weights_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"hoprank.weights = 'nowhere.json' cannot be read"):
        HopRank(weights="nowhere.json").coefficients()


def test_a_strategy_ranks_by_the_weights_that_it_read_first(tmp_path: Path) -> None:
    file = tmp_path / "weights.json"
    file.write_text(to_json(shipped()), encoding="utf-8")
    strategy = HopRank(weights=str(file))
    assert shipped().digest == strategy.identity()["weights"]
    assert load(str(file)) is load(str(file))  # read once

    file.write_text("{}", encoding="utf-8")
    assert shipped().digest == strategy.identity()["weights"]
    with pytest.raises(InputError, match="no weights file"):
        HopRank(weights=str(file)).coefficients()


def test_weights_survive_their_file_and_decide_the_identity(tmp_path: Path) -> None:
    again = from_json(to_json(shipped()), "again")
    assert to_json(shipped()) == to_json(again)
    assert shipped().digest == again.digest

    content = json.loads(to_json(shipped()))
    content["first"][0] += 1.0
    other = from_json(json.dumps(content), "other")
    assert shipped().digest != other.digest
    assert {**HopRank().spec(), "weights": shipped().digest} == HopRank().identity()


def test_the_shipped_weights_fit_this_version_and_say_where_they_come_from() -> None:
    provenance = shipped().provenance

    sets = {"2wiki-train500", "2wiki-train618", "hotpotqa-train200", "hotpotqa-train1046"}
    assert {"base", "edge", "triple", "path", "kinds", "trees"} == set(FEATURES)
    assert {*sets, "musique-train100", "musique-train940"} == set(provenance["learned_from"])
    assert {"tune"} == {one["role"] for one in provenance["learned_from"].values()}
