"""Spreading activation from the best hybrid hits along tagged edges, fading with degree and off-topic tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.search.fusion import Scored, ordered
from hopbench.retrieval.strategies._activation_spread import (
    NOT_COUNTED,
    Branch,
    EdgeCache,
    Exploration,
    Neighbourhood,
    cached_neighbourhoods,
    floored_jaccard,
)
from hopbench.retrieval.strategies.base import Strategy, param
from hopbench.retrieval.strategies.baselines import hybrid_rankings
from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.types import Counters, Hit, LazyHits, Ranking

NEVER = 2.0  # above every similarity, strength and weight: a threshold that no edge passes


@dataclass(frozen=True, kw_only=True)
class Activation(Strategy):
    """Spreads activation energy: T = R·w/√degree · tag_sim."""

    name: ClassVar[str] = "activation"
    summary: ClassVar[str] = (
        "spreading activation: energy spreads from the hybrid top 5 along edges that share the question's tags"
    )
    edges: ClassVar[tuple[str, ...]] = (SIMILAR_TO, RELATED_TO, MENTIONED_IN)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        SIMILAR_TO: {"use_similar": False},
        RELATED_TO: {"use_related": False},
        MENTIONED_IN: {"use_mentioned": False},
    }
    thresholds: ClassVar[tuple[str, ...]] = ("min_similarity", "min_strength")

    seeds: int = param(5, "chunks of the hybrid ranking that energy starts from", 1, 20)
    vector_weight: float = param(0.7, "weight of the vector score in the hybrid score; BM25 has the rest", 0.0, 1.0)
    fusion: str = param("weighted", "how the hybrid score is made; RRF gives ranks, no energy", choices=("weighted",))
    max_depth: int = param(5, "hops of the longest path", 1, 5, aliases=["MAX_DEPTH"])
    max_branches: int = param(3, "neighbours that a node passes its energy to", 1, 20, aliases=["MAX_BRANCHES"])
    min_activation: float = param(
        0.005, "energy that a hop must exceed", 0.0, 1.0, aliases=["MIN_ACTIVATION", "min_threshold"]
    )
    tag_floor: float = param(
        0.15, "tag similarity without any common tag", 0.0, 1.0, aliases=["TAG_SIM_FLOOR", "tag_sim_floor"]
    )
    max_tags: int = param(8, "tags of the question, the rarest first; 0 = no tags, every edge is on topic", 0, 32)
    min_weight: float = param(0.25, "least weight of an edge", 0.0, 1.0)
    min_similarity: float = param(0.7, "SIMILAR_TO edges below this do not exist", 0.0, 1.0)
    min_strength: float = param(0.5, "RELATED_TO edges below this do not exist", 0.0, 1.0)
    use_similar: bool = param(True, "follow SIMILAR_TO")
    use_related: bool = param(True, "follow RELATED_TO")
    use_mentioned: bool = param(True, "follow MENTIONED_IN")
    ranking: str = param(
        "energy", "seeds and reached by energy, or blended with all hybrid scores", choices=("energy", "blend")
    )
    energy_weight: float = param(0.3, "share of the relative energy in a blended score", 0.0, 1.0)

    def __post_init__(self) -> None:
        if self.fusion == "rrf":
            raise ParameterError(
                "activation.fusion = 'rrf' is refused: R is a seed's energy in 0..1, and an RRF score, at most 2/61, "
                "says only its rank; use 'weighted'"
            )
        super().__post_init__()

    def lowest_weights(self) -> Mapping[str, float]:
        """The threshold on SIMILAR_TO, if it is followed."""
        return {SIMILAR_TO: self.min_similarity} if self.use_similar else {}

    def initial(self, batch: Batch) -> list[Scored]:
        """The weighted hybrid ranking."""
        return hybrid_rankings(batch, self.vector_weight)

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Spread from all seeds of all questions together, a round trip a level."""
        with stage(counters, "initial"):
            initial = self.initial(batch)
        with stage(counters, "tags"):
            tags = self._tags(batch)
        with stage(counters, "spread"):
            spreads = [[Exploration.start(c, r) for c, r in scored[: self.seeds] if r > 0] for scored in initial]
            for _ in range(self.max_depth):
                rows = [
                    frontier_row(q, each, batch.index)
                    for q, each in enumerate(spreads)
                    if any(s.frontier for s in each)
                ]
                if not rows:
                    break
                around = level(batch, counters, rows, tags, self.tag_floor, self._thresholds())
                for row in rows:
                    for spread in spreads[row["q"]]:
                        spread.advance(around.get(row["q"], {}), self.min_activation, self.max_branches)
            for spread in (spread for each in spreads for spread in each):
                spread.finish()
                counters.terminations.update(spread.terminations())
                counters.observed.update(f"paths of {branch.depth} edges" for branch, _ in spread.ended)
        with stage(counters, "ranking"):
            return [self._ranking(batch, q, initial[q], tags[q], spreads[q]) for q in range(len(spreads))]

    def _tags(self, batch: Batch) -> list[list[str]]:
        return [batch.index.tagger.tags(question.text, self.max_tags) for question in batch.questions]

    def pasteable(self, batch: Batch) -> Sequence[tuple[str, Mapping[str, object]]]:
        """The source's own query for the first level of the best seed; there the engine computes the energies."""
        (scored,), (tags,) = self.initial(batch), self._tags(batch)
        seeds = [{"node_id": chunk, "activation": r} for chunk, r in scored[:1] if r > 0]
        if not seeds:
            return []
        thresholds = {name: self._thresholds()[name] for name in ("min_similarity", "min_strength", "min_mention")}
        parameters: dict[str, object] = {
            "namespace": batch.index.store.namespace,
            "frontier": seeds,
            "visited_ids": [seed["node_id"] for seed in seeds],
            "query_tags": tags,
            "query_tags_count": len(tags),
            "tag_sim_floor": self.tag_floor,
            "min_threshold": self.min_activation,
            "min_weight": self.min_weight,
        }
        return [(cypher.ACTIVATION_PASTE, parameters | thresholds)]

    def _thresholds(self) -> dict[str, float | bool]:
        return {
            "min_similarity": self.min_similarity if self.use_similar else NEVER,
            "min_strength": self.min_strength if self.use_related else NEVER,
            "min_mention": 0.0 if self.use_mentioned else NEVER,
            # Energies are rounded before they are compared, so the engine is asked for a little more.
            "min_activation": max(self.min_activation - 1e-9, 0.0),
            "min_weight": self.min_weight,
            "tagged": self.max_tags > 0,
        }

    def _ranking(
        self, batch: Batch, q: int, initial: Scored, tags: Sequence[str], spreads: Sequence[Exploration]
    ) -> Ranking:
        best: dict[str, Branch] = {}  # the branch that brought a chunk most energy; ties to the better seed
        for branch in (branch for spread in spreads for branch in spread.reached):
            if branch.node in batch.index.row_of and (
                branch.node not in best or branch.energy > best[branch.node].energy
            ):
                best[branch.node] = branch
        seeds = [spread.seed.node for spread in spreads]
        scored, hybrid = ordered(self._scores(initial, best)), dict(initial)
        from_graph = sum(chunk in best and chunk not in seeds for chunk, _ in scored)

        def hit(place: int) -> Hit:
            chunk, score = scored[place]
            components = {"hybrid": hybrid.get(chunk, 0.0)}
            if (branch := best.get(chunk)) is not None:
                components |= {"energy": branch.energy, "depth": branch.depth}
            if branch is None or chunk in seeds:
                return Hit(chunk, score, "seed", components)
            return Hit(chunk, score, "graph", components, branch.steps())

        hits = LazyHits.one_by_one(scored, hit)
        return Ranking(batch.questions[q].id, hits, seeds, _notes(tags, spreads, from_graph))

    def _scores(self, initial: Scored, best: Mapping[str, Branch]) -> dict[str, float]:
        received = {chunk: branch.energy for chunk, branch in best.items()}
        if self.ranking == "energy":
            seeds = dict(initial[: self.seeds])
            return {**received, **{c: r if r > 0 else received.get(c, r) for c, r in seeds.items()}}
        most, share, hybrid = max(received.values(), default=0.0) or 1.0, self.energy_weight, dict(initial)
        return {
            chunk: (1.0 - share) * hybrid.get(chunk, 0.0) + share * received.get(chunk, 0.0) / most
            for chunk in {**hybrid, **received}
        }


