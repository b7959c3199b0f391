"""The model card of docs/hoprank.md, from the provenance in the weights file: what it was learned from, what it does.

python -m tools.docs.model_card docs/hoprank.md
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hopbench.retrieval.strategies.hoprank.scoring import load
from hopbench.retrieval.support.errors import InputError
from tools.docs.figures_against import as_markdown
from tools.docs.places import fill, run

WORDS = "recall@5 and all_gold@10 with 95% intervals"
SETTINGS = {
    "left out": f"Nothing was learned from the set, nor from another one of its family; {WORDS}:",
    "cross-validated": f"Cross-validated in {{folds}} parts, each by what was learned from the others; {WORDS}:",
    "cross-validated apart": (
        f"Cross-validated, and nothing learned from a question that shares a gold passage with those tested; {WORDS}:"
    ),
}


def parts(provenance: Mapping[str, Any]) -> dict[str, str]:
    """The text of each part by its name in the page: the sets, and a table for each setting."""
    try:
        sets = [
            (name, str(one["questions"]), one["role"], f"`{one['digest'][:16]}`")
            for name, one in provenance["learned_from"].items()
        ]
        found = {"learned from": as_markdown(("data set", "questions", "role", "digest"), sets)}
        for setting, words in SETTINGS.items():
            figures = [one for one in provenance["figures"] if one["setting"] == setting]
            table = f"{words.format(folds=provenance['folds'])}\n\n{_table(figures)}" if figures else "Not measured.\n"
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


def main() -> None:
    """Rewrite the card of the page that is named."""
    parser = argparse.ArgumentParser(description="Write hoprank's model card.")
    parser.add_argument("page", type=Path)
    parser.add_argument("--weights", default="", help="another file of weights than the shipped one")
    given = parser.parse_args()
    fill(given.page, parts(load(given.weights).provenance))


if __name__ == "__main__":
    run(main)
