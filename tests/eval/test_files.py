"""Files that appear whole or not at all, and what cannot be written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hopbench.eval.files import read_table, refuse_unwritable, write_table
from hopbench.retrieval.support.errors import InputError


def test_a_file_that_is_there_stays_as_it_is_until_it_is_written(tmp_path: Path) -> None:
    kept = tmp_path / "judge-check.json"
    kept.write_text("{}", encoding="utf-8")
    refuse_unwritable(kept)
    assert ["{}"] == [file.read_text(encoding="utf-8") for file in tmp_path.iterdir()]


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, reason in ((tmp_path, "it is a folder"), (tmp_path / "file" / "w.json", "File exists")):
        with pytest.raises(InputError, match=f"cannot write {path}: {reason}"):
            refuse_unwritable(path)


def test_a_flipped_bit_in_a_table_is_noticed(tmp_path: Path) -> None:
    file, table = tmp_path / "traces.parquet", pd.DataFrame({"score": np.random.default_rng(0).random(2000)})
    write_table(file, table)
    assert table.equals(read_table(file))
    content = bytearray(file.read_bytes())
    content[len(content) // 4] ^= 1  # in the page's data, which Parquet alone reads without a word
    file.write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        read_table(file)
