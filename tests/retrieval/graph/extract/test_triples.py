"""The graph from ready triples."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.graph.extract.triples import triple_tables
from hopbench.retrieval.graph.schema import ENTITY, MENTIONED_IN, RELATED_TO, GraphTables
from hopbench.retrieval.graph.stores.contents import fingerprint
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Passage, Triple

PASSAGES = (
    Passage("a", "Ed Wood (film)", "Tim Burton directed Ed Wood. Burton loved it."),
    Passage("b", "", "Johnny Depp acted for Tim Burton."),
)


def extract(
    *triples: Triple, passages: Sequence[Passage] = PASSAGES, max_tokens: int = 1200
) -> dict[str, pd.DataFrame]:
    chunks = chunk_passages(passages, max_tokens)
    return dict(triple_tables(chunks, triples, Tagger(chunk.content for chunk in chunks)))


def relations(tables: dict[str, pd.DataFrame]) -> list[tuple[object, ...]]:
    related = tables[RELATED_TO]
    return list(zip(related.source, related.target, related.strength, related.types, strict=True))


def test_strength_is_the_confidence_or_one() -> None:
    tables = extract(
        Triple("a", "Ed Wood", "directed by", "Tim Burton", 0.9), Triple("b", "Johnny Depp", "works for", "Tim Burton")
    )

    assert [
        ("e:ed wood", "e:tim burton", 0.9, ["directed by"]),
        ("e:johnny depp", "e:tim burton", 1.0, ["works for"]),
    ] == relations(tables)


def test_parallel_relations_merge_whatever_their_direction_and_passage() -> None:
    tables = extract(
        Triple("a", "Ed Wood", "director", "Tim Burton", 0.4),
        Triple("b", "tim burton", "made", "ED WOOD", 0.7),
        Triple("a", "Ed Wood", "director", "Tim Burton", 0.2),
    )

    assert [("e:ed wood", "e:tim burton", 0.7, ["director", "made"])] == relations(tables)


def test_self_loops_and_nameless_ends_are_dropped_but_their_mentions_stay() -> None:
    tables = extract(Triple("b", "Tim Burton", "is", "TIM BURTON"), Triple("b", "Vampira", "is", " "))

    assert [] == relations(tables)
    assert {("e:tim burton", "b"), ("e:vampira", "b"), ("e:ed wood", "a")} == set(
        zip(tables[MENTIONED_IN].source, tables[MENTIONED_IN].target, strict=True)
    )


def test_a_relation_without_confidence_is_no_edge() -> None:
    assert [] == relations(extract(Triple("a", "Ed Wood", "maybe", "Tim Burton", 0.0)))


def test_a_title_is_an_entity_with_full_weight_and_a_triple_s_name_has_less() -> None:
    tables = extract(Triple("a", "Ed Wood", "directed by", "Tim Burton"))

    mentions = tables[MENTIONED_IN].set_index(["source", "target"])
    # "Ed Wood" stands in "Ed Wood (film)." and in the first sentence; "Tim Burton" once.
    assert (2, 1.0) == tuple(mentions.loc[("e:ed wood", "a"), ["count", "weight"]])
    assert (1, 0.7) == tuple(mentions.loc[("e:tim burton", "a"), ["count", "weight"]])
    assert [("e:ed wood", "Ed Wood", "film"), ("e:tim burton", "Tim Burton", "entity")] == list(
        zip(tables[ENTITY].id, tables[ENTITY].name, tables[ENTITY].type, strict=True)
    )


def test_a_relation_s_tags_are_its_words_and_those_of_the_sentences_with_both_ends() -> None:
    (tags,) = extract(Triple("a", "Ed Wood", "was directed by", "Tim Burton"))[RELATED_TO].tags

    assert ["burton", "direct", "ed", "tim", "wood"] == tags


def test_a_triple_is_mentioned_in_the_parts_of_a_split_passage_that_name_it() -> None:
    passage = Passage("long", "", "Ed Wood slept well there. Tim Burton wrote much later.")

    tables = extract(Triple("long", "Ed Wood", "inspired", "Tim Burton"), passages=[passage], max_tokens=6)

    assert {("e:ed wood", "long#0"), ("e:tim burton", "long#1")} == set(
        zip(tables[MENTIONED_IN].source, tables[MENTIONED_IN].target, strict=True)
    )


def test_a_name_that_no_part_spells_out_is_mentioned_in_all_of_them() -> None:
    passage = Passage("long", "", "He slept well there. She wrote much later.")

    tables = extract(Triple("long", "Ed Wood", "inspired", "Tim Burton"), passages=[passage], max_tokens=6)

    assert ["long#0", "long#1"] == sorted(tables[MENTIONED_IN].target[tables[MENTIONED_IN].source == "e:ed wood"])


@given(
    st.permutations(
        [
            Triple("a", "Ed Wood", "director", "Tim Burton", 0.4),
            Triple("a", "ED WOOD", "made by", "TIM BURTON", 0.4),
            Triple("a", "ed Wood", "star", "Johnny Depp", 0.4),
            Triple("b", "tim burton", "knows", "johnny depp", 0.4),
        ]
    )
)
def test_the_order_of_the_triples_changes_nothing(triples: list[Triple]) -> None:
    def digest(ordered: Sequence[Triple]) -> str:
        tables = extract(*ordered)
        return fingerprint(GraphTables({ENTITY: tables[ENTITY]}, {k: tables[k] for k in (MENTIONED_IN, RELATED_TO)}))

    assert digest(sorted(triples, key=str)) == digest(triples)


@pytest.mark.parametrize("name", ['a"b', "O'Neal\\", "日本", "x " * 400, "\u0301", "\n"])
def test_any_name_is_taken(name: str) -> None:
    tables = extract(Triple("a", name, name, "Tim Burton"))

    assert set(tables[MENTIONED_IN].source) <= set(tables[ENTITY].id)
