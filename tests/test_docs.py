"""What is registered is documented."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eval.metrics import all_metrics
from retrieval.strategies.hoprank.base_features import BASE_FEATURES
from retrieval.strategies.hoprank.edge_features import EDGE_FEATURES
from retrieval.strategies.registry import registry

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", all_metrics())
def test_every_metric_stands_in_the_docs(name: str) -> None:
    assert f"| `{name}` | {all_metrics()[name].meaning} |" in (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", registry().names())
def test_every_strategy_and_parameter_stands_in_the_docs(name: str) -> None:
    text = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    assert f"## {name}" in text
    section = text.split(f"## {name}\n")[1].split("\n## ")[0]
    assert [] == [field for field in registry().get(name).parameters() if f"`{field}`" not in section]


@pytest.mark.parametrize("feature", [*BASE_FEATURES, *EDGE_FEATURES], ids=lambda feature: feature.__name__)
def test_every_feature_of_hoprank_stands_in_its_page(feature: Callable[..., object]) -> None:
    row = f"| `{feature.__name__}` | {feature.__doc__} |"

    assert row in (ROOT / "docs" / "hoprank.md").read_text(encoding="utf-8")
