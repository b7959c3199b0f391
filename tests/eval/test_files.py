"""Files that appear whole or not at all, and what cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hopbench.eval.files import read_table, refuse_unwritable, write_atomically, write_table
from hopbench.retrieval.support.errors import InputError


def test_a_file_that_is_there_stays_as_it_is_until_it_is_written(tmp_path: Path) -> None:
    kept = tmp_path / "judge-check.json"
    kept.write_text("{}", encoding="utf-8")
    refuse_unwritable(kept)
    assert ["{}"] == [file.read_text(encoding="utf-8") for file in tmp_path.iterdir()]


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, reason in (
        (tmp_path, "it is a folder"),
        (tmp_path / "file" / "w.json", "File exists: a file stands where"),
    ):
        with pytest.raises(InputError, match=f"cannot write {path}: {reason}"):
            refuse_unwritable(path)


def test_a_device_or_a_pipe_stays_one_and_a_link_too(tmp_path: Path) -> None:
    """`--out /dev/null` of root would leave a plain file in its place."""
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/null"), tmp_path / "pipe"):
        for write in (refuse_unwritable, lambda path: write_atomically(path, b"new")):
            with pytest.raises(InputError, match=f"cannot write {path}: it is a device or a pipe: name a file"):
                write(path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "real")
    refuse_unwritable(tmp_path / "link")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert b"new" == (tmp_path / "folder" / "real").read_bytes()


def test_links_that_lead_in_a_circle_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(InputError, match=r"cannot write .*/a: its links lead in a circle"):
        refuse_unwritable(tmp_path / "a")


def test_a_name_that_the_system_does_not_take_has_its_own_remedy(tmp_path: Path) -> None:
    long = tmp_path / ("n" * 250)
    refuse_unwritable(long)
    write_atomically(long, b"new")
    with pytest.raises(InputError, match="File name too long: choose a shorter name"):
        refuse_unwritable(tmp_path / ("n" * 256))


def test_a_flipped_bit_in_a_table_is_noticed(tmp_path: Path) -> None:
    file, table = tmp_path / "traces.parquet", pd.DataFrame({"score": np.random.default_rng(0).random(2000)})
    write_table(file, table)
    assert table.equals(read_table(file))
    content = bytearray(file.read_bytes())
    content[len(content) // 4] ^= 1  # in the page's data, which Parquet alone reads without a word
    file.write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        read_table(file)
