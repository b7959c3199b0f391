"""What each part of hoprank gives, and what it misses: tables of docs/hoprank.md from files of held-out questions.

    python -m tools.docs.held_out docs/hoprank.md ALL.parquet ["WHAT IS LEFT OUT=FILE.parquet" ...]

`hopbench train hoprank … --held-out ALL.parquet` writes the first file, the same with `--without` the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.eval.compare import limit, mean_ci
from hopbench.eval.files import read_table
from hopbench.eval.metrics import PRIMARY
from hopbench.retrieval.support.errors import InputError
from tools.docs.figures_against import as_markdown
from tools.docs.misses import NONE, examples, largest, misses
from tools.docs.places import fill, run

if TYPE_CHECKING:
    import pandas as pd

SETTINGS = ("left out", "cross-validated")
KEY = ["setting", "model", "dataset", "embedder"]
COLUMNS = {*KEY, "triples", "question", "text", "passage", "title", "rank", "linked"}
METRICS = ("recall@5", PRIMARY)


def per_question(table: pd.DataFrame) -> pd.DataFrame:
    """recall@5 and all_gold@10 of each question, from a row per gold passage; graphs with triples are left aside."""
    plain = table[~table["triples"]]
    found = plain["rank"] > 0
    ranked = plain.assign(**{METRICS[0]: found & (plain["rank"] <= 5), METRICS[1]: found & (plain["rank"] <= 10)})
    grouped = ranked.groupby([*KEY, "question"])
    return grouped.agg({METRICS[0]: "mean", METRICS[1]: "all"}).astype(float).reset_index()


def ablations(whole: pd.DataFrame, others: Mapping[str, pd.DataFrame]) -> str:
    """A table per setting and metric: what all has, and the paired difference where a part is left out."""
    base = per_question(whole)
    others = {what: per_question(table) for what, table in others.items()}
    for what, table in others.items():
        _check_questions(what, table, base)
    columns = [(name, model) for name in largest(whole) for model in sorted(base["embedder"].unique())]
    head = ("without", *(f"{name} {model.partition(':')[0]}" for name, model in columns))
    parts = []
    for setting in SETTINGS:
        for metric in METRICS:
            lines = list(_lines(base[base["setting"] == setting], others, metric, columns))
            if len(lines) > 2:
                parts.append(f"{setting.capitalize()}, {metric}:\n\n{as_markdown(head, lines)}")
    return "\n".join(parts) or NONE


def _check_questions(what: str, table: pd.DataFrame, base: pd.DataFrame) -> None:
    """Refuse what was tested on other questions than the whole: a difference would be one of questions."""
    for setting, own in table.groupby("setting"):
        same = base[base["setting"] == setting]
        keys = [set(zip(one["dataset"], one["embedder"], one["question"], strict=True)) for one in (own, same)]
        if keys[0] != keys[1]:
            raise InputError(
                f"{what}: {len(keys[0] ^ keys[1])} questions, {setting}, are not in both files: learn both from the "
                "same sets with the same embedders"
            )


def _lines(
    base: pd.DataFrame, others: Mapping[str, pd.DataFrame], metric: str, columns: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, ...]]:
    for model, name in (("trees", "nothing"), ("linear", "trees: the linear score")):
        own = base[base["model"] == model]
        yield (name, *(_mean(_of(own, column)[metric]) for column in columns))
        for what, table in others.items():
            other = table[table["setting"].isin(base["setting"].unique())]
            if len(other) and model == ("trees" if "trees" in set(other["model"]) else "linear"):
                chosen = other[other["model"] == model]
                yield (what, *(_difference(_of(chosen, column), _of(own, column), metric) for column in columns))


def _of(table: pd.DataFrame, column: tuple[str, str]) -> pd.DataFrame:
    chosen = table[(table["dataset"] == column[0]) & (table["embedder"] == column[1])]
    return chosen.set_index("question")


def _mean(values: pd.Series[float]) -> str:
    return f"{values.mean():.3f}" if len(values) else "–"


def _difference(other: pd.DataFrame, own: pd.DataFrame, metric: str) -> str:
    """The paired difference with its 95% interval, bold where that excludes 0."""
    if not len(other) or not len(own):
        return "–"
    values = (other[metric] - own[metric]).to_numpy(dtype=float)
    interval, mean = mean_ci(values), round(float(values.mean()), 3)
    shown = f"{mean:+.3f}" if mean else "0.000"
    if interval is None:
        return shown
    text = f"{shown} [{limit(interval.low)}, {limit(interval.high)}]"
    return f"**{text}**" if interval.low > 0 or interval.high < 0 else text


def _read(file: Path) -> pd.DataFrame:
    """A table of held-out questions. InputError for any other file."""
    try:
        table = read_table(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read ({error}): name what `train hoprank --held-out` wrote") from error
    numbers = ("rank", "linked", "triples")
    if not set(table.columns) >= COLUMNS or any(table[name].dtype.kind not in "bi" for name in numbers):
        raise InputError(f"{file} is no table of held-out questions: name what `train hoprank --held-out` wrote")
    return table


def main() -> None:
    """Rewrite the page that is named."""
    parser = argparse.ArgumentParser(description="Write what hoprank's parts give, and what it misses.")
    parser.add_argument("page", type=Path)
    parser.add_argument("whole", type=Path, help="what `--held-out` wrote of the whole")
    parser.add_argument("without", nargs="*", help="WHAT=FILE: the same with a part left out")
    given = parser.parse_args()
    whole, others = _read(given.whole), {}
    for one in given.without:
        what, equals, file = one.rpartition("=")
        if not equals or not what.strip() or what in others:
            raise InputError(f"{one}: write WHAT=FILE, each WHAT once")
        others[what] = _read(Path(file))
    texts = {"ablations": ablations(whole, others), "misses": misses(whole), "examples of misses": examples(whole)}
    fill(given.page, texts)


if __name__ == "__main__":
    run(main)
