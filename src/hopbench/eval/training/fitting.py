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
    return np.asarray(_minimised(ranking_loss(lists.features / spread, lists, l2), lists.features.shape[1]) / spread)


Loss = Callable[[Floats], tuple[float, Floats]]


def ranking_loss(features: Floats, lists: RankedLists, l2: float) -> Loss:
    """Return the loss of weights (f,) and its gradient."""
    of_scores = score_loss(lists)
    given = 0.0 if lists.given is None else lists.given

    def loss(weights: Floats) -> tuple[float, Floats]:
        value, slope, _ = of_scores(features @ weights + given)
        return value + l2 * float(weights @ weights), slope @ features + 2.0 * l2 * weights

    return loss


def score_loss(lists: RankedLists) -> Callable[[Floats], tuple[float, Floats, Floats]]:
    """Return the loss of scores z (c,), with its slope (c,) and the diagonal of its curvature (c,).

    Per question it is the mean over its gold passages of softplus(logsumexp of the others − z).
    """
    start, gold, questions = lists.start, lists.gold, len(lists.start)
    owner = np.repeat(np.arange(questions), np.diff(np.append(start, len(gold))))
    golds = np.bincount(owner[gold], minlength=questions)
    counts = (golds > 0) & (golds < np.bincount(owner, minlength=questions))
    rows = np.flatnonzero(gold & counts[owner])
    whose = owner[rows]
    share = (np.where(counts, lists.weight, 0.0) / lists.weight.sum() / np.maximum(golds, 1))[whose]

    def loss(z: Floats) -> tuple[float, Floats, Floats]:
        others = np.where(gold, -np.inf, z)
        top = np.maximum.reduceat(others, start)
        top = np.where(np.isfinite(top), top, 0.0)
        mass = np.exp(others - top[owner])
        total = np.add.reduceat(mass, start)
        total = np.where(total > 0, total, 1.0)
        lead = (top + np.log(total))[whose] - z[rows]
        value = float((share * np.logaddexp(0.0, lead)).sum())
        likely = 1.0 / (1.0 + np.exp(-lead))
        pull, bend = share * likely, share * likely * (1.0 - likely)
        chance = mass / total[owner]  # of a passage that is not gold, among those
        pulls, bends = (np.bincount(whose, each, questions)[owner] for each in (pull, bend))
        slope, curvature = chance * pulls, chance * (1.0 - chance) * pulls + chance * chance * bends
        slope[rows] -= pull
        curvature[rows] += bend
        return value, slope, curvature

    return loss


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


def _minimised(loss: Loss, size: int) -> Floats:
    """Minimise a convex loss with its gradient, from zero."""
    from scipy.optimize import minimize

    result: Any = minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": MAX_STEPS})
    return np.asarray(result.x)


MIN_CURVATURE = 1e-6
# LightGBM imports these where they are installed: all but 0.3 of its 1.5 s.
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
    loss, scale = score_loss(lists), float(len(lists.start))

    def objective(scores: Floats, _: Any) -> tuple[Floats, Floats]:
        """The loss in LightGBM's form, scaled so that a question counts 1 on average."""
        _, slope, curvature = loss(scores)
        return slope * scale, np.maximum(curvature * scale, MIN_CURVATURE)

    grown = lightgbm.train({**how["settings"], "objective": objective}, data, how["rounds"])
    return [tree["tree_structure"] for tree in grown.dump_model()["tree_info"]]


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    trees = _grow(io.BytesIO(sys.stdin.buffer.read()))  # NumPy reads past the buffer of a real file
    sys.stdout.write("\n" + json.dumps(trees))
