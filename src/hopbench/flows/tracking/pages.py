"""Addresses of MLflow's pages (version 3): an experiment's runs by the primary metric, and a comparison of runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote

from hopbench.flows.tracking.payload import mlflow_name

VIEW_TAG = "mlflow.sharedViewState."
"""An experiment's tag with this prefix is a saved view of its runs page; the rest of its name is the view's id."""
MAX_COMPARED = 100
"""The page asks for each run by itself, so its time grows with their number."""


def view_id(metric: str) -> str:
    """The id of HopBench's view by `metric`."""
    return f"hopbench-{mlflow_name(metric)}"


def is_server(uri: str) -> bool:
    """Whether a tracking URI is a server's, whose pages a browser can open."""
    return uri.startswith(("http://", "https://"))


def runs_page(server: str, experiment: str, metric: str | None) -> str:
    """The runs of an experiment by `metric`, best first; without one, as MLflow shows them."""
    view = f"&viewStateShareKey={view_id(metric)}" if metric else ""
    # Without its workflow type, MLflow 3 opens the page of language models' traces.
    return f"{_root(server)}#/experiments/{experiment}/runs?workflowType=machine_learning{view}"


def comparison_page(server: str, experiment: str, run_ids: Sequence[str]) -> str:
    """MLflow's comparison of the runs with these ids, at most the first hundred."""
    asked = [json.dumps(list(ids), separators=(",", ":")) for ids in (run_ids[:MAX_COMPARED], [experiment])]
    runs, experiments = (quote(text, safe="[],") for text in asked)
    return f"{_root(server)}#/compare-runs?runs={runs}&experiments={experiments}"


def _root(server: str) -> str:
    """The page itself where no server is named: for links on MLflow's own pages."""
    return f"{server.rstrip('/')}/" if server else ""
