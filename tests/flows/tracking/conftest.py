"""A home with MLflow's database, and no other store named."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hopbench.flows.settings.home import Home


@pytest.fixture
def tracked_home(tmp_path: Path, home_with_database: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home for one test, whose settings hold in its process."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    place = Home(home_with_database(tmp_path / "home")).prepare()
    for name, value in place.environment(os.environ).items():
        monkeypatch.setenv(name, value)
    return place
