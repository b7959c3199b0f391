"""What the best paths into candidates say of them."""

from __future__ import annotations

import numpy as np

from hopbench.retrieval.strategies.hoprank.edges import KINDS, TRIPLE
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers
from hopbench.retrieval.support.arithmetic import ln, log

SURE = 0.999999
SMALL = 1e-3
LOG_SMALL = ln(SMALL)


def path_features(
    kind: Numbers, anchor: Numbers, target: Numbers, value: Floats, size: int, *, triples: bool = False
) -> Floats:
    """Per candidate the best path of each kind, of any kind, and noisy-or over anchors; then ln(x + .001) of each.

    Edges (e,) are of a `kind`, from one of a question's anchors, counted from 0, to one of `size` candidates. Noisy-or
    is 1 − Π(1 − v), v the best path from each anchor. Where the graph has triples, the best path x over one and
    ln(1 + x/.001) follow; it is no part of the others.
    """
    if triples:
        plain, stated = np.flatnonzero(kind != TRIPLE), np.flatnonzero(kind == TRIPLE)
        best = best_in_cells(target[stated], np.zeros(len(stated), np.int64), value[stated], (size, 1))
        others = path_features(kind[plain], anchor[plain], target[plain], value[plain], size)
        return np.concatenate([others, best, log(1.0 + best / SMALL)], axis=1)
    by_kind = best_in_cells(target, kind, value, (size, TRIPLE))
    best = best_in_cells(target, anchor, value, (size, int(anchor.max(initial=-1)) + 1))
    several = 1.0 - np.multiply.reduce(1.0 - np.minimum(best, SURE), axis=1)
    values = np.column_stack([by_kind, by_kind.max(axis=1), several])
    logs = np.full(values.shape, LOG_SMALL)
    there = np.nonzero(values)  # few: most chunks are reached by edges of one kind, if at all
    logs[there] = log(values[there] + SMALL)
    return np.concatenate([values, logs], axis=1)


def best_in_cells(row: Numbers, column: Numbers, value: Floats, shape: tuple[int, int]) -> Floats:
    """The largest value in each cell, 0 without any; by cell numbers, which numpy takes ten times as fast as pairs."""
    cells = np.zeros(shape[0] * shape[1])
    np.maximum.at(cells, row * shape[1] + column, value)
    return cells.reshape(shape)


OVER_TRIPLES = ("path_triple", "log_path_triple")
PATH_FEATURES = (
    *(prefix + name for prefix in ("path_", "log_path_") for name in (*KINDS[:TRIPLE], "any", "several")),
    *OVER_TRIPLES,
)
