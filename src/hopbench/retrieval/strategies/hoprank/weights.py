"""hoprank's learned weights, their file (one made for other features is refused), and the passes that apply them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from hopbench.retrieval.strategies.hoprank.candidates import BASE_FEATURES, Candidates
from hopbench.retrieval.strategies.hoprank.edges import EDGE_FEATURES, KINDS, TRIPLE_FEATURES
from hopbench.retrieval.strategies.hoprank.paths import (
    PATH_FEATURES,
    SCORE_FEATURES,
    EdgeTable,
    Paths,
    Ranked,
    follow,
    pool_ranking,
    with_paths,
)
from hopbench.retrieval.strategies.hoprank.tree_features import TREE_FEATURES
from hopbench.retrieval.strategies.hoprank.trees import MAX_NUMBER, Trees, check_trees, read_trees, tree_lines
from hopbench.retrieval.strategies.hoprank.words import Floats
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import read_bytes

SCHEMA = "hopbench.hoprank/5"
MAX_BYTES = 16 * 1024 * 1024
REMEDY = "train again with `hopbench train hoprank`"
# The names of features by group, in the order of the numbers in a weights file.
FEATURES: Mapping[str, Sequence[str]] = {
    "base": list(BASE_FEATURES),
    "edge": list(EDGE_FEATURES),
    "triple": list(TRIPLE_FEATURES),
    "path": list(PATH_FEATURES),
    "kinds": list(KINDS),
    "trees": list(TREE_FEATURES),
}


@dataclass(frozen=True, eq=False)
class Weights:
    """`first` (12,) scores the pool; `edges` has a model per kind, its bias last; `passes` has weights (26,) a pass.

    `trees` put the best of the last pass in order; there may be none. `provenance` says what they were trained on.
    """

    first: Floats
    edges: tuple[Floats, ...]
    passes: tuple[Floats, ...]
    trees: Trees = field(default_factory=lambda: Trees((), ()))
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the learned numbers."""
        return hashlib.sha256(to_json(replace(self, provenance={})).encode()).hexdigest()

    @property
    def size(self) -> int:
        """How many numbers of the linear score were learned."""
        return sum(map(len, (self.first, *self.edges, *self.passes)))


def to_json(weights: Weights) -> str:
    """The text of a weights file; floats survive it exactly."""
    content = {
        "schema": SCHEMA,
        "features": FEATURES,
        "first": weights.first.tolist(),
        "edges": [{"weights": model[:-1].tolist(), "bias": float(model[-1])} for model in weights.edges],
        "passes": [one.tolist() for one in weights.passes],
        "provenance": weights.provenance,
    }
    text = json.dumps(content, indent=1).removesuffix("}").rstrip()
    return f'{text},\n "trees": [{tree_lines(weights.trees)}]\n}}\n'


@cache
def shipped() -> Weights:
    """The weights that travel with HopBench."""
    file = files("hopbench.retrieval.strategies.hoprank") / "weights.json"
    return from_json(file.read_text(encoding="utf-8"), "shipped")


def load(path: str) -> Weights:
    """The weights of a file; the shipped ones for an empty path."""
    if not path:
        return shipped()
    changed = size = 0
    with suppress(OSError):
        changed, size = (status := Path(path).stat()).st_mtime_ns, status.st_size
    return _read(path, changed, size)


@lru_cache(maxsize=4)
def _read(path: str, changed: int, size: int) -> Weights:
    """The weights of a file as it was when it `changed`: to read them takes longer than a question does."""
    try:
        text = read_bytes(Path(path), MAX_BYTES).decode()
    except (InputError, UnicodeDecodeError) as error:
        raise InputError(
            f"hoprank.weights = {path!r} cannot be read ({error}): name a file that `hopbench train hoprank` wrote"
        ) from error
    return from_json(text, path)


def from_json(text: str, name: str) -> Weights:
    """Weights from a file's text; InputError where it is damaged, or made for other features than this version's."""
    try:
        content = json.loads(text)
        schema, features = content["schema"], content["features"]
        if schema != SCHEMA or features != FEATURES:
            raise InputError(f"{name} holds weights for {_difference(schema, features)}: {REMEDY}")
        edges = (np.array([*one["weights"], float(one["bias"])], np.float64) for one in content["edges"])
        weights = Weights(
            np.array(content["first"], np.float64),
            tuple(edges),
            tuple(np.array(entry, np.float64) for entry in content["passes"]),
            read_trees(content["trees"], TREE_FEATURES),
            _provenance(content["provenance"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, AttributeError, RecursionError) as error:
        raise InputError(f"{name} is no weights file of hoprank ({type(error).__name__}: {error}): {REMEDY}") from error
    _check_numbers(weights, name)
    check_trees(weights.trees, f"{name}: trees", REMEDY)
    return weights


def _provenance(content: Any) -> Mapping[str, Any]:
    about = content.get("learned_from", {}) if isinstance(content, dict) else None
    if not isinstance(about, dict) or not all(isinstance(one, dict) for one in about.values()):
        raise TypeError("provenance is no object whose learned_from has an object for each data set")
    return dict(content)


def _difference(schema: object, features: Any) -> str:
    if schema != SCHEMA:
        return f"the layout {schema!r}; this version reads {SCHEMA!r}"
    if not isinstance(features, dict):
        return f"other features, {features}; this version computes {sorted(FEATURES)}"
    other = next((group for group in FEATURES if features.get(group) != FEATURES[group]), "")
    known = FEATURES[other] if other else sorted(FEATURES)
    return f"other {other} features, {features.get(other)}; this version computes {known}"


def _check_numbers(weights: Weights, name: str) -> None:
    lists = [weights.first, *weights.edges, *weights.passes]
    edge, triple = len(EDGE_FEATURES), len(TRIPLE_FEATURES)
    kinds = [edge + triple * (kind == "triple") + 1 for kind in KINDS]
    wanted = [len(BASE_FEATURES), *kinds, *[len(SCORE_FEATURES)] * len(weights.passes)]
    if not weights.passes:
        raise InputError(f"{name} holds the weights of no pass, one at least is needed: {REMEDY}")
    if (sizes := [one.size for one in lists]) != wanted:
        raise InputError(f"{name} holds {sizes} numbers per model, {wanted} are needed: {REMEDY}")
    if any(one.ndim != 1 for one in lists):
        raise InputError(f"{name} holds lists in lists of numbers, plain lists are needed: {REMEDY}")
    if not all(np.isfinite(one).all() for one in lists):
        raise InputError(f"{name} holds a number that is not finite: {REMEDY}")
    if (most := max(float(np.abs(one).max()) for one in lists)) > MAX_NUMBER:
        raise InputError(f"{name} holds the number {most:g}, {MAX_NUMBER:,.0f} is allowed: {REMEDY}")


def passes(
    candidates: Candidates, weights: Weights, anchors: int, reached: EdgeTable | None = None
) -> Iterator[tuple[Ranked, Paths | None]]:
    """Yield the pool's ranking, then that of each pass with its paths; without anchors there is no pass.

    Of several questions their chunks are keys (`questions`).
    """
    reached = reached or EdgeTable(candidates)
    ranked = pool_ranking(candidates, weights.first)
    yield ranked, None
    for learned in weights.passes if anchors else ():
        paths = follow(candidates, reached, ranked, weights.edges, anchors)
        features = with_paths(candidates, paths)
        ranked = Ranked(paths.chunks, features, learned[: features.shape[1]])
        yield ranked, paths
