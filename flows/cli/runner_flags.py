"""The flags that spread trials over the workers of a task runner."""

from __future__ import annotations

from typing import Annotated

import typer

Runner = Annotated[
    str, typer.Option(help="Where trials run: threads, processes, dask, dask:HOST:PORT (default: one after another).")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Workers of --runner (default: the processors).")]
Batch = Annotated[int | None, typer.Option(min=1, help="Questions in a batch (default: what memory allows, ≤ 1000).")]
