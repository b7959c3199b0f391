"""Trees of LightGBM with its own predictions and contributions, in a process of its own (see eval.training.grow).

Its argument is JSON: [seed, leaves, rounds] of each model.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import lightgbm
import numpy as np


def grown(seed: int, leaves: int, rounds: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(400, 4)).round(3)
    labels = rows[:, 0] * rows[:, 1] + np.sin(3 * rows[:, 2]) + rows[:, 3]
    given = {"num_leaves": leaves, "num_threads": 1, "verbosity": -1, "min_data_in_leaf": 5, "deterministic": True}
    settings = {**given, "objective": "regression", "boost_from_average": False}
    booster = lightgbm.train(settings, lightgbm.Dataset(rows, labels), rounds)
    return {
        "trees": [tree["tree_structure"] for tree in booster.dump_model()["tree_info"]],
        "rows": rows.tolist(),
        "values": np.asarray(booster.predict(rows)).tolist(),
        "contributions": np.asarray(booster.predict(rows, pred_contrib=True)).tolist(),
    }


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps([grown(*kind) for kind in json.loads(sys.argv[1])]))
