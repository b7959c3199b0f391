"""What hoprank misses of families of data sets that it did not learn from: counts, and examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hopbench.eval.metrics import PRIMARY
from hopbench.eval.training.held_out import family
from hopbench.retrieval.strategies.hoprank.scoring import READ
from tools.docs.figures_against import as_markdown, in_a_line

if TYPE_CHECKING:
    import pandas as pd

NONE = "Not measured.\n"
EXAMPLES = 4  # misses shown of each set


def largest(table: pd.DataFrame) -> list[str]:
    """The set of most questions of each family, by name."""
    sizes = table.groupby("dataset")["question"].nunique().sort_index().sort_values(ascending=False, kind="stable")
    first: dict[str, str] = {}
    for name in sizes.index:
        first.setdefault(family(str(name)), str(name))
    return sorted(first.values())


def misses(whole: pd.DataFrame) -> str:
    """Of questions left out, how many lack a gold passage among the first ten, and where those passages are."""
    chosen = _left_out(whole)
    if not len(chosen):
        return NONE
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
    if not len(chosen):
        return NONE
    chosen = chosen[chosen["embedder"] == min(chosen["embedder"], key=lambda name: ("wordllama" not in name, name))]
    lines = []
    for name in largest(whole):
        rows = chosen[chosen["dataset"] == name]
        missed = sorted(rows[_beyond_ten(rows)]["question"].unique())
        for question in missed[:: max(len(missed) // EXAMPLES, 1)][:EXAMPLES]:
            gold = rows[rows["question"] == question]
            places = "; ".join(map(_place, gold.to_dict("records")))
            lines.append(f"- *{in_a_line(name)}*: {in_a_line(gold['text'].iloc[0])} Gold: {places}.\n")
    return "".join(lines) or "None.\n"


def _place(row: Mapping[str, object]) -> str:
    where = f"rank {row['rank']}" if row["rank"] else "no candidate"
    return f"{in_a_line(str(row['title']))} ({where}{'' if row['linked'] else ', no edge'})"


def _left_out(whole: pd.DataFrame) -> pd.DataFrame:
    return whole[(whole["setting"] == "left out") & (whole["model"] == "trees") & ~whole["triples"]]


def _beyond_ten(rows: pd.DataFrame) -> pd.Series[bool]:
    return (rows["rank"] == 0) | (rows["rank"] > 10)
