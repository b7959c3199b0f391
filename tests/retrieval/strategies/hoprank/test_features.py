"""hoprank's features, each derived by hand on the twelve passages of `WORLD`.

Words stand in so many of the 12 chunks (title and text): ed, wood, 1994, film 1; directed 2; born, johnny, depp 3;
director, starring 0. idf = ln(1 + (12 − df + ½)/(df + ½)), ln 12 for a word that no chunk has.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.support.graphs import WORLD, built_index, graph_tables, hand_index, plan_of

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.hoprank import HopRank
from hopbench.retrieval.strategies.hoprank.candidates import BASE_FEATURES, MAX_TITLED, Candidates
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE
from hopbench.retrieval.strategies.hoprank.edges import (
    EDGE_FEATURES,
    FORWARD,
    KINDS,
    REVERSE,
    SAME_TITLE,
    SHARED,
    TITLE_FAN,
    edge_features,
    edges_from,
)
from hopbench.retrieval.strategies.hoprank.words import Lookup
from hopbench.retrieval.types import Counters, Passage, Question

ONE, TWO, THREE = (math.log1p((12 - df + 0.5) / (df + 0.5)) for df in (1, 2, 3))
NONE = math.log(12)
ED_WOOD, BURTON, DEPP, UNTITLED = 0, 1, 3, 11  # rows: passages sorted by id


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


def asked(index: Index, text: str) -> Candidates:
    (found,) = HopRank().candidates(Batch(index, [Question("q", text)]), Counters())
    return found


def base(candidates: Candidates, *chunks: int) -> dict[str, list[float]]:
    return dict(zip(BASE_FEATURES, candidates.features(np.array(chunks)).T.tolist(), strict=True))


BORN = "Where was the director of Ed Wood born?"  # director, ed, wood, born; of them ed and wood are linked
ALL = NONE + 2 * ONE + THREE


@pytest.mark.parametrize(
    ("feature", "ed_wood", "burton"),
    [
        ("link", 2 * ONE / ALL, 0.0),  # the words that name the title; one chunk has it; titles are trusted with 1
        ("title_found", 2 / 3, 0.0),  # "Ed Wood (film)": ed and wood stand in the question, film (idf as theirs) not
        ("coverage", 2 * ONE / ALL, THREE / ALL),  # "Tim Burton was born …"
        ("sentence", 2 * ONE / ALL, THREE / ALL),  # the title and "Ed Wood is …"; "Tim Burton was born …"
        ("open_coverage", 0.0, THREE / (NONE + THREE)),  # director and born are open
        ("rare", 1.0, 1 / 3),  # ed is in one chunk; born in three
        ("rarities", 2.0, 1 / 3),  # ed and wood are in one chunk each; born in three
        ("pair", 0.0, 0.0),  # among twelve chunks no word is rare enough
        ("capitals", 1.0, 0.0),  # Ed and Wood; Where is a stop word
    ],
)
def test_base_features_by_hand(index: Index, feature: str, ed_wood: float, burton: float) -> None:
    values = base(asked(index, BORN), ED_WOOD, BURTON)[feature]

    assert [ed_wood, burton] == pytest.approx(values, abs=1e-5)  # 1e-6 keeps denominators from 0


def test_scores_are_measured_against_the_pool_s(index: Index) -> None:
    """BM25 against the best one; cosines between the pool's first and its last one, here of four chunks."""
    batch = Batch(index, [Question("q", BORN)])
    (candidates,) = HopRank(depth=4).candidates(batch, Counters())
    found = base(candidates, *range(len(WORLD)))
    (lexical,), (dense,) = batch.lexical, batch.dense
    scores = dict(zip(lexical.rows.tolist(), lexical.scores.tolist(), strict=True))
    first, last = dense.scores[0], dense.scores[3]
    cosines = dict(zip(dense.rows.tolist(), dense.scores.tolist(), strict=True))

    wanted = [scores.get(row, 0.0) / max(scores.values()) for row in range(len(WORLD))]
    assert wanted == pytest.approx(found["bm25"], abs=1e-5)
    wanted = [max((cosines[row] - last) / (first - last), -1.0) for row in range(len(WORLD))]
    assert wanted == pytest.approx(found["dense"], abs=1e-4)
    assert (1.0, True) == (max(found["walk"]), all(0.0 <= value <= 1.0 for value in found["walk"]))


def test_rarities_are_at_most_two(tmp_path: Path) -> None:
    """Three words of one chunk each would count 3; two of them, and one of two chunks, 1 + ½."""
    passages = [Passage("a", "", "Amber willow quartz."), Passage("b", "", "Cedar moss."), Passage("c", "", "Moss.")]
    index = built_index(plan_of(passages), tmp_path)

    assert [2.0] == base(asked(index, "amber willow quartz"), 0)["rarities"]
    assert [1.5] == base(asked(index, "cedar moss"), 1)["rarities"]
    assert [1.0] == base(asked(index, "cedar moss"), 1)["rare"]


