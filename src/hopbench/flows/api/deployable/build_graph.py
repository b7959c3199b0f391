"""The flow `build_graph`: what `hopbench graph build` does, from Prefect's pages or from another flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hopbench.flows.api.deployable.definition import deployable
from hopbench.flows.graph.commands import Built, build
from hopbench.flows.orchestration.artifacts import artifact_key, leave, table
from hopbench.flows.orchestration.progress import NoProgress
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.parameters import own, parameters_of
from hopbench.flows.settings.setting import declared

FORCE = own("force", bool, False, "Build it again even if it is there.")
REFERENCE = own("reference", Path | None, None, "Triples (JSONL) to compare the graph with: precision and recall.")
PARAMETERS = [*parameters_of(GraphOptions, dataset="hopworld"), FORCE, REFERENCE]


@deployable("build_graph", PARAMETERS, "build_graph {dataset}")
def build_graph(**values: Any) -> Built:
    """Build the graph of a benchmark; an interrupted build resumes where it stopped. Returns its record."""
    options = GraphOptions(**{one.name: values[one.name] for one in declared(GraphOptions)})
    built = build(options, Home.resolve(), NoProgress(), force=values["force"], reference=values["reference"])
    name = Path(options.dataset).name
    counts = [
        {"what": kind, "count": number} for part in ("nodes", "edges") for kind, number in built.record[part].items()
    ]
    warnings = "\n".join(f"- {warning}" for warning in built.warnings)
    content = f"# Graph of {name}\n\nFingerprint `{built.record['fingerprint']}`\n\n{table(counts)}\n\n{warnings}\n"
    leave(content, artifact_key("graph", name), f"The graph of {name}")
    return built
