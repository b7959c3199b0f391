"""Write the tables of docs/hoprank.md: the model card, what each part of hoprank gives, and what it misses.

    python -m tools.docs.hoprank card docs/hoprank.md
    python -m tools.docs.hoprank held-out docs/hoprank.md ALL.parquet ["WHAT IS LEFT OUT=FILE.parquet" ...]

`hopbench train hoprank … --held-out ALL.parquet` writes the first file, the same with `--without` the others. The card
is made from the provenance in the weights file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import read_table
from hopbench.eval.metrics import PRIMARY
from hopbench.eval.statistics import limit, mean_ci
from hopbench.eval.training.held_out import family
from hopbench.retrieval.strategies.hoprank.tree_features import READ
from hopbench.retrieval.strategies.hoprank.weights import load
from hopbench.retrieval.support.errors import InputError
from tools.docs.pages import as_markdown, fill, in_a_line, run_command

if TYPE_CHECKING:
    import pandas as pd

WORDS = "recall@5 and all_gold@10 with 95% intervals"
CARD_SETTINGS = {
    "left out": f"Nothing was learned from the set, nor from another one of its family; {WORDS}:",
    "cross-validated": f"Cross-validated in {{folds}} parts, each by what was learned from the others; {WORDS}:",
    "cross-validated apart": (
        f"Cross-validated, and nothing learned from a question that shares a gold passage with those tested; {WORDS}:"
    ),
}
NONE = "Not measured.\n"
NOT_LEARNED = "These weights were learned without figures that are {}.\n"
EXAMPLES = 4  # misses shown of each set
SETTINGS = ("left out", "cross-validated")
KEY = ["setting", "model", "dataset", "embedder"]
COLUMNS = {*KEY, "triples", "question", "text", "passage", "title", "rank", "linked"}
METRICS = ("recall@5", PRIMARY)


def card_parts(provenance: Mapping[str, Any]) -> dict[str, str]:
    """The text of each part by its name in the page: the sets, and a table for each setting."""
    try:
        sets = [
            (name, str(one["questions"]), one["role"], f"`{one['digest'][:16]}`")
            for name, one in provenance["learned_from"].items()
        ]
        found = {"learned from": as_markdown(("data set", "questions", "role", "digest"), sets)}
        for setting, words in CARD_SETTINGS.items():
            figures = [one for one in provenance["figures"] if one["setting"] == setting]
            table = (
                f"{words.format(folds=provenance['folds'])}\n\n{_table(figures)}"
                if figures
                else NOT_LEARNED.format(setting)
            )
            found[setting] = table
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"the weights do not say what they were learned from and how they did ({type(error).__name__}: {error}): "
            "learn them again with `hopbench train hoprank`"
        ) from error
    return found


def _table(figures: Sequence[Mapping[str, Any]]) -> str:
    keys = dict.fromkeys((one["dataset"], one["triples"], one["embedder"]) for one in figures)
    lines = []
    for key in sorted(keys):
        of_key = {one["model"]: one for one in figures if (one["dataset"], one["triples"], one["embedder"]) == key}
        first = next(iter(of_key.values()))
        name = key[0] + (" with triples" if key[1] else "")
        cells = [cell for model in ("linear", "trees") for cell in _cells(of_key.get(model))]
        lines.append((name, key[2].partition(":")[0], str(first["questions"]), *cells))
    head = ("data set", "embedder", "questions", "linear: recall@5", "all_gold@10", "trees: recall@5", "all_gold@10")
    return as_markdown(head, lines)


def _cells(figure: Mapping[str, Any] | None) -> tuple[str, str]:
    if figure is None:
        return "", ""
    return (
        _with_interval(figure["recall_at_5"], figure["recall_interval"]),
        _with_interval(figure["all_gold_at_10"], figure["all_gold_interval"]),
    )


def _with_interval(value: float, interval: Sequence[float]) -> str:
    return f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"


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
    """Rewrite the page that is named: its model card, or what hoprank's parts give and what it misses."""
    parser = argparse.ArgumentParser(description="Write the tables of hoprank's page.")
    tables = parser.add_subparsers(dest="tables", required=True)
    card = tables.add_parser("card", help="the model card, from the weights")
    card.add_argument("page", type=Path)
    card.add_argument("--weights", default="", help="another file of weights than the shipped one")
    parts = tables.add_parser("held-out", help="what the parts give, and what hoprank misses")
    parts.add_argument("page", type=Path)
    parts.add_argument("whole", type=Path, help="the file that `--held-out` wrote for the whole")
    parts.add_argument("without", nargs="*", help="WHAT=FILE: the same with a part left out")
    given = parser.parse_args()
    if given.tables == "card":
        fill(given.page, card_parts(load(given.weights).provenance))
    else:
        fill(given.page, _held_out_parts(given.whole, given.without))


def _held_out_parts(file: Path, without: Sequence[str]) -> dict[str, str]:
    whole, others = _read(file), {}
    for one in without:
        what, equals, table = one.rpartition("=")
        if not equals or not what.strip() or what in others:
            raise InputError(f"{one}: write WHAT=FILE, each WHAT once")
        others[what] = _read(Path(table))
    return {"ablations": ablations(whole, others), "misses": misses(whole), "examples of misses": examples(whole)}


if __name__ == "__main__":
    run_command(main)
