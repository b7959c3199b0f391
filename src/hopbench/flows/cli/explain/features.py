"""A learned score taken apart: what each feature contributes, and the sentences that a path rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hopbench.eval.explain import RankedPassage, quote
from hopbench.flows.cli.printing.output import add_row, table
from hopbench.retrieval.graph.schema import MENTIONED_IN
from hopbench.retrieval.types import Step

if TYPE_CHECKING:
    from hopbench.flows.cli.printing.grid import Grid
    from hopbench.flows.explain.target import Target

FIRST = 3  # hits shown beside the gold passages
LARGEST = 25  # features of a score that has more


def feature_table(places: Sequence[RankedPassage], gold: Sequence[str], weights: Mapping[str, float]) -> Grid:
    """A row per feature: its weight, and for the first hits and every gold passage `value → value × weight`.

    Without weights, as where trees decide, the contributions alone, the largest first.
    """
    shown = [place for place in places if place.candidate and (place.rank <= FIRST or place.passage in gold)]
    titles = [f"rank {place.rank}{' gold' if place.passage in gold else ''}" for place in shown]
    if not weights:
        return _contributions(shown, titles)
    rows = table("feature", "weight", *titles, right=("weight", *titles))
    for name, weight in weights.items():
        add_row(rows, name, f"{weight:.3g}", *(_share(place, name, weight) for place in shown))
    add_row(rows, "score", "", *(f"{place.hit.score:.3f}" for place in shown))
    return rows


def _contributions(shown: Sequence[RankedPassage], titles: Sequence[str]) -> Grid:
    """A row for each of the features that contribute most to any of these scores, and one for all others."""
    all_shares = [dict(place.hit.components) for place in shown]
    names = list(dict.fromkeys(name for shares in all_shares for name in shares))
    largest = sorted(names, key=lambda name: -max(abs(shares.get(name, 0.0)) for shares in all_shares))[:LARGEST]
    others = [name for name in names if name not in largest]
    rows = table("feature", *titles, right=tuple(titles))
    for name in largest:
        add_row(rows, name, *(f"{shares.get(name, 0.0) + 0.0:+.2f}" for shares in all_shares))
    if others:
        sums = (sum(shares.get(name, 0.0) for name in others) for shares in all_shares)
        add_row(rows, f"{len(others)} others", *(f"{value + 0.0:+.2f}" for value in sums))
    add_row(rows, "score", *(f"{place.hit.score:.3f}" for place in shown))
    return rows


def _share(place: RankedPassage, name: str, weight: float) -> str:
    share = place.hit.components.get(name, 0.0)
    value = share / weight if weight else 0.0
    return f"{value + 0.0:.3g} → {share + 0.0:+.2f}"  # no minus before a zero


def quoted(path: Sequence[Step], target: Target) -> list[str]:
    """`Title: “… the [mention] …”` for each mention on a path, where it is spelled out."""
    lines = []
    for step in path:
        ends = step.source, step.target
        passage, entity = ends if step.source in target.index.row_of else ends[::-1]
        row = target.index.row_of.get(passage)
        if step.edge != MENTIONED_IN or row is None:
            continue
        chunk = target.index.chunks[row]
        found = quote(chunk.title, chunk.text, target.names(entity))
        if found:
            lines.append(f"{target.names(passage)} “{found.before}[{found.mention}]{found.after}”")
    return list(dict.fromkeys(lines))
