"""Document 4's entity expansion: its stages, golden counts, the search for chunks, and the language model's seams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.entity_graphs import index_of, with_names
from tests.support.graphs import graph_tables

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Batch, Index, Linker, Services
from hopbench.retrieval.strategies.baselines import Vector
from hopbench.retrieval.strategies.entity_expansion import EntityExpansion, Expanded
from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.types import Counters, Question, Ranking, Step

SEEDS = {"e:abortion": "Abortion", "e:implications": "Global Implications"}
NEAR = {f"e:n{n}": f"Near {n}" for n in range(5)}
FAR = {f"e:f{n}": f"Far {n}" for n in range(3)}
OTHER = {f"e:s{n}": f"Synonym {n}" for n in range(10)}
NAMES = SEEDS | NEAR | FAR | OTHER
QUESTION = "What are the Global Implications of Abortion?"


class Proposed:
    """A language model's synonyms: the next three for each seed, whatever is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Sequence[tuple[int, str]], int]] = []

    def __call__(
        self, counters: Counters, linker: Linker, wanted: Sequence[tuple[int, str]], limit: int
    ) -> list[list[str]]:
        self.asked.append((wanted, limit))
        counters.llm_calls += 1
        return [[f"synonym {5 * number + n}" for n in range(5)] for number in range(len(wanted))]


def sparse(folder: Path, **cosines: float) -> Index:
    """Two seeds and five neighbours (7 entities), three more two hops away, ten names that nothing relates to them."""
    chunks = {f"c{n}": f"passage {n}" for n in range(6)}
    mentions = [("e:abortion", "c1"), ("e:n0", "c1"), ("e:n1", "c2"), ("e:n2", "c2"), ("e:n3", "c2"), ("e:n0", "c3")]
    related = [
        *[("e:abortion", f"e:n{n}", 0.9 - 0.1 * n) for n in range(3)],
        *[("e:implications", f"e:n{n}", 0.5) for n in range(2, 5)],
        *[("e:n0", f"e:f{n}", 0.5) for n in range(3)],
    ]
    tables = graph_tables(chunks, entities=NAMES, mentions=[*mentions, ("e:s0", "c5")], related=related)
    told = dict.fromkeys(NAMES, "A description that is no passage.")
    return index_of(with_names(tables, NAMES, told), folder, dict.fromkeys(chunks, 0.0) | cosines)


def rank(index: Index, text: str = QUESTION, **parameters: object) -> Ranking:
    strategy = EntityExpansion(**{"fill": False, **parameters})  # type: ignore[arg-type]
    (ranking,) = strategy.rank(Batch(index, [Question("q", text)]), Counters())
    return ranking


def test_seven_entities_and_six_synonyms_are_thirteen(tmp_path: Path) -> None:
    index, llm = sparse(tmp_path), Proposed()
    index.services = Services(synonyms=llm)
    notes = rank(index).notes
    assert llm.asked == [([(0, "e:implications"), (0, "e:abortion")], 3)]  # the first two seeds, as they stand there
    assert notes["entities"] == ["e:implications", "e:abortion"]
    assert notes["related"] == 5  # 2 + 5 = 7 < 10
    assert len(notes["synonyms"]) == 6  # type: ignore[arg-type]  # 2 seeds × 3
    assert len(notes["matched_on"]) == 13  # type: ignore[arg-type]


@pytest.mark.parametrize(("wanted", "expected"), [(1, 2), (2, 4), (5, 10)])
def test_synonyms_are_at_most_max_synonyms_for_each_of_two_seeds(tmp_path: Path, wanted: int, expected: int) -> None:
    index = sparse(tmp_path)
    index.services = Services(synonyms=Proposed())
    assert len(rank(index, max_synonyms=wanted).notes["synonyms"]) == expected  # type: ignore[arg-type]


def test_synonyms_are_asked_for_only_below_the_threshold(tmp_path: Path) -> None:
    index, llm = sparse(tmp_path), Proposed()
    index.services = Services(synonyms=llm)
    assert rank(index, min_entities=7).notes["synonyms"] == []  # 7 is not below 7
    assert rank(index, hops=2).notes["synonyms"] == []  # 2 + 5 + 3 = 10 is not below 10
    assert rank(index, use_synonyms=False).notes["synonyms"] == []
    assert llm.asked == []
    assert len(rank(index, min_entities=8).notes["synonyms"]) == 6  # type: ignore[arg-type]


