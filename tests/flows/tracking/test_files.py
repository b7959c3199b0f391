from pathlib import Path

import pytest

from hopbench.flows.tracking.writer import folder_in, refuse_secrets

OURS = Path("/home/h/mlartifacts")


@pytest.mark.parametrize(
    ("place", "folder"),
    [
        ("file:///home/h/mlartifacts/1/abc/artifacts", Path("/home/h/mlartifacts/1/abc/artifacts")),
        ("/home/h/mlartifacts/1/abc/artifacts", Path("/home/h/mlartifacts/1/abc/artifacts")),
        ("file:///home/h/mlartifacts/1/a%20b/artifacts", Path("/home/h/mlartifacts/1/a b/artifacts")),
        ("file:///home/h/mlartifacts/../other", None),  # leaves our folder
        ("file:///elsewhere/1/abc/artifacts", None),
        ("mlflow-artifacts:/1/abc/artifacts", None),
        ("s3://bucket/home/h/mlartifacts/1", None),
        ("None", None),
    ],
)
def test_a_runs_folder_is_ours_only_within_the_homes_folder(place: str, folder: Path | None) -> None:
    assert folder == folder_in(place, OURS)


def test_a_file_with_a_secret_is_refused_and_its_value_is_not_in_the_message(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("the key is hunter2222")
    refuse_secrets(file, ("something else",))
    with pytest.raises(ValueError, match=r"page\.html contains the value of a secret") as error:
        refuse_secrets(file, ("hunter2222",))
    assert "hunter2222" not in str(error.value)