def _notes(tags: Sequence[str], spreads: Sequence[Exploration], from_graph: int) -> dict[str, object]:
    """The ranking's notes: arrivals of energy, nodes reached, chunks ranked for it, and all complete paths."""
    ended = [(branch, why) for spread in spreads for branch, why in spread.ended]
    lengths = Counter(branch.depth for branch, _ in ended)
    lines = [(branch.lineage(), why) for branch, why in ended if branch.depth]
    return {
        "question_tags": list(tags),
        "terminations": dict(sorted(Counter(why for spread in spreads for why in spread.terminations()).items())),
        "path_lengths": {str(length): lengths[length] for length in sorted(lengths)},
        "found": sum(len(spread.reached) for spread in spreads),
        "unique": len({branch.node for spread in spreads for branch in spread.reached}),
        "kept": from_graph,
        "paths": [
            {
                "nodes": [branch.node for branch in line],
                "edges": [branch.kind for branch in line[1:]],
                "weights": [branch.weight for branch in line[1:]],
                "tags": [sorted(branch.tags) for branch in line[1:]],
                "energies": [branch.energy for branch in line],
                "ended": why,
            }
            for line, why in lines
        ],
    }


COLUMNS = ("source", "degree", "kind", "target", "weight", "tags")


def frontier_row(q: int, spreads: Sequence[Exploration], index: Index) -> dict[str, Any]:
    """A question's row of `cypher.ACTIVATION_HOP`: its seeds' frontiers in one, each node once.

    A node in several frontiers is asked for with its highest energy, so that what each needs comes back.
    """
    activation: dict[str, float] = {}
    for branch in (branch for spread in spreads for branch in spread.frontier):
        activation[branch.node] = max(activation.get(branch.node, 0.0), branch.energy)
    nodes = [{"id": node, "activation": activation[node]} for node in sorted(activation)]
    return {
        "q": q,
        "seeds": [spread.seed.node for spread in spreads if spread.frontier == [spread.seed]],
        "visited": sorted(set().union(*(spread.visited for spread in spreads))),
        "chunks": [node for node in nodes if node["id"] in index.row_of],
        "entities": [node for node in nodes if node["id"] not in index.row_of],
    }


