"""The nodes and edges that a picture of one question's traversal shows, and their layout.

Taken from provenance alone: the paths of the gold passages first, then those of other best hits while there is room.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from hopbench.eval.explain import Answer, Names, RankedPassage
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.types import Step

MOST_NODES, MOST_ARROWS = 14, 15  # beyond that a picture cannot be read
BEST_HITS = 10
CHUNK, ENTITY, OTHER = "chunk", "entity", "other"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the picture: `title` and a short `note`; `gold` for a passage that the question needs."""

    id: str
    kind: str
    title: str
    note: str = ""
    gold: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    """A step between two nodes (numbers into `Traversal.nodes`); `gold` on the way to a gold passage."""

    source: int
    target: int
    step: Step
    gold: bool


@dataclass(frozen=True)
class Traversal:
    """One strategy's way through the graph for one question."""

    question: str
    label: str
    nodes: Sequence[Node] = ()
    arrows: Sequence[Arrow] = ()


@dataclass(frozen=True)
class Placement:
    """Places in layers: (layer, height) of each node, and of the points by which each arrow goes past other layers."""

    nodes: Sequence[tuple[float, float]]
    routes: Sequence[Sequence[tuple[float, float]]]


@dataclass
class _Drawn:
    """What was chosen so far: nodes in order, steps by edge and ends."""

    nodes: dict[str, None] = field(default_factory=dict)
    steps: dict[tuple[str, str, str], tuple[Step, bool]] = field(default_factory=dict)

    def add(self, path: Sequence[Step], end: str, gold: bool) -> None:
        for step in path:
            self.nodes |= {step.source: None, step.target: None}
            self.steps.setdefault((step.edge, step.source, step.target), (step, gold))
        self.nodes[end] = None

    def has_room(self, path: Sequence[Step]) -> bool:
        """Whether the picture stays readable with a path; one that goes on from another's end would widen it."""
        nodes = {node for step in path for node in (step.source, step.target)} | self.nodes.keys()
        steps = {(step.edge, step.source, step.target) for step in path} | self.steps.keys()
        ends = {target for _, _, target in self.steps}
        return len(nodes) <= MOST_NODES and len(steps) <= MOST_ARROWS and path[0].source not in ends


def traversal(question: BenchmarkQuestion, answer: Answer, names: Names, linked: Collection[str] = ()) -> Traversal:
    """The picture of an answer; `linked` are the entities that the question names.

    Each gold passage is drawn, also where no edge led to it or no rank was given. At most `MOST_NODES` nodes and
    `MOST_ARROWS` arrows are drawn unless the gold passages' own paths have more.
    """
    drawn = _Drawn()
    for gold in question.gold:
        place = answer.place(gold)
        drawn.add(place.hit.path if place else (), place.hit.chunk_id if place else gold, gold=True)
    for place in answer.places[:BEST_HITS]:
        if place.hit.path and drawn.has_room(place.hit.path):
            drawn.add(place.hit.path, place.hit.chunk_id, gold=False)
    numbers = {node: number for number, node in enumerate(drawn.nodes)}
    entered = {step.target for step, _ in drawn.steps.values()}
    nodes = [_node(node, node not in entered, question, answer, names, linked) for node in drawn.nodes]
    arrows = [Arrow(numbers[step.source], numbers[step.target], step, gold) for step, gold in drawn.steps.values()]
    return Traversal(question.text, answer.label, nodes, arrows)


def _node(
    node: str, starts: bool, question: BenchmarkQuestion, answer: Answer, names: Names, linked: Collection[str]
) -> Node:
    row = names.index.row_of.get(node)
    if row is None and node in names.entities:
        note = "in the question" if node in linked else "near the question" if starts else ""
        return Node(node, ENTITY, names.entities[node], note)
    if row is None and node not in question.gold:
        return Node(node, OTHER, _noted(node, answer), node.replace(":", " "))
    passage = names.index.passage_of.get(node, node)
    title = names(node).strip("[]") if row is not None else node
    words = list(_standing(passage, answer, starts, passage in question.gold))
    return Node(node, CHUNK, title, " · ".join(words), passage in question.gold)


def _noted(node: str, answer: Answer) -> str:
    """What the strategy's notes call a node that the graph does not have, such as a community by its entities."""
    lists = (value for value in answer.notes.values() if isinstance(value, list))
    named = (item for value in lists for item in value if isinstance(item, tuple) and len(item) > 1 and item[0] == node)
    return next((str(item[1]) for item in named), node)


def _standing(passage: str, answer: Answer, starts: bool, gold: bool) -> Iterator[str]:
    place = answer.place(passage)
    if gold:
        yield "gold"
    if passage in answer.seeds and starts:
        yield "seed"
    if place is not None:
        yield _rank(place)
    elif gold:
        yield "not ranked"


def _rank(place: RankedPassage) -> str:
    return f"rank {place.rank}" + ("" if place.candidate else " (fill)")


def place(picture: Traversal) -> Placement:
    """Sugiyama's layered layout (igraph): arrows go from layer to layer, few of them cross."""
    import igraph

    ends = [(arrow.source, arrow.target) for arrow in picture.arrows]
    layout = igraph.Graph(n=len(picture.nodes), edges=ends, directed=True).layout_sugiyama(maxiter=1000)
    nodes = [(y, x) for x, y in layout.coords]
    routes = [[(y, x) for x, y in points] for points in layout.edge_routing]
    return Placement(nodes, [_forward(route, nodes[end[0]]) for route, end in zip(routes, ends, strict=True)])


def _forward(route: Sequence[tuple[float, float]], source: tuple[float, float]) -> Sequence[tuple[float, float]]:
    """The points of an arrow in its own direction: the layout gives those of an arrow that goes back the other way."""
    return route if not route or abs(route[0][0] - source[0]) <= abs(route[-1][0] - source[0]) else route[::-1]
