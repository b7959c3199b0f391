"""What runs HopBench. The five flows are Prefect flows, to call, compose and deploy (docs/flows.md).

>>> from hopbench.flows import nightly                                                             # doctest: +SKIP
>>> nightly(dataset="hopworld", strategies=["bm25", "hoprank"])                                    # doctest: +SKIP

Each is loaded, and prefect with it, when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopbench.flows.api.prefect_flows import build_graph as build_graph
    from hopbench.flows.api.prefect_flows import evaluate as evaluate
    from hopbench.flows.api.prefect_flows import nightly as nightly
    from hopbench.flows.api.prefect_flows import sweep as sweep
    from hopbench.flows.api.prefect_flows import train as train

FLOWS = ("build_graph", "evaluate", "nightly", "sweep", "train")


def __getattr__(name: str) -> Any:
    """A flow, loaded now."""
    if name not in FLOWS:
        raise AttributeError(f"module 'hopbench.flows' has no attribute {name!r}")
    return getattr(import_module("hopbench.flows.api.prefect_flows"), name)


def __dir__() -> list[str]:
    """The flows, beside what is loaded."""
    return sorted({*globals(), *FLOWS})