def test_a_pair_is_counted_in_the_pool(tmp_path: Path) -> None:
    """Of 60 chunks two have "amber" and "willow": idf ln(1 + 58.5/2.5) = 3.2, so both are rare; the pool has both."""
    passages = [Passage(f"p{n:02}", "", f"Plain text {n}.") for n in range(58)]
    passages += [Passage(f"q{n}", "", "An amber willow.") for n in range(2)]
    candidates = asked(built_index(plan_of(passages), tmp_path), "amber willow")

    assert [0.0, 0.5, 0.5] == base(candidates, 0, 58, 59)["pair"]


def test_the_best_chunk_has_full_bm25_and_walk(index: Index) -> None:
    values = base(asked(index, BORN), ED_WOOD)

    assert [1.0, 1.0] == pytest.approx([*values["bm25"], *values["walk"]], abs=1e-6)


STARRING = "Who directed the 1994 film starring Johnny Depp?"  # johnny and depp are linked, the rest is open
OPEN = TWO + 2 * ONE + NONE
EVERY = OPEN + 2 * THREE
KNOWN = (TWO + 2 * ONE) / OPEN  # directed, 1994 and film of the open words


def edge(candidates: Candidates, kind: int, anchor: int, target: int) -> dict[str, float]:
    """The features of the only edge."""
    found = edges_from(np.array([anchor]), candidates.corpus.mentions, candidates.in_pool)
    (values,) = edge_features(candidates, found.where((found.kind == kind) & (found.target == target)))
    return dict(zip(EDGE_FEATURES, values.tolist(), strict=True))


@pytest.mark.parametrize(
    ("kind", "anchor", "target", "expected"),
    [
        # "Ed Wood is a 1994 film directed by Tim Burton." leads to Tim Burton, who directed too.
        (
            FORWARD,
            ED_WOOD,
            BURTON,
            {
                "window": KNOWN,  # "is a 1994 film directed by" are the six words before
                "sentence": KNOWN,
                "early": 1.0,  # the first of two mentions
                "focus": 1 / math.sqrt(2),
                "gain": 0.0,  # "He directed Beetlejuice": directed is known already
                "together": (TWO + 2 * ONE + 2 * THREE) / EVERY,  # all but starring
                "rarity": (math.log(13 / 4) + 1) / (math.log(13) + 1),  # 4 chunks mention Tim Burton
                "asked": 0.0,
                "narrow": 1.0,  # one chunk has the title
                "trust": 1.0,
                "far_window": 0.0,
                "far_sentence": 0.0,
                "in_title": 0.0,
            },
        ),
        # "It stars Johnny Depp as Ed Wood.": no open word around it, but the question names him.
        (FORWARD, ED_WOOD, DEPP, {"window": 0.0, "early": 1 / 2, "asked": 1.0, "sentence": 0.0}),
        # Johnny Depp is mentioned by Ed Wood and by the untitled passage: a fan of 2. Ed Wood adds what Depp lacks.
        (
            REVERSE,
            DEPP,
            ED_WOOD,
            {"narrow": 1 / math.sqrt(2), "gain": KNOWN, "early": 1 / 2, "target_bm25": 1.0},
        ),
        # Both name Johnny Depp; the open words stand around neither mention.
        (SHARED, ED_WOOD, UNTITLED, {"narrow": 1 / math.sqrt(2), "far_window": 0.0, "asked": 1.0}),
        # From the other side the target's own mention has them in its sentence's twin, "It stars …": none either.
        (SHARED, UNTITLED, ED_WOOD, {"far_sentence": 0.0, "early": 1.0, "focus": 1 / math.sqrt(2)}),
    ],
    ids=["forward", "forward to a named one", "reverse", "shared", "shared back"],
)
def test_edge_features_by_hand(index: Index, kind: int, anchor: int, target: int, expected: dict[str, float]) -> None:
    found = edge(asked(index, STARRING), kind, anchor, target)

    assert expected == pytest.approx({name: found[name] for name in expected}, abs=1e-6)


def test_a_target_s_mention_has_surroundings_of_its_own(index: Index) -> None:
    """Ed Wood and Michael Keaton share Tim Burton: "He played Batman for Tim Burton." has both open words."""
    facts = edge(asked(index, "Who played Batman?"), SHARED, ED_WOOD, 6)

    batman_and_played = 1.0  # both words are open and nothing else is asked
    assert batman_and_played == pytest.approx(facts["far_window"], abs=1e-5)
    assert batman_and_played == pytest.approx(facts["far_sentence"], abs=1e-5)
    assert 0.0 == facts["window"]


