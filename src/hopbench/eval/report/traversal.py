"""Draw one question's traversal: its nodes and edges, their layout, and an SVG for light and dark pages.

The picture is made from provenance alone: the paths of the gold passages first, then those of other best hits while
there is room. The SVG needs no font, script or style sheet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from textwrap import wrap

from hopbench.eval.explain import Answer, Names, RankedPassage
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.types import Step

MAX_NODES, MAX_ARROWS = 14, 15  # beyond that a picture cannot be read
BEST_HITS = 10
CHUNK, ENTITY, OTHER = "chunk", "entity", "other"
WIDTH, HEIGHT = 176, 40  # of a node
PITCH_X, PITCH_Y = WIDTH + 128, HEIGHT + 22  # from one layer to the next, from one node to the next
MARGIN, LINE = 18, 18
CHARACTER = 6.6  # mean width at 12.5 px: text is cut by it, as nothing here can measure a font
PLACES = 0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78  # along an arrow, where its label may stand
LABEL = 5.6, 12  # width of a label's character and height of its line, at 10 px
_STYLE = """
  svg { --page: #fff; --text: #1b2430; --muted: #566171; --line: #8a95a5; --chunk: #e9eef6; --entity: #e2f3ec;
        --gold: #b07a00; --gold-soft: #fff1cc; --way: #8a5f00; color-scheme: light dark }
  @media (prefers-color-scheme: dark) { svg { --page: #14181e; --text: #e6eaf0; --muted: #a3adbb; --line: #6d7889;
        --chunk: #25303f; --entity: #17382d; --gold: #f2c860; --gold-soft: #3d3213; --way: #f2c860 } }
  text { font: 12.5px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: var(--text) }
  .head { font-weight: 650; font-size: 14px } .small { font-size: 11px; fill: var(--muted) }
  .node { fill: var(--chunk); stroke: var(--line) } .entity { fill: var(--entity) }
  .other { fill: var(--page); stroke-dasharray: 4 3 }
  .gold { fill: var(--gold-soft); stroke: var(--gold); stroke-width: 2.5 }
  .arrow { fill: none; stroke: var(--line); stroke-width: 1.2 } .way { stroke: var(--way); stroke-width: 2.2 }
  .tip { fill: var(--line) } .waytip { fill: var(--way) }
  .label { font-size: 10px; fill: var(--muted); text-anchor: middle }
  .under { fill: var(--page); opacity: .85 } .waylabel { fill: var(--text); font-weight: 600 }
""".strip("\n")
Point = tuple[float, float]
Box = tuple[float, float, float, float]


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
        return len(nodes) <= MAX_NODES and len(steps) <= MAX_ARROWS and path[0].source not in ends


def traversal(question: BenchmarkQuestion, answer: Answer, names: Names, linked: Collection[str] = ()) -> Traversal:
    """The picture of an answer; `linked` are the entities that the question names.

    Each gold passage is drawn, also where no edge led to it or no rank was given. At most `MAX_NODES` nodes and
    `MAX_ARROWS` arrows are drawn unless the gold passages' own paths have more.
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


def draw(picture: Traversal) -> str:
    """The SVG: question and label above, nodes in layers from left to right, arrows labelled with edge and weight."""
    placed = place(picture)
    layers = round(max((x for x, _ in placed.nodes), default=0.0)) + 1
    rows = max([y for _, y in placed.nodes] + [y for route in placed.routes for _, y in route], default=0.0)
    width = max(2 * MARGIN + (layers - 1) * PITCH_X + WIDTH, 620)
    question = wrap(picture.question, int((width - 2 * MARGIN) / 7.6))
    top = MARGIN + LINE * (len(question) + 1) + 14
    height = top + rows * PITCH_Y + HEIGHT + 14 + 2 * LINE
    body = _Body(picture, placed, top)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" role="img">',
            f"<title>{escape(f'{picture.label}: {picture.question}')}</title>",
            f"<style>\n{_STYLE}\n</style>",
            f'<rect width="{width:g}" height="{height:g}" rx="8" style="fill: var(--page)"/>',
            *_head(picture, question),
            *body.arrows(),
            *body.nodes(),
            *body.labels(),
            *_legend(height),
            "</svg>\n",
        ]
    )


def _head(picture: Traversal, question: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate([*question, picture.label]):
        kind = "head" if number < len(question) else "small"
        yield f'<text class="{kind}" x="{MARGIN}" y="{MARGIN + LINE * number + 10}">{escape(line)}</text>'


def _legend(height: float) -> Iterator[str]:
    words = (
        "Boxes are passages, rounded ones entities; gold passages and the ways to them are highlighted.",
        "An arrow: edge type, its weight → the value of the path after it.",
    )
    for number, line in enumerate(words):
        yield f'<text class="small" x="{MARGIN}" y="{height - LINE * (1.6 - number):g}">{line}</text>'


class _Body:
    """Nodes and arrows in pixels."""

    def __init__(self, picture: Traversal, placed: Placement, top: float) -> None:
        self._picture, self._placed, self._top = picture, placed, top
        self._paths = [self._points(*pair) for pair in zip(picture.arrows, placed.routes, strict=True)]

    def _corner(self, place: Point) -> Point:
        return MARGIN + place[0] * PITCH_X, self._top + place[1] * PITCH_Y

    def _points(self, arrow: Arrow, route: Sequence[Point]) -> list[Point]:
        """From the source's side to the target's, by the middles of the passages past other layers."""
        places = [self._placed.nodes[arrow.source], *route, self._placed.nodes[arrow.target]]
        corners = [self._corner(place) for place in places]
        forward = corners[-1][0] >= corners[0][0]
        out, into = (WIDTH, 0) if forward else (0, WIDTH)
        points = [(corners[0][0] + out, corners[0][1] + HEIGHT / 2)]
        for x, y in corners[1:-1]:
            points += [(x + into, y + HEIGHT / 2), (x + out, y + HEIGHT / 2)]
        return [*points, (corners[-1][0] + into, corners[-1][1] + HEIGHT / 2)]

    def arrows(self) -> Iterator[str]:
        drawn = zip(self._picture.arrows, self._paths, strict=True)
        for arrow, points in sorted(drawn, key=lambda pair: pair[0].gold):  # the ways to gold on top
            (x, y), tip = points[-1], 7 if points[-1][0] >= points[0][0] else -7
            line = _curve([*points[:-1], (x - tip, y)])
            way = " way" if arrow.gold else ""
            yield f'<path class="arrow{way}" d="{line}"/>'
            corners = f"{x:g},{y:g} {x - tip:g},{y - 4:g} {x - tip:g},{y + 4:g}"
            yield f'<polygon class="{"waytip" if arrow.gold else "tip"}" points="{corners}"/>'

    def nodes(self) -> Iterator[str]:
        for node, placed in zip(self._picture.nodes, self._placed.nodes, strict=True):
            yield from _box(node, *self._corner(placed))

    def labels(self) -> Iterator[str]:
        """Each label on the first stretch of its arrow, where free; without room only paths to gold have one."""
        taken: list[Box] = []
        for arrows, points in self._stretches():
            gold = any(arrow.gold for arrow in arrows)
            words = arrows[0].step.edge, *(self._values(arrow, len(arrows) > 1) for arrow in arrows)
            size = max(map(len, words)) * LABEL[0], len(words) * LABEL[1]
            boxes = [_around(_on_curve(points[0], points[1], at), size) for at in PLACES]
            free = [place for place in boxes if not any(_meet(place, other) for other in taken)]
            if not free and not gold:
                continue
            box = (free or boxes)[0]
            taken.append(box)
            x, y, kind = (box[0] + box[2]) / 2, box[1] + 9, "label waylabel" if gold else "label"
            lines = "".join(f'<tspan x="{x:.1f}" dy="{n and LABEL[1]}">{word}</tspan>' for n, word in enumerate(words))
            spot = f'x="{box[0]:.1f}" y="{box[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}"'
            yield f'<rect class="under" {spot}/><text class="{kind}" x="{x:.1f}" y="{y:.1f}">{lines}</text>'

    def _stretches(self) -> Iterator[tuple[Sequence[Arrow], Sequence[Point]]]:
        """Arrows with their points; two that lead both ways between the same nodes are one stretch."""
        between: dict[tuple[frozenset[int], str], list[int]] = {}
        for number, arrow in enumerate(self._picture.arrows):
            between.setdefault((frozenset((arrow.source, arrow.target)), arrow.step.edge), []).append(number)
        for numbers in between.values():
            yield [self._picture.arrows[number] for number in numbers], self._paths[numbers[0]]

    def _values(self, arrow: Arrow, both: bool) -> str:
        """Weight and value of an arrow, and where it points to if there is one each way."""
        values = f"{_number(arrow.step.weight)} → {_number(arrow.step.score)}"
        right = self._placed.nodes[arrow.source][0] < self._placed.nodes[arrow.target][0]
        return f"{'▸' if right else '◂'} {values}" if both else values


def _box(node: Node, x: float, y: float) -> Iterator[str]:
    radius = {CHUNK: 4.0, ENTITY: HEIGHT / 2}.get(node.kind, 12.0)
    kind = "gold" if node.gold else "" if node.kind == CHUNK else node.kind
    tooltip = f"<title>{escape(node.title)}</title>"
    area = f'x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="{radius:g}"'
    yield f'<g>{tooltip}<rect class="node {kind}" {area}/>'
    middle = x + WIDTH / 2
    rows = [("", node.title, y + 17), ("small", node.note, y + 32)] if node.note else [("", node.title, y + 25)]
    for style, words, base in rows:
        line = escape(_cut(words, int((WIDTH - 14) / CHARACTER)))
        yield f'<text class="{style}" x="{middle:g}" y="{base:g}" text-anchor="middle">{line}</text>'
    yield "</g>"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _number(value: float) -> str:
    return f"{value:.3g}"


def _curve(points: Sequence[Point]) -> str:
    """A smooth line: each stretch leaves and arrives level."""
    line = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (x + to_x) / 2
        line += f" C{middle:g} {y:g} {middle:g} {to_y:g} {to_x:g} {to_y:g}"
    return line


def _on_curve(start: Point, end: Point, at: float) -> Point:
    """The point of such a stretch at the parameter `at` of its Bézier curve."""
    x = start[0] + (end[0] - start[0]) * (1.5 * at * (1 - at) + at**3)
    return x, start[1] + (end[1] - start[1]) * at * at * (3 - 2 * at)


def _around(middle: Point, size: tuple[float, float]) -> Box:
    (x, y), (width, height) = middle, size
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _meet(first: Box, second: Box) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
