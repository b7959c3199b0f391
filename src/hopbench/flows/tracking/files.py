"""Files of runs in MLflow: copied where its store is a folder of the home, else handed to MLflow's client."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

if TYPE_CHECKING:
    from mlflow import MlflowClient


def store_file(client: MlflowClient, run_id: str, place: str, ours: Path, path: Path, folder: str) -> None:
    """Store a file with a run, under `folder` there.

    `place` is the run's artifact URI. In our own folder `ours` the file is copied, as MLflow's client does after it has
    asked the database for the run and its data sets.
    """
    local = folder_in(place, ours)
    if local is None:
        client.log_artifact(run_id, str(path), folder or None)
        return
    (local / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, local / folder)


def folder_in(place: str, ours: Path) -> Path | None:
    """The folder that an artifact URI names, where that is within `ours`."""
    parts = urlsplit(place)
    folder = Path(url2pathname(parts.path))
    within = folder.is_relative_to(ours) and ".." not in folder.parts
    return folder if parts.scheme in ("", "file") and within else None


def refuse_secrets(path: Path, hidden: tuple[str, ...]) -> None:
    """Raise ValueError where a file contains one of these values."""
    content = path.read_bytes()
    if any(value.encode() in content for value in hidden):
        raise ValueError(f"{path.name} contains the value of a secret environment variable; it was not stored")
