"""From what a user names on the line of `hopbench compare` to the rows that are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from flows.cli.run_folder import RunFolder
from retrieval.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Side:
    """One label of one run, under the name that the comparison shows."""

    run: RunFolder
    label: str
    name: str = ""

    @property
    def rows(self) -> pd.DataFrame:
        """Its rows by question id."""
        return self.run.rows(self.label)


def resolve_sides(texts: Sequence[str]) -> list[Side]:
    """Every side that the arguments name, each once, all of one benchmark.

    Raises InputError for a folder that is no run, an unknown label, runs of different benchmarks.
    """
    folders: dict[Path, RunFolder] = {}
    sides = [side for text in texts for side in resolve(text, folders)]
    unique = list({(side.run.folder, side.label): side for side in sides}.values())
    first = unique[0].run
    for side in unique[1:]:
        _same_benchmark(first, side.run)
    if len(unique) < 2:
        raise InputError(f"only {unique[0].label!r} of {first.folder} to compare: name a second label or run")
    return _named(unique)


def resolve(text: str, folders: dict[Path, RunFolder]) -> list[Side]:
    """The sides of one argument, `DIR` or `DIR:LABEL`. Later kinds of argument (run ids, `champion`) belong here."""
    for folder, label in _readings(text):
        if (folder / "results.json").is_file():
            run = folders.get(folder.resolve()) or RunFolder.read(folder)
            folders[folder.resolve()] = run
            if label and label not in run.labels:
                raise UnknownNameError(f"label in {folder}", label, run.labels)
            return [Side(run, each) for each in ([label] if label else run.ranked)]
    raise InputError(f"{text!r} is neither the --out folder of a finished run (with results.json) nor FOLDER:LABEL")


def _readings(text: str) -> Iterator[tuple[Path, str]]:
    """The whole text as a folder, then every split at a colon, longest folder first: a folder's name may hold colons.

    `DIR::LABEL` means the same as `DIR:LABEL`.
    """
    yield Path(text), ""
    for place in range(len(text) - 1, 0, -1):
        if text[place] == ":":
            yield Path(text[:place]), text[place + 1 :].lstrip(":")


def _same_benchmark(first: RunFolder, other: RunFolder) -> None:
    if first.digest != other.digest:
        ours, theirs = first.results["benchmark"], other.results["benchmark"]
        raise InputError(
            f"{first.folder} was run on {ours['name']} ({ours['questions']} questions, digest {first.digest[:12]}) and "
            f"{other.folder} on {theirs['name']} ({theirs['questions']} questions, digest {other.digest[:12]}): "
            "compare runs of the same questions and passages"
        )


def _named(sides: Sequence[Side]) -> list[Side]:
    """Short names: the label in one run, FOLDER:LABEL with more, the folder's whole path where two end alike."""
    folders = list(dict.fromkeys(side.run.folder for side in sides))
    if len(folders) == 1:
        return [replace(side, name=side.label) for side in sides]
    ends = Counter(folder.resolve().name for folder in folders)
    shown = {f: f.resolve().name if ends[f.resolve().name] == 1 else str(f) for f in folders}
    return [replace(side, name=f"{shown[side.run.folder]}:{side.label}") for side in sides]


def choose_baseline(texts: Sequence[str], sides: Sequence[Side], asked: str | None) -> str | None:
    """The baseline's name: the one asked for, else the first argument's if it is a single label, else none.

    `asked` may be a name as shown, a label that only one run has, or an argument's own text.
    """
    if asked is None:
        first = resolve(texts[0], {})
        return _name_of(first[0], sides) if len(first) == 1 else None
    named = [side.name for side in sides if side.name == asked] or [s.name for s in sides if s.label == asked]
    if not named and any(asked.startswith(f"{side.run.folder}:") for side in sides):
        named = [_name_of(side, sides) for side in resolve(asked, {})]
    if len(named) == 1:
        return named[0]
    if named:
        raise InputError(f"--baseline {asked!r} could be {' or '.join(named)}: name one of them")
    raise UnknownNameError("label for --baseline", asked, [side.name for side in sides])


def _name_of(wanted: Side, sides: Sequence[Side]) -> str:
    place = wanted.run.folder.resolve(), wanted.label
    return next(side.name for side in sides if (side.run.folder.resolve(), side.label) == place)
