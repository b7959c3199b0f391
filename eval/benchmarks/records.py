"""Records of a file, whatever its layout: JSON lines, a JSON array or a table."""

from __future__ import annotations

from pathlib import Path

from hopbench.eval.benchmarks.files import first_character, read_json_array, read_jsonl
from hopbench.eval.benchmarks.place import Rows
from hopbench.eval.benchmarks.tables import TABLES, read_table


def read_records(path: Path) -> Rows:
    """The records of a JSONL, JSON array, CSV, TSV or Parquet file, in order.

    Tables are known by the file's name, a JSON array by its first character whatever the name says.
    """
    if path.suffix.lower() in TABLES:
        return read_table(path)
    return read_json_array(path) if first_character(path) == "[" else read_jsonl(path)
