"""The picture of a traversal, on answers made by hand."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from tests.support.graphs import graph_tables, hand_index

from hopbench.eval.explain import Answer, Names, RankedPassage
from hopbench.eval.report.traversal import MAX_NODES, Node, Traversal, draw, layout, traversal
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Index
from hopbench.retrieval.strategies.baselines import Vector
from hopbench.retrieval.types import Hit, Step

CHUNKS = ["lost", "seed", "way", *(f"z{number:02}" for number in range(20))]
QUESTION = BenchmarkQuestion("q", "Who wrote <Ada> & Bo?", gold=("seed", "way", "lost"))
TO_WAY = (
    Step(MENTIONED_IN, "seed", "e:ada", 1.0, 0.5),
    Step(RELATED_TO, "e:ada", "e:bo", 0.75, 0.375),
    Step(MENTIONED_IN, "e:bo", "way", 1.0, 0.375),
)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Names:
    tables = graph_tables({chunk: f"text of {chunk}" for chunk in CHUNKS}, entities=["e:ada", "e:bo"])
    index: Index = hand_index(tables, tmp_path_factory.mktemp("graph"), dict.fromkeys(CHUNKS, 0.5))
    return Names.read(index)


def answer(*hits: Hit) -> Answer:
    placed = tuple(RankedPassage(hit.chunk_id, rank, hit) for rank, hit in enumerate(hits, 1))
    return Answer("sample:tuned", Vector(), placed, seeds=("seed",), notes={"communities": [("community:1", "A, B")]})


def test_gold_is_drawn_with_its_path_its_rank_or_the_lack_of_one(names: Names) -> None:
    picture = traversal(QUESTION, answer(Hit("seed", 0.9), Hit("way", 0.4, "graph", path=TO_WAY)), names, {"e:ada"})
    assert picture.nodes == [
        Node("seed", "chunk", "seed", "gold · seed · rank 1", gold=True),
        Node("e:ada", "entity", names("e:ada"), "in the question"),
        Node("e:bo", "entity", names("e:bo")),
        Node("way", "chunk", "way", "gold · rank 2", gold=True),
        Node("lost", "chunk", "lost", "gold · not ranked", gold=True),
    ]
    assert [(arrow.source, arrow.target, arrow.gold) for arrow in picture.arrows] == [
        (0, 1, True),
        (1, 2, True),
        (2, 3, True),
    ]


def test_other_hits_are_drawn_while_there_is_room(names: Names) -> None:
    chunks = CHUNKS[3:12]
    others = [Hit(chunk, 0.3, "graph", path=(Step(MENTIONED_IN, "e:bo", chunk, 1.0, 0.3),)) for chunk in chunks]
    alone = BenchmarkQuestion("q", "Who?", gold=("z00",))
    assert len(traversal(alone, answer(*others), names).nodes) == 10
    wide = [Hit(chunk, 0.3, "graph", path=(Step("QUERY", f"e:{chunk}", chunk, 1.0, 1.0),)) for chunk in chunks]
    picture = traversal(alone, answer(*wide), names)
    assert len(picture.nodes) == MAX_NODES
    assert [arrow.gold for arrow in picture.arrows] == [True] + [False] * 6


def test_a_node_outside_the_graph_is_called_as_the_notes_call_it(names: Names) -> None:
    path = (Step("IN_COMMUNITY", "community:1", "e:bo", 0.4, 0.4), Step(MENTIONED_IN, "e:bo", "way", 1.0, 0.4))
    picture = traversal(QUESTION, answer(Hit("way", 0.4, "graph", path=path)), names)
    assert Node("community:1", "other", "A, B", "community 1") in picture.nodes


def test_arrows_go_from_layer_to_layer(names: Names) -> None:
    picture = traversal(QUESTION, answer(Hit("seed", 0.9), Hit("way", 0.4, "graph", path=TO_WAY)), names)
    assert [layer for layer, _ in layout(picture)[0][:4]] == [0, 1, 2, 3]


def test_the_drawing_is_well_formed_and_the_same_again(names: Names) -> None:
    picture = traversal(QUESTION, answer(Hit("seed", 0.9), Hit("way", 0.4, "graph", path=TO_WAY)), names)
    drawn = draw(picture)
    root = ElementTree.fromstring(drawn)
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:2] == ["Who wrote <Ada> & Bo?", "sample:tuned"]
    assert "RELATED_TO0.75 → 0.375" in texts
    assert texts.count("gold · rank 2") == 1
    assert drawn == draw(picture)


def test_arrows_both_ways_between_two_nodes_share_a_label(names: Names) -> None:
    back = (Step(MENTIONED_IN, "way", "e:bo", 1.0, 0.5), Step(MENTIONED_IN, "e:bo", "seed", 1.0, 0.25))
    there = (Step(MENTIONED_IN, "seed", "e:bo", 1.0, 0.75), Step(MENTIONED_IN, "e:bo", "way", 1.0, 0.125))
    hits = Hit("seed", 0.9, "graph", path=back), Hit("way", 0.4, "graph", path=there)
    root = ElementTree.fromstring(draw(traversal(QUESTION, answer(*hits), names)))
    labels = [text for text in root.iter("{http://www.w3.org/2000/svg}text") if "label" in (text.get("class") or "")]
    written = {"".join(label.itertext()) for label in labels}
    assert written == {"MENTIONED_IN▸ 1 → 0.5◂ 1 → 0.125", "MENTIONED_IN▸ 1 → 0.25◂ 1 → 0.75"}


def test_nothing_to_draw_is_still_a_picture() -> None:
    assert ElementTree.fromstring(draw(Traversal("Who?", "vector"))).get("role") == "img"
