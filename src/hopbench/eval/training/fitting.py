"""Fit weights by L-BFGS and trees by LightGBM, both under hoprank's losses.

Trees are grown for a process PARENT in one of its own: `python -m hopbench.eval.training.fitting PARENT` reads `packed`
from standard input and writes the trees as JSON to standard output. LightGBM loads an OpenMP runtime, which finds no
thread-local storage where other libraries took it before (and takes it from those that come later).
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.lib.format import read_array, write_array
from numpy.typing import NDArray

from hopbench.retrieval.support.processes import end_with

Floats = NDArray[np.float64]
L2 = 0.004
MAX_STEPS = 100
MIN_SPREAD = 1e-4  # added to each feature's standard deviation: a constant feature learns nothing


@dataclass(frozen=True, eq=False)
class RankedLists:
    """Candidates of several questions, one list after another: `features` (c, f), `gold` (c,), `start` (q,) offsets.

    `weight` (q,) is what each question counts; one without gold, or with nothing but gold, has no loss.
    `given` (c,) is a fixed part of the score.
    """

    features: Floats
    gold: NDArray[np.bool_]
    start: NDArray[np.int64]
    weight: Floats
    given: Floats | None = None


def fit_ranking(lists: RankedLists, l2: float = L2) -> Floats:
    """Fit weights (f,) that put each gold passage above all others of its question.

    The loss of a question is the mean over its gold passages of softplus(logsumexp of the others' z − z of the gold),
    with z = features @ weights; l2 · |weights|² is added, measured on features of standard deviation 1.
    """
    spread = lists.features.std(axis=0) + MIN_SPREAD
    features = lists.features / spread
    loss = _ranking_loss(features, lists)
    return np.asarray(_minimised(lambda w: _penalised(loss, w, l2), features.shape[1]) / spread)


def _ranking_loss(features: Floats, lists: RankedLists) -> Callable[[Floats], tuple[float, Floats]]:
    of_scores = ScoreLoss(lists)
    given = np.zeros(len(features)) if lists.given is None else lists.given

    def loss(weights: Floats) -> tuple[float, Floats]:
        value, slope, _ = of_scores(features @ weights + given)
        return value, slope @ features

    return loss


class ScoreLoss:
    """The loss of scores: per question the mean over its gold passages of softplus(logsumexp of the others − z)."""

    def __init__(self, lists: RankedLists) -> None:
        self._start, self._gold = lists.start, lists.gold
        self._owner = np.repeat(np.arange(len(lists.start)), np.diff(np.append(lists.start, len(lists.gold))))
        golds = np.bincount(self._owner[lists.gold], minlength=len(lists.start))
        counts = (golds > 0) & (golds < np.bincount(self._owner, minlength=len(lists.start)))
        self._rows = np.flatnonzero(lists.gold & counts[self._owner])
        self._whose = self._owner[self._rows]
        share = np.where(counts, lists.weight, 0.0) / lists.weight.sum() / np.maximum(golds, 1)
        self._share = share[self._whose]

    def __call__(self, z: Floats) -> tuple[float, Floats, Floats]:
        """Compute the loss of scores z (c,), its slope (c,) and the diagonal of its curvature (c,)."""
        others = np.where(self._gold, -np.inf, z)
        top = np.maximum.reduceat(others, self._start)
        top = np.where(np.isfinite(top), top, 0.0)
        mass = np.exp(others - top[self._owner])
        total = np.add.reduceat(mass, self._start)
        total = np.where(total > 0, total, 1.0)
        lead = (top + np.log(total))[self._whose] - z[self._rows]
        value = float((self._share * np.logaddexp(0.0, lead)).sum())
        likely = 1.0 / (1.0 + np.exp(-lead))
        pull, bend = self._share * likely, self._share * likely * (1.0 - likely)
        chance = mass / total[self._owner]  # of a passage that is not gold, among those
        pulls, bends = (np.bincount(self._whose, each, len(total))[self._owner] for each in (pull, bend))
        slope, curvature = chance * pulls, chance * (1.0 - chance) * pulls + chance * chance * bends
        slope[self._rows] -= pull
        curvature[self._rows] += bend
        return value, slope, curvature


def fit_logistic(features: Floats, labels: NDArray[np.bool_], weight: Floats, l2: float = L2) -> tuple[Floats, float]:
    """Fit P(label) = σ(features @ weights + bias) by weighted cross-entropy + l2 · |weights|²; weights are (f,)."""
    mean, spread = features.mean(axis=0), features.std(axis=0) + MIN_SPREAD
    scaled = (features - mean) / spread
    share = weight / weight.sum()

    def loss(parameters: Floats) -> tuple[float, Floats]:
        z = scaled @ parameters[:-1] + parameters[-1]
        value = float((share * (np.logaddexp(0.0, z) - labels * z)).sum())
        slope = share * (1.0 / (1.0 + np.exp(-z)) - labels)
        penalty, pull = l2 * float(parameters[:-1] @ parameters[:-1]), 2.0 * l2 * parameters[:-1]
        return value + penalty, np.append(slope @ scaled + pull, slope.sum())

    solution = _minimised(loss, features.shape[1] + 1)
    weights = solution[:-1] / spread
    return weights, float(solution[-1] - weights @ mean)


def _penalised(loss: Callable[[Floats], tuple[float, Floats]], weights: Floats, l2: float) -> tuple[float, Floats]:
    value, slope = loss(weights)
    return value + l2 * float(weights @ weights), slope + 2.0 * l2 * weights


def _minimised(loss: Callable[[Floats], tuple[float, Floats]], size: int) -> Floats:
    """Minimise a convex loss with its gradient, from zero."""
    from scipy.optimize import minimize

    result: Any = minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": MAX_STEPS})
    return np.asarray(result.x)


MIN_CURVATURE = 1e-6
# LightGBM imports these where they are installed: all but .3 of its 1.5 s.
NOT_NEEDED = ("sklearn", "pandas", "pyarrow", "matplotlib", "graphviz", "dask", "joblib")


def packed(lists: RankedLists, names: tuple[str, ...], settings: Mapping[str, Any], rounds: int) -> bytes:
    """Serialise the process's input: a line of JSON, then the arrays of `lists`."""
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
    """Return the loss in LightGBM's form, scaled so that a question counts 1 on average."""
    loss, scale = ScoreLoss(lists), float(len(lists.start))

    def slopes(scores: Floats, _: Any) -> tuple[Floats, Floats]:
        _, slope, curvature = loss(scores)
        return slope * scale, np.maximum(curvature * scale, MIN_CURVATURE)

    return slopes


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    trees = _grow(io.BytesIO(sys.stdin.buffer.read()))  # NumPy reads past the buffer of a real file
    sys.stdout.write("\n" + json.dumps(trees))