def test_a_mention_in_a_title_shows(tmp_path: Path) -> None:
    index = built_index(
        plan_of([Passage("a", "Ohio River", "A river."), Passage("b", "Bridges of the Ohio River", "A list.")]),
        tmp_path,
    )
    candidates = asked(index, "Which bridges?")

    assert 1.0 == edge(candidates, REVERSE, 0, 1)["in_title"]
    assert 1.0 == edge(candidates, FORWARD, 1, 0)["in_title"]


def test_residual_and_likeness_by_hand(tmp_path: Path) -> None:
    """The question is e0, the anchor .6·e0 + .8·e1, the target .5·e0 + √.75·e2.

    What the anchor leaves of the question is e0 − .6·anchor = .64·e0 − .48·e1, of length .8: .8·e0 − .6·e1.
    """
    tables = graph_tables({"a": "text a", "b": "text b"}, entities=["e:x"], mentions=[("e:x", "a"), ("e:x", "b")])
    candidates = asked(hand_index(tables, tmp_path, {"a": 0.6, "b": 0.5}), "anything")
    facts = edge(candidates, SHARED, 0, 1)

    assert 0.8 * 0.5 == pytest.approx(facts["residual"], abs=1e-6)
    assert 0.6 * 0.5 == pytest.approx(facts["alike"], abs=1e-6)
    assert 0.0 == facts["window"]  # "e:x" is spelled out in neither text


def test_a_question_that_a_passage_repeats_leaves_nothing(index: Index) -> None:
    """Vectors stand on a grid: what rounding leaves of the question is no direction."""
    told = index.chunks[ED_WOOD].content
    facts = edge(asked(index, told), FORWARD, ED_WOOD, BURTON)

    assert 0.0 == facts["residual"]


def test_of_a_title_of_very_many_chunks_only_those_in_the_pool_are_led_to(tmp_path: Path) -> None:
    """A thousand minutes of "Harbour Board" would make an edge each, from all that name it and from one another."""
    minutes = [Passage(f"m{number:04}", "Harbour Board", f"Sitting {number}.") for number in range(TITLE_FAN + 100)]
    passages = [*minutes, Passage("a", "Ada Krell", "She sat on the Harbour Board.")]
    candidates = asked(built_index(plan_of(passages), tmp_path), "Who spoke on the Harbour Board in sitting 17?")
    pool = candidates.pool
    found = edges_from(np.array([0, 1]), candidates.corpus.mentions, candidates.in_pool)

    titled = [kind in (FORWARD, SAME_TITLE) for kind in found.kind.tolist()]
    assert MAX_TITLED <= len(pool) <= MAX_TITLED + 101  # beside the first 50 of two searches
    assert {FORWARD, SAME_TITLE} <= set(found.kind.tolist())
    assert set(found.target[titled].tolist()) <= set(pool.tolist())
    few = edges_from(np.array([0]), candidates.corpus.mentions, Lookup.of(np.zeros(0, np.int64), np.zeros(0, bool)))
    assert FORWARD not in few.kind


def test_edges_of_every_kind(tmp_path: Path) -> None:
    passages = [
        Passage("a", "Corin (poet)", "He met Ada Krell."),
        Passage("b", "Corin (city)", "A city."),
        Passage("c", "Ada Krell", "She sings."),
        Passage("d", "Bo Marn", "He knew Ada Krell and nobody else."),
    ]
    candidates = asked(built_index(plan_of(passages), tmp_path), "Who?")
    found = edges_from(np.array([0, 2]), candidates.corpus.mentions, candidates.in_pool)

    assert {
        (FORWARD, 0, 2),  # the poet's passage names Ada Krell
        (SHARED, 0, 3),  # so does Bo Marn's
        (SAME_TITLE, 0, 1),  # the poet and the city
        (REVERSE, 2, 0),  # Ada Krell is named there
        (REVERSE, 2, 3),
    } == set(zip(found.kind.tolist(), found.anchor.tolist(), found.target.tolist(), strict=True))
    same = found.where(found.kind == SAME_TITLE)
    assert ([NOWHERE], [2]) == (same.mention.tolist(), same.fan.tolist())


def test_every_feature_is_tried_by_hand() -> None:
    text = Path(__file__).read_text(encoding="utf-8")

    assert [] == [name for name in (*BASE_FEATURES, *EDGE_FEATURES) if f'"{name}"' not in text]


def test_an_edge_knows_its_target_s_own_scores(index: Index) -> None:
    candidates = asked(index, STARRING)
    facts, own = edge(candidates, FORWARD, ED_WOOD, DEPP), base(candidates, DEPP)

    assert [facts["target_dense"]] == own["dense"]
    assert [facts["target_bm25"]] == own["bm25"]


def test_no_edges_have_no_features(index: Index) -> None:
    candidates = asked(index, BORN)
    nothing = edges_from(np.zeros(0, np.int64), candidates.corpus.mentions, candidates.in_pool)

    assert (0, len(EDGE_FEATURES)) == edge_features(candidates, nothing).shape
    assert 5 == len(KINDS)
