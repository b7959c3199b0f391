"""The flags that spread trials over the workers of a task runner."""

from __future__ import annotations

from typing import Annotated

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.panels import EXECUTION, option

Runner = Annotated[
    str,
    option(
        EXECUTION,
        help="Where trials run: threads, processes, dask, dask:HOST:PORT (default: one after another).",
        complete=complete.one_of("threads", "processes", "dask"),
    ),
]
Workers = Annotated[int | None, option(EXECUTION, min=1, help="Workers of --runner (default: the processors).")]
Batch = Annotated[
    int | None, option(EXECUTION, min=1, help="Questions in a batch (default: what memory allows, ≤ 1000).")
]
