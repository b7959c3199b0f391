"""Draw one question's traversal: its nodes and edges, their layout, and an SVG for light and dark pages.

The picture is made from provenance alone: the paths of the gold passages first, then those of other best hits while
there is room. The SVG needs no font, script or style sheet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from textwrap import wrap

from hopbench.eval.explain import Answer, Names
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
LEGEND = (
    "Boxes are passages, rounded ones entities; gold passages and the ways to them are highlighted.",
    "An arrow: edge type, its weight → the value of the path after it.",
)
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
    """A step between two nodes (indices of `Traversal.nodes`); `gold` on the way to a gold passage."""

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


def traversal(question: BenchmarkQuestion, answer: Answer, names: Names, linked: Collection[str] = ()) -> Traversal:
    """The picture of an answer; `linked` are the entities that the question names.

    Each gold passage is drawn, also where no edge led to it or no rank was given. At most `MAX_NODES` nodes and
    `MAX_ARROWS` arrows are drawn unless the gold passages' own paths have more; no path is drawn that goes on from
    another's end, which would widen the picture.
    """
    nodes: dict[str, None] = {}
    steps: dict[tuple[str, str, str], tuple[Step, bool]] = {}

    def add(path: Sequence[Step], end: str, gold: bool) -> None:
        for step in path:
            nodes.update({step.source: None, step.target: None})
            steps.setdefault((step.edge, step.source, step.target), (step, gold))
        nodes[end] = None

    for gold in question.gold:
        place = answer.place(gold)
        add(place.hit.path if place else (), place.hit.chunk_id if place else gold, gold=True)
    for place in answer.places[:BEST_HITS]:
        path = place.hit.path
        more = nodes.keys() | {node for step in path for node in (step.source, step.target)}
        longer = steps.keys() | {(step.edge, step.source, step.target) for step in path}
        fits = len(more) <= MAX_NODES and len(longer) <= MAX_ARROWS
        if path and fits and path[0].source not in {target for _, _, target in steps}:
            add(path, place.hit.chunk_id, gold=False)
    row_of = {node: row for row, node in enumerate(nodes)}
    entered = {step.target for step, _ in steps.values()}
    drawn = [_node(node, node not in entered, question, answer, names, linked) for node in nodes]
    arrows = [Arrow(row_of[step.source], row_of[step.target], step, gold) for step, gold in steps.values()]
    return Traversal(question.text, answer.label, drawn, arrows)


def _node(
    node: str, starts: bool, question: BenchmarkQuestion, answer: Answer, names: Names, linked: Collection[str]
) -> Node:
    row = names.index.row_of.get(node)
    if row is None and node in names.entities:
        note = "in the question" if node in linked else "near the question" if starts else ""
        return Node(node, ENTITY, names.entities[node], note)
    if row is None and node not in question.gold:
        # what the strategy's notes call a node that the graph does not have, such as a community by its entities
        lists = (value for value in answer.notes.values() if isinstance(value, list))
        named = (one for value in lists for one in value if isinstance(one, tuple) and len(one) > 1 and one[0] == node)
        return Node(node, OTHER, next((str(one[1]) for one in named), node), node.replace(":", " "))
    passage = names.index.passage_of.get(node, node)
    place, gold = answer.place(passage), passage in question.gold
    words = ["gold"] if gold else []
    words += ["seed"] if passage in answer.seeds and starts else []
    if place is not None:
        words.append(f"rank {place.rank}" + ("" if place.candidate else " (fill)"))
    elif gold:
        words.append("not ranked")
    return Node(node, CHUNK, names(node).strip("[]") if row is not None else node, " · ".join(words), gold)


def layout(picture: Traversal) -> tuple[list[Point], list[list[Point]]]:
    """Sugiyama's layered layout (igraph): arrows go from layer to layer, few of them cross.

    Returns (layer, height) of each node, and of the points by which each arrow goes past other layers.
    """
    import igraph

    ends = [(arrow.source, arrow.target) for arrow in picture.arrows]
    found = igraph.Graph(n=len(picture.nodes), edges=ends, directed=True).layout_sugiyama(maxiter=1000)
    nodes = [(y, x) for x, y in found.coords]
    routes = []
    for (source, _), points in zip(ends, found.edge_routing, strict=True):
        route, begin = [(y, x) for x, y in points], nodes[source][0]
        # those of an arrow that goes back are given the other way
        forward = not route or abs(route[0][0] - begin) <= abs(route[-1][0] - begin)
        routes.append(route if forward else route[::-1])
    return nodes, routes


def draw(picture: Traversal) -> str:
    """The SVG: question and label above, nodes in layers from left to right, arrows labelled with edge and weight."""
    nodes, routes = layout(picture)
    layers = round(max((x for x, _ in nodes), default=0.0)) + 1
    rows = max([y for _, y in nodes] + [y for route in routes for _, y in route], default=0.0)
    width = max(2 * MARGIN + (layers - 1) * PITCH_X + WIDTH, 620)
    question = wrap(picture.question, int((width - 2 * MARGIN) / 7.6))
    top = MARGIN + LINE * (len(question) + 1) + 14
    height = top + rows * PITCH_Y + HEIGHT + 14 + 2 * LINE
    corners = [(MARGIN + x * PITCH_X, top + y * PITCH_Y) for x, y in nodes]
    paths = []
    for arrow, route in zip(picture.arrows, routes, strict=True):
        past = [(MARGIN + x * PITCH_X, top + y * PITCH_Y) for x, y in route]
        paths.append(_points([corners[arrow.source], *past, corners[arrow.target]]))
    lines = [("head", line) for line in question] + [("small", picture.label)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" role="img">',
            f"<title>{escape(f'{picture.label}: {picture.question}')}</title>",
            f"<style>\n{_STYLE}\n</style>",
            f'<rect width="{width:g}" height="{height:g}" rx="8" style="fill: var(--page)"/>',
            *(
                f'<text class="{kind}" x="{MARGIN}" y="{MARGIN + LINE * row + 10}">{escape(line)}</text>'
                for row, (kind, line) in enumerate(lines)
            ),
            *_arrows(picture.arrows, paths),
            *(line for node, corner in zip(picture.nodes, corners, strict=True) for line in _box(node, *corner)),
            *_labels(picture.arrows, nodes, paths),
            *(
                f'<text class="small" x="{MARGIN}" y="{height - LINE * (1.6 - row):g}">{line}</text>'
                for row, line in enumerate(LEGEND)
            ),
            "</svg>\n",
        ]
    )


def _points(corners: Sequence[Point]) -> list[Point]:
    """From the source's side to the target's, by the middles of the passages past other layers."""
    out, into = (WIDTH, 0) if corners[-1][0] >= corners[0][0] else (0, WIDTH)
    points = [(corners[0][0] + out, corners[0][1] + HEIGHT / 2)]
    for x, y in corners[1:-1]:
        points += [(x + into, y + HEIGHT / 2), (x + out, y + HEIGHT / 2)]
    return [*points, (corners[-1][0] + into, corners[-1][1] + HEIGHT / 2)]


def _arrows(arrows: Sequence[Arrow], paths: Sequence[Sequence[Point]]) -> Iterator[str]:
    """Smooth lines, each stretch leaves and arrives level; the ways to gold on top."""
    for arrow, points in sorted(zip(arrows, paths, strict=True), key=lambda pair: pair[0].gold):
        (x, y), tip = points[-1], 7 if points[-1][0] >= points[0][0] else -7
        line = f"M{points[0][0]:g} {points[0][1]:g}"
        for (from_x, from_y), (to_x, to_y) in pairwise([*points[:-1], (x - tip, y)]):
            middle = (from_x + to_x) / 2
            line += f" C{middle:g} {from_y:g} {middle:g} {to_y:g} {to_x:g} {to_y:g}"
        yield f'<path class="arrow{" way" if arrow.gold else ""}" d="{line}"/>'
        corners = f"{x:g},{y:g} {x - tip:g},{y - 4:g} {x - tip:g},{y + 4:g}"
        yield f'<polygon class="{"waytip" if arrow.gold else "tip"}" points="{corners}"/>'


def _labels(arrows: Sequence[Arrow], nodes: Sequence[Point], paths: Sequence[Sequence[Point]]) -> Iterator[str]:
    """Each label on the first stretch of its arrow, where free; without room only paths to gold have one.

    Two arrows that lead both ways between the same nodes share a label, which says where each points to.
    """
    between: dict[tuple[frozenset[int], str], list[int]] = {}
    for row, arrow in enumerate(arrows):
        between.setdefault((frozenset((arrow.source, arrow.target)), arrow.step.edge), []).append(row)
    taken: list[Box] = []
    for rows in between.values():
        gold, words = any(arrows[row].gold for row in rows), [arrows[rows[0]].step.edge]
        for arrow in (arrows[row] for row in rows):
            point = "▸ " if nodes[arrow.source][0] < nodes[arrow.target][0] else "◂ "
            words.append(f"{point if len(rows) > 1 else ''}{arrow.step.weight:.3g} → {arrow.step.score:.3g}")
        width, height = max(map(len, words)) * LABEL[0], len(words) * LABEL[1]
        (begin_x, begin_y), (end_x, end_y) = paths[rows[0]][:2]
        boxes: list[Box] = []
        for at in PLACES:  # the point of the stretch at this parameter of its Bézier curve
            x = begin_x + (end_x - begin_x) * (1.5 * at * (1 - at) + at**3)
            y = begin_y + (end_y - begin_y) * at * at * (3 - 2 * at)
            boxes.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
        free = [box for box in boxes if not any(_overlap(box, other) for other in taken)]
        if not free and not gold:
            continue
        box = (free or boxes)[0]
        taken.append(box)
        x, y, kind = (box[0] + box[2]) / 2, box[1] + 9, "label waylabel" if gold else "label"
        lines = "".join(f'<tspan x="{x:.1f}" dy="{n and LABEL[1]}">{word}</tspan>' for n, word in enumerate(words))
        area = f'x="{box[0]:.1f}" y="{box[1]:.1f}" width="{width:.1f}" height="{height:.1f}"'
        yield f'<rect class="under" {area}/><text class="{kind}" x="{x:.1f}" y="{y:.1f}">{lines}</text>'


def _overlap(first: Box, second: Box) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]


def _box(node: Node, x: float, y: float) -> Iterator[str]:
    radius = {CHUNK: 4.0, ENTITY: HEIGHT / 2}.get(node.kind, 12.0)
    kind = "gold" if node.gold else "" if node.kind == CHUNK else node.kind
    area = f'x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="{radius:g}"'
    yield f'<g><title>{escape(node.title)}</title><rect class="node {kind}" {area}/>'
    rows = [("", node.title, y + 17), ("small", node.note, y + 32)] if node.note else [("", node.title, y + 25)]
    limit = int((WIDTH - 14) / CHARACTER)
    for style, words, base in rows:
        line = escape(words if len(words) <= limit else words[: limit - 1].rstrip() + "…")
        yield f'<text class="{style}" x="{x + WIDTH / 2:g}" y="{base:g}" text-anchor="middle">{line}</text>'
    yield "</g>"
