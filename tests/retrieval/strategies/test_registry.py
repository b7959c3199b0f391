"""Strategies by name: labels, presets, changes and the errors of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from hopbench.retrieval.plugins import registry as groups
from hopbench.retrieval.strategies import registry as module
from hopbench.retrieval.strategies.base import Bounds, Strategy
from hopbench.retrieval.strategies.baselines import Vector
from hopbench.retrieval.strategies.graph_expansion import GraphExpansion
from hopbench.retrieval.strategies.label import HOP_FREE, WITHOUT_SOURCE, Label
from hopbench.retrieval.strategies.pagerank import PageRank
from hopbench.retrieval.strategies.registry import (
    defaults,
    make,
    parse_value,
    preset,
    registry,
    resolve,
)
from hopbench.retrieval.support.errors import InputError, ParameterError, UnknownNameError

NAMES = registry().names()


@dataclass(frozen=True, kw_only=True)
class Mine(Vector):
    """A strategy from elsewhere."""

    name = "mine"
    summary = "from elsewhere"


@pytest.mark.parametrize("name", NAMES)
def test_every_strategy_documents_every_parameter(name: str) -> None:
    strategy = registry().get(name)

    assert strategy.summary
    assert strategy.__doc__
    for field, spec in strategy.parameters().items():
        bounds = spec.metadata["bounds"]
        assert isinstance(bounds, Bounds), field
        assert bounds.help, field
        if type(spec.default) in (int, float):
            assert bounds.low is not None, field
            assert bounds.high is not None, field
            assert bounds.low <= spec.default <= bounds.high, field
        if isinstance(spec.default, str) and bounds.choices:
            assert spec.default in bounds.choices, field


@pytest.mark.parametrize("name", NAMES)
def test_a_spec_makes_the_same_strategy_again(name: str) -> None:
    strategy = make(name)

    assert strategy == type(strategy)(**strategy.spec())
    assert set(strategy.parameters()) == set(strategy.spec())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_SOURCE])
def test_a_plain_label_is_the_documented_preset(name: str) -> None:
    assert defaults(registry().get(name)) == make(name).spec()
    assert make(name) == make(f"{name}:documented")


@pytest.mark.parametrize("name", [name for name in NAMES if preset(name)])
def test_a_tuned_preset_says_where_it_comes_from(name: str) -> None:
    found = preset(name)

    assert found is not None
    assert found.parameters.items() <= make(f"{name}:tuned").spec().items()
    assert found.provenance["tuned_on"]
    assert not any("dev" in place or "report" in place for place in found.provenance["tuned_on"])


def test_pagerank_s_plain_label_is_its_tuned_preset() -> None:
    assert make("pagerank") == make("pagerank:tuned")
    assert "pagerank" in WITHOUT_SOURCE


def test_all_and_all_tuned() -> None:
    assert NAMES == list(resolve("all"))
    assert [f"{n}:tuned" for n in NAMES if preset(n) and n not in WITHOUT_SOURCE] == [
        label for label in _tuned() if label.endswith(":tuned")
    ]
    assert set(HOP_FREE) <= set(NAMES)


def _tuned() -> Iterator[str]:
    try:
        yield from resolve("all:tuned")
    except InputError:  # no strategy has a second preset
        return


def test_a_selection_keeps_its_order_and_names_each_label_once() -> None:
    assert ["hybrid", "vector", "hybrid[fusion=rrf]"] == list(resolve(" hybrid, vector,hybrid,hybrid[fusion=rrf] "))


def test_commas_inside_brackets_belong_to_the_label() -> None:
    (strategy,) = resolve("graph_expansion[max_depth=2,min_score=.5]").values()

    assert GraphExpansion(max_depth=2, min_score=0.5) == strategy


def test_set_changes_the_strategy_and_its_label() -> None:
    found = resolve("vector,pagerank", ["pagerank.restart=0.3", "pagerank.seed_chunks=5"])

    assert ["vector", "pagerank[restart=0.3,seed_chunks=5]"] == list(found)
    changed = found["pagerank[restart=0.3,seed_chunks=5]"].spec()
    assert make("pagerank").spec() | {"restart": 0.3, "seed_chunks": 5} == changed


def test_set_applies_to_labels_that_have_changes_already() -> None:
    found = resolve("pagerank[steps=3]", ["pagerank.restart=0.3"])

    assert ["pagerank[steps=3,restart=0.3]"] == list(found)
    assert make("pagerank").spec() | {"restart": 0.3, "steps": 3} == found["pagerank[steps=3,restart=0.3]"].spec()


def test_a_later_set_of_the_same_field_wins() -> None:
    assert ["pagerank[restart=0.4]"] == list(resolve("pagerank[restart=.2]", ["pagerank.restart=0.4"]))


def test_a_label_can_be_read_back() -> None:
    assert "pagerank:tuned[restart=0.3,steps=4]" == str(Label("pagerank", "tuned", {"restart": "0.3", "steps": "4"}))
    assert make("pagerank:tuned[restart=0.3,steps=4]").spec()["steps"] == 4


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        ("restart", "0.5", 0.5),
        ("restart", ".5", 0.5),
        ("restart", "5e-1", 0.5),
        ("question_weight", "2", 2.0),
        ("steps", "7", 7),
        ("fill", "false", False),
        ("fill", "true", True),
    ],
)
def test_values_are_read_by_the_type_of_their_default(field: str, text: str, expected: object) -> None:
    value = parse_value(PageRank, field, text)

    assert (expected, type(expected)) == (value, type(value))


@pytest.mark.parametrize(
    ("label", "error", "message"),
    [
        ("pagerankk", UnknownNameError, r"unknown strategy 'pagerankk'. Did you mean 'pagerank'\? Known: .*vector"),
        ("vector[depht=1]", UnknownNameError, "unknown parameter of vector 'depht'"),
        ("graph_expansion[max_dept=1]", UnknownNameError, r"Did you mean 'max_depth'\?"),
        ("graph_expansion[max_depth=9]", ParameterError, r"graph_expansion\.max_depth = 9 is not allowed: .*1\.\.3"),
        ("graph_expansion[max_depth]", ParameterError, "max_depth = ''"),
        ("graph_expansion[max_depth=two]", ParameterError, "max_depth = 'two'"),
        ("graph_expansion[max_depth=2.5]", ParameterError, "max_depth = 2.5"),
        ("graph_expansion[min_score=nan]", ParameterError, "min_score = nan"),
        ("graph_expansion[min_score=.nan]", ParameterError, "min_score = nan"),
        ("graph_expansion[min_score={]", ParameterError, "min_score = '{'"),
        ("graph_expansion[min_score=: x: y]", ParameterError, "min_score = ': x: y'"),
        ("graph_expansion[path_strength=%]", ParameterError, "path_strength = '%'.*product, max"),
        ("vector[fill=perhaps]", ParameterError, "fill = 'perhaps'.*a bool"),
        ("vector:tuned", InputError, "strategy 'vector' has no preset 'tuned'; it has: documented$"),
        ("pagerank:documented", InputError, "strategy 'pagerank' has no preset 'documented'; it has: tuned$"),
        ("pagerank:best", InputError, "it has: tuned$"),
        ("vector[", InputError, r"'vector\[' is no strategy label: write NAME, NAME:tuned, NAME\[field=value,…\] or"),
        ("vector:", InputError, "is no strategy label"),
        ("pagerank[restart=0.3,restart=0.4]", InputError, "sets restart twice, to 0.3 and 0.4: keep one"),
        ("", InputError, "is no strategy label"),
    ],
)
def test_a_bad_label_says_what_is_wrong(label: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(label)


@pytest.mark.parametrize(
    ("selection", "changes", "message"),
    [
        ("", [], "selects nothing; known: vector"),
        (" , ", [], "selects nothing"),
        ("vector", ["restart=1"], "'restart=1' cannot be read: write strategy.field=value"),
        ("vector", ["vector.fill"], "'vector.fill' cannot be read"),
        ("vector", ["pagerank.restart=.5"], "--set names pagerank, which --strategies 'vector' does not select"),
        ("vector", ["nope.restart=.5"], "unknown strategy 'nope'"),
        ("vector", ["vector.nope=.5"], "unknown parameter of vector 'nope'"),
    ],
)
def test_a_bad_selection_says_what_is_wrong(selection: str, changes: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve(selection, changes)


def test_names_that_clash_are_refused_and_ours_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point(EntryPoint):
        def load(self) -> Any:
            return Mine

    offered = [Point(name, f"{one}:Mine", "hopbench.strategies") for name in ("vector", "mine") for one in "ab"]
    monkeypatch.setattr(groups, "entry_points", lambda group: offered)
    registry.cache_clear()
    try:
        assert NAMES == registry().names()
        assert isinstance(make("vector"), Vector)
        assert "vector = a:Mine cannot be used: HopBench has the strategy 'vector'" in registry().broken["vector"]
        with pytest.raises(InputError, match="several packages offer the strategy 'mine'"):
            make("mine")
    finally:
        registry.cache_clear()


def test_a_package_adds_a_strategy_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point(EntryPoint):
        def load(self) -> Any:
            return Mine

    point = Point("mine", "tests:Mine", "hopbench.strategies")
    monkeypatch.setattr(groups, "entry_points", lambda group: [point] if group == "hopbench.strategies" else [])
    registry.cache_clear()
    try:
        assert [*NAMES, "mine"] == registry().names()
        assert isinstance(make("mine[fill=false]"), Mine)
        assert "mine" in resolve("all")
    finally:
        registry.cache_clear()


@pytest.mark.parametrize("value", ["not a strategy", dict, 3])
def test_an_entry_point_that_is_no_strategy_is_named_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, value: object
) -> None:
    class Point(EntryPoint):
        def load(self) -> Any:
            return value

    point = Point("mine", "elsewhere:thing", "hopbench.strategies")
    monkeypatch.setattr(groups, "entry_points", lambda group: [point])
    registry.cache_clear()
    try:
        assert NAMES == registry().names()
        with pytest.raises(InputError, match=r"mine = elsewhere:thing cannot be used: it is no Strategy class"):
            registry().get("mine")
    finally:
        registry.cache_clear()


def test_presets_travel_with_the_package() -> None:
    folder = Path(module.__file__).parent / "presets"
    assert {file.stem for file in folder.glob("*.yaml")} <= set(NAMES)


def test_a_strategy_is_frozen_and_its_parameters_are_named() -> None:
    assert issubclass(Vector, Strategy)
    with pytest.raises(AttributeError):
        make("vector").fill = False  # type: ignore[misc]
    with pytest.raises(TypeError):
        Vector(False)  # type: ignore[misc]
