"""The learned numbers: read, checked and written. A file made for other features is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from hopbench.retrieval.strategies.hoprank import tree_json
from hopbench.retrieval.strategies.hoprank.edge_model import EdgeModel
from hopbench.retrieval.strategies.hoprank.trees import Trees
from hopbench.retrieval.strategies.hoprank.words import Floats
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import read_bytes

SCHEMA = "hopbench.hoprank/4"
TREES = ("trees", "second_trees")
MAX_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, eq=False)
class Weights:
    """`first` (12,) scores the pool; `edges` has a model per kind; `passes` has weights (26,) for each pass.

    `trees` put the best of the last pass in order, `second_trees` the best of these; there may be none. `provenance`
    says what they were trained on.
    """

    first: Floats
    edges: tuple[EdgeModel, ...]
    passes: tuple[Floats, ...]
    trees: Trees = field(default_factory=lambda: Trees((), ()))
    second_trees: Trees = field(default_factory=lambda: Trees((), ()))
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the learned numbers."""
        return hashlib.sha256(to_json(replace(self, provenance={})).encode()).hexdigest()

    @property
    def size(self) -> int:
        """How many numbers of the linear score were learned."""
        edges = sum(len(model.weights) + 1 for model in self.edges)
        return len(self.first) + edges + sum(map(len, self.passes))


@cache
def feature_names() -> dict[str, Sequence[str]]:
    """The names of features by group, in the order of the numbers in a weights file."""
    from hopbench.retrieval.strategies.hoprank.base_features import BASE_FEATURES
    from hopbench.retrieval.strategies.hoprank.edge_features import EDGE_FEATURES
    from hopbench.retrieval.strategies.hoprank.edges import KINDS
    from hopbench.retrieval.strategies.hoprank.list_features import tree_names
    from hopbench.retrieval.strategies.hoprank.path_features import PATH_FEATURES
    from hopbench.retrieval.strategies.hoprank.triple_edges import TRIPLE_FEATURES

    groups = BASE_FEATURES, EDGE_FEATURES, TRIPLE_FEATURES
    base, edge, triple = ([feature.__name__ for feature in group] for group in groups)
    names = {"base": base, "edge": edge, "triple": triple, "path": list(PATH_FEATURES), "kinds": list(KINDS)}
    return {**names, "trees": list(tree_names())}


def score_names() -> list[str]:
    """The features of the score: base, then path."""
    names = feature_names()
    return [*names["base"], *names["path"]]


def to_json(weights: Weights) -> str:
    """The text of a weights file; floats survive it exactly."""
    content = {
        "schema": SCHEMA,
        "features": feature_names(),
        "first": weights.first.tolist(),
        "edges": [{"weights": model.weights.tolist(), "bias": model.bias} for model in weights.edges],
        "passes": [one.tolist() for one in weights.passes],
        "provenance": weights.provenance,
    }
    text = json.dumps(content, indent=1)
    trees = (f'"{name}": [{tree_json.lines(getattr(weights, name))}]' for name in TREES)
    return ",\n ".join([text.removesuffix("}").rstrip(), *trees]) + "\n}\n"


@cache
def shipped() -> Weights:
    """The weights that travel with HopBench."""
    return from_json(
        (files("hopbench.retrieval.strategies.hoprank") / "weights.json").read_text(encoding="utf-8"), "shipped"
    )


def load(path: str) -> Weights:
    """The weights of a file; the shipped ones for an empty path."""
    if not path:
        return shipped()
    changed = size = 0
    with suppress(OSError):
        changed, size = (found := Path(path).stat()).st_mtime_ns, found.st_size
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
    remedy = "train again with `hopbench train hoprank`"
    try:
        content = json.loads(text)
        schema, features = content["schema"], content["features"]
        if schema != SCHEMA or features != feature_names():
            raise InputError(f"{name} holds weights for {_difference(schema, features)}: {remedy}")
        weights = Weights(
            np.array(content["first"], np.float64),
            tuple(
                EdgeModel(np.array(entry["weights"], np.float64), float(entry["bias"])) for entry in content["edges"]
            ),
            tuple(np.array(entry, np.float64) for entry in content["passes"]),
            **{name: tree_json.read(content[name], feature_names()["trees"]) for name in TREES},
            provenance=_provenance(content["provenance"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, AttributeError, RecursionError) as error:
        raise InputError(f"{name} is no weights file of hoprank ({type(error).__name__}: {error}): {remedy}") from error
    _check_shapes(weights, name, remedy)
    return weights


def _provenance(content: Any) -> Mapping[str, Any]:
    """What weights were learned from, by name; TypeError where it is written in another way."""
    about = content.get("learned_from", {}) if isinstance(content, dict) else None
    if not isinstance(about, dict) or not all(isinstance(one, dict) for one in about.values()):
        raise TypeError("provenance is no object whose learned_from has an object for each data set")
    return dict(content)


def _difference(schema: object, features: Any) -> str:
    if schema != SCHEMA:
        return f"the layout {schema!r}; this version reads {SCHEMA!r}"
    known = feature_names()
    other = next(
        (group for group in known if not isinstance(features, dict) or features.get(group) != known[group]), ""
    )
    given = features.get(other) if isinstance(features, dict) else features
    return f"other {other} features, {given}; this version computes {known[other] if other else sorted(known)}"


def _check_shapes(weights: Weights, name: str, remedy: str) -> None:
    names = feature_names()
    base, edge = len(names["base"]), len(names["edge"])
    kinds = [edge + len(names["triple"]) * (kind == "triple") for kind in names["kinds"]]
    full = len(score_names())
    lists = [weights.first, *(model.weights for model in weights.edges), *weights.passes]
    sizes = [weights_of.size for weights_of in lists]
    wanted = [base, *kinds, *[full] * len(weights.passes)]
    if not weights.passes:
        raise InputError(f"{name} holds the weights of no pass, one at least is needed: {remedy}")
    if sizes != wanted:
        raise InputError(f"{name} holds {sizes} numbers per model, {wanted} are needed: {remedy}")
    if any(weights_of.ndim != 1 for weights_of in lists):
        raise InputError(f"{name} holds lists in lists of numbers, plain lists are needed: {remedy}")
    biases = np.array([model.bias for model in weights.edges])
    if not all(np.isfinite(weights_of).all() for weights_of in [*lists, biases]):
        raise InputError(f"{name} holds a number that is not finite: {remedy}")
    if (most := max(float(np.abs(weights_of).max()) for weights_of in [*lists, biases])) > tree_json.MOST:
        raise InputError(f"{name} holds the number {most:g}, {tree_json.MOST:,.0f} is allowed: {remedy}")
    for trees in TREES:
        tree_json.check(getattr(weights, trees), f"{name}: {trees}", remedy)
