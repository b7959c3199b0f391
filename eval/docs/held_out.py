"""What each part of hoprank gives, and what it misses: tables of docs/hoprank.md from files of held-out questions.

    python -m hopbench.eval.docs.held_out docs/hoprank.md ALL.parquet ["WHAT IS LEFT OUT=FILE.parquet" ...]

`hopbench train hoprank … --held-out ALL.parquet` writes the first file, the same with `--without` the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.eval.compare import limit, mean_ci
from hopbench.eval.docs.figures_against import as_markdown
from hopbench.eval.docs.places import fill
from hopbench.eval.files import read_table
from hopbench.eval.metrics import PRIMARY
from hopbench.eval.training.folds import family
from hopbench.retrieval.strategies.hoprank.list_facts import READ
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

SETTINGS = ("left out", "cross-validated")
KEY = ["setting", "model", "dataset", "embedder"]
METRICS = ("recall@5", PRIMARY)
EXAMPLES = 4  # misses shown of each set


def per_question(table: pd.DataFrame) -> pd.DataFrame:
    """recall@5 and all_gold@10 of each question, from a row per gold passage; graphs with triples are left aside."""
    plain = table[~table["triples"]]
    found = plain["rank"] > 0
    ranked = plain.assign(**{METRICS[0]: found & (plain["rank"] <= 5), METRICS[1]: found & (plain["rank"] <= 10)})
    grouped = ranked.groupby([*KEY, "question"])
    return grouped.agg({METRICS[0]: "mean", METRICS[1]: "all"}).astype(float).reset_index()


def largest(table: pd.DataFrame) -> list[str]:
    """The set of most questions of each family, by name."""
    sizes = table.groupby("dataset")["question"].nunique().sort_index().sort_values(ascending=False, kind="stable")
    first: dict[str, str] = {}
    for name in sizes.index:
        first.setdefault(family(str(name)), str(name))
    return sorted(first.values())


def ablations(whole: pd.DataFrame, others: Mapping[str, pd.DataFrame]) -> str:
    """A table per setting and metric: what all has, and the paired difference where a part is left out."""
    base = per_question(whole)
    columns = [(name, model) for name in largest(whole) for model in sorted(base["embedder"].unique())]
    head = ("without", *(f"{name} {model.partition(':')[0]}" for name, model in columns))
    parts = []
    for setting in SETTINGS:
        for metric in METRICS:
            lines = list(_lines(base[base["setting"] == setting], others, metric, columns))
            if len(lines) > 2:
                parts.append(f"{setting.capitalize()}, {metric}:\n\n{as_markdown(head, lines)}")
    return "\n".join(parts)


def _lines(
    base: pd.DataFrame, others: Mapping[str, pd.DataFrame], metric: str, columns: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, ...]]:
    for model, name in (("trees", "nothing"), ("linear", "trees: the linear score")):
        own = base[base["model"] == model]
        yield (name, *(f"{_of(own, column)[metric].mean():.3f}" for column in columns))
        for what, table in others.items():
            other = per_question(table)
            other = other[other["setting"].isin(base["setting"].unique())]
            if len(other) and model == ("trees" if "trees" in set(other["model"]) else "linear"):
                chosen = other[other["model"] == model]
                yield (what, *(_difference(_of(chosen, column), _of(own, column), metric) for column in columns))


def _of(table: pd.DataFrame, column: tuple[str, str]) -> pd.DataFrame:
    chosen = table[(table["dataset"] == column[0]) & (table["embedder"] == column[1])]
    return chosen.set_index("question")


def _difference(other: pd.DataFrame, own: pd.DataFrame, metric: str) -> str:
    """The paired difference with its 95% interval, bold where that excludes 0."""
    if not len(other):
        return "–"
    values = (other[metric] - own[metric]).dropna().to_numpy(dtype=float)
    if len(values) != len(own):
        raise InputError(f"{len(values)} of {len(own)} questions are in both files: learn both from the same sets")
    interval, mean = mean_ci(values), round(float(values.mean()), 3)
    shown = f"{mean:+.3f}" if mean else "0.000"
    if interval is None:
        return shown
    text = f"{shown} [{limit(interval.low)}, {limit(interval.high)}]"
    return f"**{text}**" if interval.low > 0 or interval.high < 0 else text


def misses(whole: pd.DataFrame) -> str:
    """Of questions left out, how many lack a gold passage among the first ten, and where those passages are."""
    chosen = _left_out(whole)
    counts = chosen.groupby(["dataset", "embedder", "question"])["passage"].transform("size")
    lines = []
    for (name, model, count), rows in chosen.assign(gold=counts).groupby(["dataset", "embedder", "gold"]):
        lost = rows[_beyond_ten(rows)]
        read = lost[(lost["rank"] > 0) & (lost["rank"] <= READ)]
        numbers = (
            rows["question"].nunique(),
            lost["question"].nunique(),
            len(lost),
            int((lost["rank"] == 0).sum()),
            int((lost["rank"] > READ).sum()),
            int((~read["linked"]).sum()),
            int(read["linked"].sum()),
        )
        lines.append((str(name), str(model).partition(":")[0], str(count), *map(str, numbers)))
    head = (
        *("data set", "embedder", "gold passages", "questions", f"missed by {PRIMARY}", "passages beyond ten"),
        *("no candidate", f"beyond {READ}", f"among {READ}, no edge from other gold", f"among {READ}, linked"),
    )
    return as_markdown(head, lines)


def examples(whole: pd.DataFrame) -> str:
    """Some misses of the largest set of each family, evenly spaced by id: question, and each gold passage's rank."""
    chosen = _left_out(whole)
    chosen = chosen[chosen["embedder"] == min(chosen["embedder"], key=lambda name: ("wordllama" not in name, name))]
    lines = []
    for name in largest(whole):
        rows = chosen[chosen["dataset"] == name]
        missed = sorted(rows[_beyond_ten(rows)]["question"].unique())
        for question in missed[:: max(len(missed) // EXAMPLES, 1)][:EXAMPLES]:
            gold = rows[rows["question"] == question]
            lines.append(
                f"- *{name}*: {gold['text'].iloc[0]} Gold: {'; '.join(map(_place, gold.to_dict('records')))}.\n"
            )
    return "".join(lines)


def _place(row: Mapping[str, object]) -> str:
    where = f"rank {row['rank']}" if row["rank"] else "no candidate"
    return f"{row['title']} ({where}{'' if row['linked'] else ', no edge'})"


def _left_out(whole: pd.DataFrame) -> pd.DataFrame:
    return whole[(whole["setting"] == "left out") & (whole["model"] == "trees") & ~whole["triples"]]


def _beyond_ten(rows: pd.DataFrame) -> pd.Series[bool]:
    return (rows["rank"] == 0) | (rows["rank"] > 10)


def main() -> None:
    """Rewrite the page that is named."""
    parser = argparse.ArgumentParser(description="Write what hoprank's parts give, and what it misses.")
    parser.add_argument("page", type=Path)
    parser.add_argument("whole", type=Path, help="what `--held-out` wrote of the whole")
    parser.add_argument("without", nargs="*", help="WHAT=FILE: the same with a part left out")
    given = parser.parse_args()
    whole = read_table(given.whole)
    others = {what: read_table(Path(file)) for what, _, file in (one.rpartition("=") for one in given.without)}
    texts = {"ablations": ablations(whole, others), "misses": misses(whole), "examples of misses": examples(whole)}
    fill(given.page, texts)


if __name__ == "__main__":
    main()