def test_a_synonym_needs_the_embedders_cosine_to_its_seed_or_the_given_one(tmp_path: Path) -> None:
    # Seeds are named by the question's own direction, so these are their cosines with the seed.
    index = sparse(tmp_path, **{"synonym 0": 0.71, "synonym 1": 0.69, "synonym 2": 0.7, "synonym 5": 0.1})
    index.services = Services(synonyms=Proposed())
    assert rank(index).notes["synonyms"] == ["e:s0", "e:s2", "e:s6", "e:s7"]  # .69 and .1 are below .7
    assert rank(index, synonym_threshold=0.69).notes["synonyms"] == ["e:s0", "e:s1", "e:s2", "e:s6", "e:s7"]
    assert rank(index, synonym_threshold=0.705).notes["synonyms"] == ["e:s0", "e:s6", "e:s7"]


def test_without_a_language_model_the_nearest_names_are_the_synonyms(tmp_path: Path) -> None:
    given = dict.fromkeys(NAMES.values(), 0.1) | {"Abortion": 1.0, "Synonym 4": 0.9, "Synonym 7": 0.8, "Near 3": 0.95}
    index = sparse(tmp_path, **given)
    ranking = rank(index, "What of Abortion?")
    assert ranking.notes["synonyms"] == ["e:n3", "e:s4", "e:s7"]  # nearest first; Near 3 is no neighbour of Abortion


def test_the_reranking_keeps_the_entities_nearest_to_the_question(tmp_path: Path) -> None:
    given = {name: 0.01 * place for place, name in enumerate(NAMES.values())}
    index = sparse(tmp_path, **given)
    everything = {"use_synonyms": False, "max_ranked": 3}
    assert rank(index, **everything).notes["matched_on"] == ["e:n4", "e:n3", "e:n2"]
    assert rank(index, keep_seeds=True, **everything).notes["matched_on"] == ["e:implications", "e:abortion", "e:n4"]
    assert len(rank(index, semantic_reranking=False, **everything).notes["matched_on"]) == 7  # type: ignore[arg-type]


def test_chunks_are_ranked_by_matched_entities_then_cosine_then_id(tmp_path: Path) -> None:
    index = sparse(tmp_path, c1=0.2, c2=0.1)
    hits = rank(index, use_synonyms=False).hits
    # c2: Near 1, 2, 3. c1: Abortion, Near 0. c3: Near 0.
    assert [(hit.chunk_id, hit.components["entity_count"]) for hit in hits] == [("c2", 3), ("c1", 2), ("c3", 1)]
    assert hits[0].score == pytest.approx(3 + (1 + 0.1) / 4)
    assert hits[1].components == {"entity_count": 2.0, "cosine": pytest.approx(0.2), "matched": 2.0}
    tied = rank(sparse(tmp_path / "tied", c1=0.2, c3=0.3), "Near 0?", use_related=False, use_synonyms=False).hits
    assert [hit.chunk_id for hit in tied] == ["c3", "c1"]  # one entity each, the nearer first
    equal = rank(sparse(tmp_path / "equal"), "Near 0?", use_related=False, use_synonyms=False).hits
    assert [hit.chunk_id for hit in equal] == ["c1", "c3"]


def test_a_hit_tells_its_matched_entities_and_how_each_was_found(tmp_path: Path) -> None:
    hit = next(hit for hit in rank(sparse(tmp_path), use_synonyms=False).hits if hit.chunk_id == "c1")
    assert hit.path == (
        Step(MENTIONED_IN, "e:abortion", "c1", 1.0, 1.0),
        Step(RELATED_TO, "e:abortion", "e:n0", 0.9, 0.9),
        Step(MENTIONED_IN, "e:n0", "c1", 1.0, 2.0),
    )


def test_an_entity_keeps_its_strongest_relation_and_a_farther_one_the_product(tmp_path: Path) -> None:
    ranking = rank(sparse(tmp_path), use_synonyms=False)
    (step,) = {s for hit in ranking.hits for s in hit.path if s.target == "e:n2"}
    assert (step.source, step.weight) == ("e:abortion", 0.7)  # .9 − .1 · 2, over .5 from the other seed
    deeper = rank(sparse(tmp_path / "2"), hops=2, use_synonyms=False, count="idf_strength").notes
    assert deeper["related"] == 8


