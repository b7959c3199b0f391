"""Grows trees with LightGBM for a process PARENT, in one of its own: `python -m hopbench.eval.training.grow PARENT`.

LightGBM loads an OpenMP runtime, which finds no thread-local storage where other libraries took it before (and takes it
from those that come later). Reads `packed` from standard input and writes the trees as JSON to standard output.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np
from numpy.lib.format import read_array, write_array

from hopbench.eval.training.losses import Floats, RankedLists, ScoreLoss
from hopbench.retrieval.support.forked import end_with

LEAST_CURVATURE = 1e-6
# LightGBM imports these where they are installed: all but .3 of its 1.5 s.
NOT_NEEDED = ("sklearn", "pandas", "pyarrow", "matplotlib", "graphviz", "dask", "joblib")


def packed(lists: RankedLists, names: tuple[str, ...], settings: Mapping[str, Any], rounds: int) -> bytes:
    """What the process reads: a line of JSON, then the arrays of `lists`."""
    stream = io.BytesIO()
    stream.write(json.dumps({"names": names, "settings": settings, "rounds": rounds}).encode() + b"\n")
    given = np.zeros(len(lists.gold)) if lists.given is None else lists.given
    for array in (lists.features, lists.gold, lists.start, lists.weight, given):
        write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def _grow(stream: IO[bytes]) -> list[Mapping[str, Any]]:
    sys.modules.update(dict.fromkeys(NOT_NEEDED))  # type: ignore[arg-type] # as if they were absent
    import lightgbm

    how = json.loads(stream.readline())
    lists = RankedLists(*(read_array(stream, allow_pickle=False) for _ in range(5)))
    data = lightgbm.Dataset(
        lists.features, lists.gold.astype(np.float64), init_score=lists.given, feature_name=how["names"]
    )
    grown = lightgbm.train({**how["settings"], "objective": _objective(lists)}, data, how["rounds"])
    return [tree["tree_structure"] for tree in grown.dump_model()["tree_info"]]


def _objective(lists: RankedLists) -> Callable[[Floats, Any], tuple[Floats, Floats]]:
    """The loss as LightGBM asks for it, scaled so that a question counts 1 on average."""
    loss, scale = ScoreLoss(lists), float(len(lists.start))

    def slopes(scores: Floats, _: Any) -> tuple[Floats, Floats]:
        _, slope, curvature = loss(scores)
        return slope * scale, np.maximum(curvature * scale, LEAST_CURVATURE)

    return slopes


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    trees = _grow(io.BytesIO(sys.stdin.buffer.read()))  # NumPy reads past the buffer of a real file
    sys.stdout.write("\n" + json.dumps(trees))
