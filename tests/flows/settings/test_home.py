"""The home folder: where it is, what refuses it, and which variables it adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError


def test_default_and_named_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Home.resolve({}).root == tmp_path / ".hopbench"
    assert Home.resolve({"HOPBENCH_HOME": ""}).root == tmp_path / ".hopbench"
    assert Home.resolve({"HOPBENCH_HOME": "here"}).root == tmp_path / "here"
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    assert Home.resolve({"HOPBENCH_HOME": "~/bench"}).root == tmp_path / "user" / "bench"


def test_prepare_creates_folders_and_leaves_no_probe(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "b").prepare()
    assert sorted(path.relative_to(home.root).as_posix() for path in home.root.rglob("*")) == [
        "cache",
        "cache/embeddings",
        "graphs",
        "logs",
        "mlartifacts",
        "prefect",
        "tmp",
    ]


@pytest.mark.parametrize("blocked", ["", "graphs"])
def test_a_file_in_the_way_is_named(tmp_path: Path, blocked: str) -> None:
    home = Home(tmp_path / "home")
    obstacle = home.root / blocked
    obstacle.parent.mkdir(parents=True, exist_ok=True)
    obstacle.write_text("")
    with pytest.raises(InputError, match=r"HOPBENCH_HOME: the folder .* cannot be written") as caught:
        home.prepare()
    assert str(obstacle) in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_folder_that_cannot_be_written_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Root may write anywhere, so the refusal is the system call's own error.
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("hopbench.flows.settings.home.tempfile.TemporaryFile", refuse)
    with pytest.raises(InputError, match=r"Permission denied.*HOPBENCH_HOME=DIR"):
        Home(tmp_path).prepare()


def test_environment_keeps_what_the_user_set(tmp_path: Path) -> None:
    home = Home(tmp_path)
    everything = home.environment({})
    assert everything["PREFECT_HOME"] == str(tmp_path / "prefect")
    assert everything["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert everything["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] == "CRITICAL"
    user = {"PREFECT_HOME": "mine", "PREFECT_LOGGING_LEVEL": "DEBUG", "HF_HOME": "models"}
    added = home.environment(user)
    assert not set(added) & set(user)
    assert "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL" not in added
    assert not [name for name in added if name.startswith("HF_") and name.endswith("_CACHE")]
    assert set(everything) - set(added) >= {"PREFECT_HOME", "PREFECT_LOGGING_LEVEL", "HF_HUB_CACHE"}
