"""The graph's own ceiling as metrics; `hopbench.eval.metrics.reach` gives the values, which are joined to the rows."""

from __future__ import annotations

from hopbench.eval.metrics.base import Metric

MAX_HOPS = 3
CITATION = "HopBench docs, metrics: reach@h"

METRICS = (
    *(
        Metric(
            f"reach@{h}",
            f"every gold passage lies within {h} expansion steps of the strategy's seeds",
            CITATION,
            ("gold", "graph"),
            group="graph",
        )
        for h in range(MAX_HOPS + 1)
    ),
    *(
        Metric(
            f"reach_share@{h}",
            f"share of the corpus within {h} expansion steps of the strategy's seeds: what reach@{h} costs",
            CITATION,
            ("graph",),
            higher_is_better=False,
            group="graph",
        )
        for h in range(MAX_HOPS + 1)
    ),
)
