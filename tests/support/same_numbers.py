"""What must be the same on every processor, printed as JSON: run in a process of its own for each set of kernels.

    python -m tests.support.same_numbers DATASET QUESTIONS BATCH

builds the graph of a benchmark in a fresh home, ranks its first questions with every label, and prints build key,
fingerprint, and per label the trial id and a digest of all its rankings: passages, scores to 9 decimals, their
components and paths. BATCH is how many questions share a batch. "kernels" is what does differ: a test that found no
difference there would not have changed the kernels.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

LABELS = "all,all:tuned"
KERNELS = "kernels"


def numbers(dataset: str, questions: int, batch: int, home: Path) -> dict[str, Any]:
    """Everything about one benchmark that a processor's kernels must not decide."""
    from hopbench.eval.runs.evaluate import Plan
    from hopbench.eval.trials.key import ID_LENGTH
    from hopbench.eval.trials.trial import batches, run_trial
    from hopbench.flows.graph.build import built_graph, open_index
    from hopbench.flows.orchestration.steps import plain_steps
    from hopbench.flows.settings.graph_options import GraphOptions
    from hopbench.flows.settings.home import Home
    from hopbench.retrieval.strategies.registry import resolve

    options, place = GraphOptions(dataset=dataset), Home(home).prepare()
    benchmark = options.benchmark()
    benchmark = replace(benchmark, questions=benchmark.questions[:questions])
    graph = options.graph_plan(benchmark, place)
    index = open_index(options, graph, place)
    record, _ = built_graph(graph, index, place, plain_steps)
    plan = Plan(benchmark, index, record, resolve(LABELS, ()))
    parts = batches(index, [one.question for one in benchmark.questions], batch)
    found: dict[str, Any] = {
        "build_key": record["build_key"],
        "fingerprint": record["fingerprint"],
        "vectors": _digest(index.vectors.tobytes()),
        KERNELS: _kernels(),
        "cosines": _cosines(),
    }
    for label, strategy in plan.strategies.items():
        trial = run_trial(label, strategy, parts, plan.budget)
        found[label] = {"trial": plan.key_of(label)[:ID_LENGTH], **_ranked(trial)}
    return found


def _cosines() -> dict[str, Any]:
    """Hundreds of thousands of cosines, of which a few lie within a float32's last bit of the sixth decimal's half."""
    import numpy as np

    from hopbench.retrieval.graph.construction.similarity import cell_pairs, exact_pairs
    from hopbench.retrieval.search.cells import CellSearch, Queries
    from hopbench.retrieval.support.arithmetic import on_grid

    drawn = np.random.default_rng(3).standard_normal((4000, 256)) + 1.0
    drawn /= np.sqrt((drawn * drawn).cumsum(axis=1)[:, -1:])
    exact = exact_pairs(drawn.astype(np.float32), top_k=50, floor=0.5)
    near, effort = cell_pairs(drawn.astype(np.float32), top_k=10, floor=0.5)
    by_cells = CellSearch.fit(on_grid(drawn), Queries(on_grid(drawn[::5])))
    top = by_cells.top(Queries(on_grid(drawn[::40])), 20)
    found = [part for one in top for part in (one.rows, one.scores)]
    digests = [_digest(part.tobytes()) for part in (*exact, *near, by_cells.centroids, *found)]
    return {"pairs": len(exact.first), "effort": [float(value) for value in effort.values()], "digests": digests}


def _kernels() -> list[str]:
    """What differs with the kernels: digests of a float32 product, NumPy's logarithms, the C library's."""
    import numpy as np

    drawn = np.random.default_rng(0).uniform(1.0, 100.0, (300, 300))
    by_library = [math.log(value) for value in drawn.ravel().tolist()]
    parts = drawn.astype(np.float32) @ drawn.T.astype(np.float32), np.log(drawn), np.array(by_library)
    return [_digest(part.tobytes()) for part in parts]


def _ranked(trial: Any) -> dict[str, Any]:
    """Rankings and scores as they are stored, and beside them what explains them; the first question's in full."""
    rankings = {
        name: [one.ranked_ids, [f"{score:.9f}" for score in one.scores]] for name, one in trial.rankings.items()
    }
    hits = {
        name: [
            [hit.chunk_id, hit.origin, _rounded(dict(hit.components)), _rounded(list(map(asdict, hit.path)))]
            for hit in of_one
        ]
        for name, of_one in trial.hits.items()
    }
    return {"rankings": _digest(rankings), "evidence": _digest(hits), "first": next(iter(rankings.values()))[1][:5]}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.9f}"
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value


def _digest(value: Any) -> str:
    content = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()[:16]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(json.dumps(numbers(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(folder))))
