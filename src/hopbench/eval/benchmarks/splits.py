"""Tables of several files, by split: shards as the Hub has them, and folders that `Dataset.save_to_disk` wrote."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks.fields import Place, Record
from hopbench.eval.benchmarks.files import read_json
from hopbench.eval.benchmarks.gzip_file import ENDING
from hopbench.eval.benchmarks.records import TABLES, layout_ending, read_records
from hopbench.retrieval.support.errors import InputError

EVALUATION_SPLITS = ("validation", "dev", "test", "train")  # multi-hop test splits have no public gold
GOLD_SPLITS = ("test", "validation", "dev", "train")
Splits = Mapping[str, Sequence[Path]]

_READ = (".jsonl", ".json", *TABLES)
_SAVED = ("state.json", "dataset_info.json")
_DICT = "dataset_dict.json"
_SHARD = re.compile(r"(?P<split>.+?)-\d+-of-(?P<count>\d+)(-\w+)?")  # test-00000-of-00002.parquet


def rows_of(files: Sequence[Path]) -> Iterator[tuple[Place, Record]]:
    """The records of all files, one after another."""
    for file in files:
        yield from read_records(file)


def chosen_split(folder: Path, splits: Splits, preferred: Iterable[str]) -> Sequence[Path]:
    """The files of the first preferred split that is there, else of the only one."""
    return splits[split_name(folder, splits, preferred)]


def split_name(folder: Path, splits: Splits, preferred: Iterable[str]) -> str:
    """The first preferred split that is there, else the only one; several of other names are refused."""
    name = next((one for one in preferred if one in splits), None)
    if name is None and len(splits) == 1:
        name = next(iter(splits))
    if name is None:
        raise InputError(
            f"{folder}: has the splits {', '.join(sorted(splits)) or '(none)'}, and which to read is not clear: put "
            "the files of one of them into a folder of their own"
        )
    return name


def splits_of(folder: Path) -> Splits:
    """Split → files of a folder of tables; empty where it holds none."""
    if (saved := saved_splits(folder)) is not None:
        return saved
    return by_split(sorted([*folder.glob("*"), *folder.glob("*/*")]), folder) if folder.is_dir() else {}


def by_split(files: Iterable[Path], folder: Path) -> Splits:
    """The tables among the files by their split; shards that are missing are refused."""
    splits: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        if layout_ending(file) in _READ and not file.name.startswith(".") and file.is_file():
            splits[_split(file, folder)].append(file)
    for split, shards in splits.items():
        counts = {int(match["count"]) for file in shards if (match := _SHARD.fullmatch(_stem(file)))}
        if counts and counts != {len(shards)}:
            raise InputError(
                f"{folder}: holds {len(shards)} of the {max(counts)} files of the split {split!r}: download the others"
            )
    return splits


def _split(file: Path, folder: Path) -> str:
    stem = _stem(file)
    if match := _SHARD.fullmatch(stem):
        return match["split"]
    if stem.isdecimal():  # 0000.parquet, as the Hub converts a set: its folder is the split
        return file.parent.name if file.parent != folder else ""
    return stem


def _stem(file: Path) -> str:
    return (file.with_suffix("") if file.suffix.lower() == ENDING else file).stem


def saved_splits(folder: Path) -> Splits | None:
    """Split → files of a folder that `save_to_disk` wrote, `""` for a data set without splits; None for any other."""
    if (folder / _DICT).is_file():
        names = _field(folder / _DICT, "splits")
        return {name: _saved_files(folder / _inside(name)) for name in names}
    return {"": _saved_files(folder)} if all((folder / name).is_file() for name in _SAVED) else None


def _saved_files(folder: Path) -> Sequence[Path]:
    files = [one.get("filename") if isinstance(one, dict) else one for one in _field(folder / _SAVED[0], "_data_files")]
    return [folder / _inside(name) for name in files]


def _field(file: Path, name: str) -> list[Any]:
    content = read_json(file)
    value = content.get(name) if isinstance(content, dict) else None
    if not isinstance(value, list):
        raise InputError(f"{file}: field {name!r} must be a list, as `save_to_disk` writes it: save the data set again")
    return value


def _inside(name: object) -> str:
    """The last part of a name that a file gives, which leads nowhere else."""
    return Path(str(name)).name
