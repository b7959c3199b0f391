"""From a question to scored candidates, by learned weights: pool, passes over paths, then trees.

Each pass follows edges from the best of the one before. Trees put the best of the last pass in order: their value is
added to the linear score. A weights file made for other features is refused.
"""

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
from numpy.typing import NDArray

from hopbench.retrieval.search.exact import COSINE_DECIMALS
from hopbench.retrieval.strategies.hoprank.candidates import BASE_FEATURES, Candidates
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE
from hopbench.retrieval.strategies.hoprank.edge_features import EDGE_FEATURES
from hopbench.retrieval.strategies.hoprank.edges import KINDS, TRIPLE_FEATURES
from hopbench.retrieval.strategies.hoprank.list_facts import PATHS, ListFacts, Reading
from hopbench.retrieval.strategies.hoprank.pair_features import tree_features, tree_names
from hopbench.retrieval.strategies.hoprank.paths import (
    PATH_FEATURES,
    EdgeModel,
    EdgeTable,
    Passed,
    Paths,
    Ranked,
    best_in_cells,
    follow,
)
from hopbench.retrieval.strategies.hoprank.questions import of_some_words
from hopbench.retrieval.strategies.hoprank.trees import MAX_NUMBER, Trees, check_trees, read_trees, tree_lines
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Lookup, Numbers
from hopbench.retrieval.support.arrays import distinct, rows_of
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
    trees = (f'"{name}": [{tree_lines(getattr(weights, name))}]' for name in TREES)
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
            **{name: read_trees(content[name], feature_names()["trees"]) for name in TREES},
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
    if (most := max(float(np.abs(weights_of).max()) for weights_of in [*lists, biases])) > MAX_NUMBER:
        raise InputError(f"{name} holds the number {most:g}, {MAX_NUMBER:,.0f} is allowed: {remedy}")
    for trees in TREES:
        check_trees(getattr(weights, trees), f"{name}: {trees}", remedy)


LISTED = 100  # candidates among which ranks and edges are counted
READ = 50  # of those, the best ones, which the first trees put in order


def list_facts(candidates: Candidates, passed: Sequence[Passed]) -> list[ListFacts]:
    """The facts about the candidates' questions after the last of each one's passes, which must have followed paths.

    Lists of the same size are side by side, as many as have some words to be read.
    """
    each = [_of_passes(one) for one in passed]
    sizes, words, found = np.array([len(one["chunks"]) for one in each]), candidates.corpus.words, []
    for size in distinct(sizes).tolist():
        of = np.flatnonzero(sizes == size)
        read = np.array([words.lengths(each[number]["chunks"][:READ]).sum() for number in of.tolist()])
        groups = (of[part] for part in of_some_words(read))
        found += [_side_by_side(candidates, group, [each[number] for number in group.tolist()]) for group in groups]
    return found


def _side_by_side(candidates: Candidates, of: Numbers, each: Sequence[Mapping[str, NDArray[Any]]]) -> ListFacts:
    """The lists of some questions, all of the same size, from the columns of each that its passes tell."""
    columns: dict[str, Any] = {name: np.stack([one[name] for one in each]) for name in each[0]}
    corpus, chunks = candidates.corpus, columns["chunks"]
    rows = candidates.rows((chunks + of[:, None] * corpus.chunks).ravel()).reshape(chunks.shape)
    read = chunks[:, :READ]
    vectors = rows_of(corpus.vectors, read).astype(np.float64)
    edge = columns["edge"][:, :READ, :READ]
    return ListFacts(
        **columns,
        of=of,
        base=candidates.base.take(rows, axis=0),
        covers=candidates.covered.take(rows, axis=0),
        own=corpus.mentions.own[chunks],
        cosine=(vectors @ candidates.vectors[of, :, None].astype(np.float64))[..., 0].round(COSINE_DECIMALS),
        alike=(vectors @ vectors.swapaxes(1, 2)).round(COSINE_DECIMALS),
        reading=Reading.of(corpus, candidates.questions, candidates.word_vectors, read, of, edge),
        places=np.arange(read.size).reshape(read.shape),
    )


def _of_passes(passed: Passed) -> dict[str, NDArray[Any]]:
    """Extract the columns of a list from its passes."""
    (pool, _), (first, _), (last, paths) = passed[0], passed[1], passed[-1]
    if paths is None:
        raise ValueError("trees order candidates of a pass over paths; this one followed none")
    order = np.argsort(-last.scores, kind="stable")[:LISTED]
    chunks, into = last.chunks[order], paths.best[order]
    edge, anchor = _edges_between(chunks, paths)
    return {
        "chunks": chunks,
        "score": last.scores[order],
        "first_score": _aligned(first, chunks),
        "pool_score": _aligned(pool, chunks),
        "paths": paths.features[order, : len(PATHS)],
        "edge": edge,
        "anchor": anchor,
        "best": _of_best(paths.edge_features[:, : len(EDGE_FEATURES)], into),
        "best_anchor": _of_best(paths.anchor_probability, into),
        "best_edge": _of_best(paths.probability, into),
    }