def test_equally_strong_relations_go_to_the_smaller_id() -> None:
    related = {"e:z": [("e:t", 0.5)], "e:b": [("e:t", 0.5)], "e:t": []}
    for seeds in (["e:z", "e:b"], ["e:b", "e:z"]):
        expanded = Expanded(seeds)
        assert expanded.grow(seeds, related) == ["e:t"]
        assert expanded.path("e:t") == (Step(RELATED_TO, "e:b", "e:t", 0.5, 0.5),)


def test_a_rare_and_strongly_related_entity_counts_more_when_told_so(tmp_path: Path) -> None:
    index = sparse(tmp_path)
    plain, idf, strength = [
        {hit.chunk_id: hit.components["matched"] for hit in rank(index, count=count, use_synonyms=False).hits}
        for count in ("entities", "idf", "idf_strength")
    ]
    assert plain["c3"] == 1
    assert idf["c3"] == pytest.approx(1.252763)  # ln(7/2): Near 0 is in two of six chunks
    assert strength["c3"] == pytest.approx(0.9 * 1.252763)


def test_full_chunks_and_never_descriptions_come_back(tmp_path: Path) -> None:
    index = sparse(tmp_path)
    contents = {chunk.id: chunk.content for chunk in index.chunks}
    ranking = rank(index, use_synonyms=False)
    assert {hit.chunk_id for hit in ranking.hits} <= contents.keys()
    rows = index.store.read(cypher.ENTITY_SEARCH, entities=ranking.notes["matched_on"], top_k=10)
    assert [(row["id"], row["chunk_text"]) for row in rows] == [
        (h.chunk_id, contents[h.chunk_id]) for h in ranking.hits
    ]
    assert [row["entity_count"] for row in rows] == [3, 2, 1]
    assert sorted(rows[1]["matched_entities"]) == ["Abortion", "Near 0"]


def test_a_question_without_entities_gets_the_vector_ranking_and_says_so(tmp_path: Path) -> None:
    index = sparse(tmp_path, c4=0.5, c0=0.3)
    ranking = rank(index, "what is that?")
    (vector,) = Vector().rank(Batch(index, [Question("q", "what is that?")]), Counters())
    assert [hit.chunk_id for hit in ranking.hits] == [hit.chunk_id for hit in vector.hits]
    assert ranking.notes["fallback"] == "the question names no entity: the vector ranking"
    assert "fallback" not in rank(index).notes


def test_the_entities_of_a_language_model_take_the_place_of_the_surface_ones(tmp_path: Path) -> None:
    index = sparse(tmp_path)
    index.services = Services(question_entities=lambda questions, counters, linker: [[linker.resolve("near 3") or ""]])
    ranking = rank(index, "what is that?", use_synonyms=False)
    assert ranking.notes["entities"] == ["e:n3"]
    assert ranking.hits[0].chunk_id == "c2"


def test_the_hop_free_ranking_can_have_a_share(tmp_path: Path) -> None:
    index = sparse(tmp_path, c4=0.9)
    scores = {hit.chunk_id: hit for hit in rank(index, use_synonyms=False, initial_weight=0.5).hits}
    assert scores["c4"].score == pytest.approx(0.5)  # first in the vector ranking, no entity: .5 · 1 + .5 · 0
    assert scores["c4"].origin == "seed"
    assert scores["c2"].score == pytest.approx(0.5)  # best by entities, last by cosine


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_hop_of_a_batch_is_one_round_trip(tmp_path: Path, hops: int) -> None:
    index, counters = sparse(tmp_path), Counters()
    questions = [Question("q1", QUESTION), Question("q2", "What of Far 1?"), Question("q3", "that?")]
    EntityExpansion(hops=hops).rank(Batch(index, questions), counters)
    assert counters.round_trips == len(index.store.queries) == 2 + hops  # type: ignore[attr-defined]  # names, chunks
    assert set(counters.stage_seconds) == {"entities", "graph", "synonyms", "name embedding", "reranking", "chunks"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hops", 4),
        ("min_entities", 4),
        ("min_entities", 21),
        ("max_synonyms", 0),
        ("max_synonyms", 6),
        ("count", "sum"),
    ],
)
def test_values_outside_the_bounds_are_refused(field: str, value: object) -> None:
    with pytest.raises(ParameterError, match=rf"entity_expansion\.{field} = .* it takes"):
        EntityExpansion(**{field: value})  # type: ignore[arg-type]
