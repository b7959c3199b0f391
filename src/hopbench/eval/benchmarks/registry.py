"""The benchmarks that travel with HopBench."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hopbench.eval.benchmarks.beir import find_table, is_folder_of_tables
from hopbench.eval.benchmarks.card import read_card, role_of
from hopbench.eval.benchmarks.qrels import find_qrels
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.types import Role

_DATA = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True, slots=True)
class ShippedBenchmark:
    """One line of `hopbench benchmarks`: `passages` and `questions` are counts."""

    name: str
    title: str
    role: Role
    passages: int
    questions: int
    folder: Path


def shipped_folders() -> dict[str, Path]:
    """Name → folder of each shipped benchmark, sorted by name."""
    return {folder.name: folder for folder in sorted(_DATA.iterdir()) if is_folder_of_tables(folder)}


def benchmark_names() -> list[str]:
    """The names that `load_benchmark` knows without a path."""
    return list(shipped_folders())


def shipped_benchmarks() -> list[ShippedBenchmark]:
    """Every shipped benchmark with title (the card's `pretty_name`), role and counts, which are not validated."""
    return [_describe(name, folder) for name, folder in shipped_folders().items()]


def _describe(name: str, folder: Path) -> ShippedBenchmark:
    passages, questions = (sum(1 for _ in read_records(find_table(folder, stem))) for stem in ("corpus", "queries"))
    role = role_of(name, has_gold=find_qrels(folder) is not None, folder=folder)
    title = str(read_card(folder).get("pretty_name") or name)
    return ShippedBenchmark(name, title, role, passages, questions, folder)