def level(
    batch: Batch,
    counters: Counters,
    rows: Sequence[Mapping[str, Any]],
    tags: Sequence[Sequence[str]],
    tag_floor: float,
    thresholds: Mapping[str, float | bool],
) -> Mapping[int, Mapping[str, Neighbourhood]]:
    """A level's neighbourhoods by question and node: read from the store, or in a sweep from the trials' shared edges.

    `rows` are the questions' frontier rows, `thresholds` the other parameters of `cypher.ACTIVATION_HOP`.
    """
    floors, shared = batch.index.floors, [("activation", name) for name in ("min_similarity", "min_strength")]
    if batch.alone or not floors.keys() >= set(shared):
        records = batch.read(counters, cypher.ACTIVATION_HOP, frontier=rows, **thresholds)
        counters.edges_touched += sum(len(record["target"]) for record in records)
        return neighbourhoods(records, tags, tag_floor, thresholds["min_weight"])
    lowest = [floors[one] for one in shared]
    edge_cache = batch.index.memo.get(("activation edges", *lowest), lambda: EdgeCache(*lowest))
    around, seeds, edges = cached_neighbourhoods(edge_cache, batch.index.store, rows, tags, tag_floor, thresholds)
    counters.round_trips += 1
    counters.rows += seeds + edges
    counters.edges_touched += edges
    return around


def neighbourhoods(
    records: Sequence[Record], tags: Sequence[Sequence[str]], tag_floor: float, min_weight: float
) -> dict[int, dict[str, Neighbourhood]]:
    """One level's records as question → node → neighbourhood; `tags` are the questions'."""
    around: dict[int, dict[str, Neighbourhood]] = {}
    for record in (record for record in records if record["part"] == "seeds"):
        nodes = around.setdefault(record["q"], {})
        for seed, connected in zip(record["source"], record["degree"], strict=True):
            nodes[seed] = Neighbourhood(NOT_COUNTED if connected else 0)
    wanted = [frozenset(each) for each in tags]
    for record in (record for record in records if record["part"] == "edges"):
        nodes, question = around.setdefault(record["q"], {}), wanted[record["q"]]
        for source, degree, kind, target, weight, own in zip(*(record[name] for name in COLUMNS), strict=True):
            here = nodes.get(source) or nodes.setdefault(source, Neighbourhood(degree))
            here.degree = degree
            shared = len(question.intersection(own)) if question else 0
            similarity = floored_jaccard(shared, len(own), len(question), tag_floor)
            here.edges.append((kind, target, max(min_weight, weight), similarity))
            here.tags.append(own)
    return around
