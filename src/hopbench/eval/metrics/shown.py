"""Which metrics are shown, where and in which order: the one table that every view reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from hopbench.eval.metrics.registry import catalogue

View = Literal["terminal", "dropped", "report", "breakdown", "intervals", "flow", "notebook", "sweep", "mlflow"]
"""A place where metrics are shown.

`terminal` is the leaderboard that `hopbench run` prints, `dropped` the order in which its columns are left out of a
narrow one; `report` the report's leaderboard, `breakdown` its means by type and gold; `intervals` are the metrics with
confidence intervals; `flow` is the leaderboard on a flow run's page, `notebook` that of a `Run`, `sweep` the table of a
`Sweep`, `mlflow` the columns of an experiment's page.
"""

_TABLE = """
metric           terminal  dropped  report  breakdown  intervals  flow  notebook  sweep  mlflow
all_gold@2              .        .       3          1          .     .         .      .       .
all_gold@5              1        4       2          2          3     .         .      .       .
all_gold@10             .        .       1          3          1     .         .      1       .
all_gold@20             .        .       .          4          .     .         .      .       .
recall@2                .        .       .          .          .     .         .      .       .
recall@5                2        3       4          5          4     1         1      2       1
recall@10               .        .       .          6          .     .         .      .       .
recall@20               .        .       .          .          .     .         .      .       .
nDCG@10                 3        1       5          .          .     2         2      3       2
MRR                     .        .       6          .          .     .         3      4       .
has_answer              5        2       7          8          5     .         .      .       .
has_answer@5            4        5       .          .          .     .         .      .       .
has_answer@10           .        .       .          7          2     3         4      5       .
has_answer@300t         .        .       8          .          .     .         .      .       .
has_answer@700t         .        .       9          .          .     .         .      .       .
title_precision         .        .       .          .          .     .         .      .       .
title_recall            .        .       .          .          .     .         .      .       .
title_f1                .        .       .          .          .     .         .      .       .
answer_em               .        .       .          .          6     .         .      .       .
answer_f1               .        .       .          .          7     .         .      .       .
"""
"""Metric → its position in each view, a dot where it is not shown.

A benchmark's primary metric stands before all others, wherever it is. RAGAS's metrics and the graph's reach follow the
table's by their groups. A metric without a row (of a plug-in, a requested cut-off, a new one) comes after the table's.
"""


SHOWN: Mapping[str, Mapping[View, int]] = {
    name: {view: int(cell) for view, cell in zip(get_args(View), cells, strict=True) if cell != "."}
    for name, *cells in map(str.split, _TABLE.strip().splitlines()[1:])
}
"""Metric → view → position, counted from 1."""


def shown_in(view: View) -> tuple[str, ...]:
    """Return the metrics of a view in order, the primary metric and those without a row left aside."""
    own = {name: positions[view] for name, positions in SHOWN.items() if view in positions}
    return tuple(sorted(own, key=own.__getitem__))


def shown_metrics(view: View, measured: Iterable[str], primary: str | None = None) -> list[str]:
    """Return the measured metrics that a view shows: the primary one, the table's in order, those without a row.

    The latter are metrics of plug-ins, new ones and requested cut-offs; built-in ones of other groups than `ranking`
    are shown by their group.
    """
    names = dict.fromkeys(measured)
    known, built_in = catalogue(), catalogue().built_in
    wanted = dict.fromkeys((*([primary] if primary else []), *shown_in(view)))
    for metric in (known.find(name) for name in names if name not in SHOWN):
        if metric is not None and (metric.name not in built_in or metric.group == "ranking"):
            wanted[metric.name] = None
    return [name for name in wanted if name in names]
