"""A database of another MLflow is refused with the remedy, and left as it is."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker, TrackingError, tracking_uri
from hopbench.flows.tracking.payload import RunPayload
from hopbench.flows.tracking.registry import refuse_other_schema
from hopbench.retrieval.support.errors import InputError

OLDER = "acf3f17fdcc7"  # MLflow 2.8 to 2.13
RUN = "a" * 32


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one run, made by MLflow's own migrations up to OLDER."""
    from alembic import command
    from mlflow.store.db.utils import _get_alembic_config
    from mlflow.store.tracking.dbmodels.initial_models import Base
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    file = tmp_path_factory.mktemp("older") / "mlflow.db"
    engine = create_engine(f"sqlite:///{file}", poolclass=NullPool)
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        config = _get_alembic_config(f"sqlite:///{file}")
        config.attributes["connection"] = connection
        command.upgrade(config, OLDER)
    with closing(sqlite3.connect(file)) as database:
        database.execute(
            "INSERT INTO experiments (experiment_id, name, artifact_location, lifecycle_stage)"
            " VALUES (1, 'hopbench/old', 'file:///nowhere', 'active')"
        )
        database.execute(
            "INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time,"
            " end_time, source_version, lifecycle_stage, artifact_uri, experiment_id)"
            f" VALUES ('{RUN}', 'bm25', 'LOCAL', '', '', 'me', 'FINISHED', 1, 2, '', 'active', 'file:///nowhere', 1)"
        )
        database.execute(f"INSERT INTO params (key, value, run_uuid) VALUES ('label', 'bm25', '{RUN}')")
        database.execute(f"INSERT INTO tags (key, value, run_uuid) VALUES ('mlflow.runName', 'bm25', '{RUN}')")
        database.execute(  # what decides a comparison: runs without it are none to compare
            "INSERT INTO latest_metrics (key, value, timestamp, step, is_nan, run_uuid)"
            f" VALUES ('all_gold_at_10', 0.5, 1, 0, 0, '{RUN}')"
        )
        database.commit()
    return file


@pytest.fixture(autouse=True)
def quiet_alembic() -> Iterator[None]:
    """Its configuration silences loggers that other tests listen to."""
    before = {name: logging.getLogger(name).disabled for name in logging.root.manager.loggerDict}
    yield
    for name, disabled in before.items():
        logging.getLogger(name).disabled = disabled


@pytest.fixture
def home(older: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    place = Home(tmp_path / "home").prepare()
    place.mlflow_db.write_bytes(older.read_bytes())
    return place


def test_somebody_elses_database_is_left_alone(
    home: Home, older: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "shared.db"
    theirs.write_bytes(older.read_bytes())
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{theirs}")
    tracker = Tracker.start(home, "hopbench/new")
    tracker.log(RunPayload("night", "nightly"))
    with pytest.raises(TrackingError) as caught:
        tracker.close()
    assert f"make a copy of it, then run: mlflow db upgrade {tracking_uri(home)}" in str(caught.value)
    assert theirs.read_bytes() == older.read_bytes()


def test_a_newer_mlflows_database_and_a_server(home: Home, tmp_path: Path) -> None:
    with closing(sqlite3.connect(home.mlflow_db)) as database:
        database.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
        database.commit()
    with pytest.raises(InputError, match=r"written by a newer MLflow: its schema is ffffffffffff.*Update HopBench"):
        refuse_other_schema(tracking_uri(home))
    refuse_other_schema("http://127.0.0.1:9")  # a server looks after its own
    refuse_other_schema(f"sqlite:///{tmp_path / 'none.db'}")
    assert not (tmp_path / "none.db").exists()