def _edges_between(chunks: Numbers, paths: Paths) -> tuple[Floats, Flags]:
    """Find P(edge) of the best edge between any two of k chunks, (k, k), and which of them are anchors, (k,)."""
    place = Lookup.of(chunks, np.arange(len(chunks)), otherwise=NOWHERE)
    source, target = place[paths.edges.anchor], place[paths.edges.target]
    inside = np.flatnonzero((source != NOWHERE) & (target != NOWHERE))
    edge = best_in_cells(source[inside], target[inside], paths.probability[inside], (len(chunks), len(chunks)))
    anchor = np.zeros(len(chunks), bool)
    anchor[source[source != NOWHERE]] = True
    return edge, anchor


def _of_best(values: Floats, into: Numbers) -> Floats:
    """Take the values of edges, 0 where there is none."""
    found = np.zeros((len(into), *values.shape[1:]))
    found[into != NOWHERE] = values[into[into != NOWHERE]]
    return found


def _aligned(ranked: Ranked, chunks: Numbers) -> Floats:
    """Return the scores of chunks in another ranking, one below its last for those it lacks."""
    place = np.minimum(ranked.chunks.searchsorted(chunks), len(ranked.chunks) - 1)
    return np.where(ranked.chunks[place] == chunks, ranked.scores[place], ranked.scores.min() - 1.0)


GAP = 1e-6
READ_AGAIN = 25  # of those that first trees read the best ones, which the second trees do


def pool_ranking(candidates: Candidates, weights: Floats) -> Ranked:
    """Rank the pool by its base features alone."""
    chunks = candidates.pool.chunks
    return Ranked(chunks, candidates.features(chunks), weights)


def with_paths(candidates: Candidates, paths: Paths) -> Floats:
    """Join base and path features of the chunks of paths, (c, 24), with triples (c, 26)."""
    return np.concatenate([candidates.features(paths.chunks), paths.features], axis=1)


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


def of_each(candidates: Candidates, passed: Passed) -> list[Passed]:
    """Split passes by question, with chunks in place of keys."""
    size = candidates.corpus.chunks, len(candidates.questions)
    by_pass = [
        zip(ranked.of_each(*size), [None] * size[1] if paths is None else paths.of_each(*size), strict=True)
        for ranked, paths in passed
    ]
    return list(zip(*by_pass, strict=True))


@dataclass(frozen=True, eq=False)
class Judged:
    """Chunks (k,), best first by the score they had, with their `features` (k, f) for the `trees` that judge them."""

    chunks: Numbers
    features: Floats
    trees: Trees

    @cached_property
    def value(self) -> Floats:
        """The value that the trees add to the scores, (k,)."""
        return self.trees.value(self.features)


def judged(candidates: Candidates, asked: Sequence[Passed], weights: Weights) -> list[list[Judged]]:
    """Judge the best of each question's last pass by trees, then the best of these by second trees.

    Nothing without trees, and where no path was followed.
    """
    found: list[list[Judged]] = [[] for _ in asked]
    if not weights.trees.trees or not all(passed[-1][1] for passed in asked):
        return found
    for facts in list_facts(candidates, asked):
        first = _judged_by(facts, weights.trees)
        more = [first]
        if weights.second_trees.trees:
            again = in_their_order(facts, np.stack([one.value for one in first]))
            more.append(_judged_by(again, weights.second_trees))
        for number, *both in zip(facts.of.tolist(), *more, strict=True):
            found[number] = both
    return found


def _judged_by(facts: ListFacts, trees: Trees) -> list[Judged]:
    """Pair the trees with the read candidates of each list."""
    return [
        Judged(chunks, features, trees)
        for chunks, features in zip(facts.chunks[:, : facts.read], tree_features(facts), strict=True)
    ]


def in_their_order(facts: ListFacts, value: Floats) -> ListFacts:
    """Reorder the facts by the scores with the `value` (n, r) that trees add to those they read."""
    rows = np.arange(facts.read)
    lists = facts.score.reshape(-1, facts.score.shape[-1]), value.reshape(-1, facts.read)
    score = np.stack([judged_scores(scores, rows, added)[0] for scores, added in zip(*lists, strict=True)])
    return facts.reordered(score.reshape(facts.score.shape), READ_AGAIN)


def judged_scores(scores: Floats, rows: Numbers, value: Floats) -> tuple[Floats, float]:
    """Add the trees' value to some rows, and lower the others so that none passes a judged one; return by how much."""
    scores = scores.copy()
    scores[rows] += value
    others = np.ones(len(scores), bool)
    others[rows] = False
    least, best = float(scores[rows].min()), float(scores[others].max(initial=-np.inf))
    lowered = min(0.0, least - best - GAP)
    scores[others] += lowered
    return scores, lowered
