"""The graph by rules: which edges, how strong, with which tags."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.graphs import WORLD, corpora

from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.graph.extract import rules
from hopbench.retrieval.graph.extract.rules import rule_tables
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, ENTITY, MENTIONED_IN, NODE_COLUMNS, RELATED_TO
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Passage


def extract(*passages: Passage) -> dict[str, pd.DataFrame]:
    chunks = chunk_passages(passages)
    return dict(rule_tables(chunks, Tagger(chunk.content for chunk in chunks)))


def relation(tables: dict[str, pd.DataFrame], first: str, second: str) -> pd.Series:
    related = tables[RELATED_TO]
    (row,) = related[(related.source == first) & (related.target == second)].itertuples()
    return related.loc[row.Index]


# Four passages (N = 4, ln 5 is the scale). Ann is named by a and d (df 2), Bob by a and b (df 2), Cyd by b and c
# (df 2), Dan only by d (df 1).
FOUR = (
    Passage("a", "Ann Lee", "Ann Lee met Bob Ray."),
    Passage("b", "Bob Ray", "He wrote to Cyd Fox."),
    Passage("c", "Cyd Fox", "Nothing else."),
    Passage("d", "Dan Orr", "He painted Ann Lee. Dan Orr knew Ann Lee."),
)
RARITY_OF_TWO = math.log(5 / 2) / math.log(5)


def test_a_relation_in_a_sentence_that_names_the_subject() -> None:
    # One statement at .9, both ends in 2 of 4 chunks: .9 · ln(5/2)/ln 5 = .512.
    row = relation(extract(*FOUR), "e:ann lee", "e:bob ray")

    assert round(0.9 * RARITY_OF_TWO, 6) == row.strength
    assert (["stated"], "Ann Lee met Bob Ray.") == (row.types, row.description)


def test_a_relation_that_implies_the_subject() -> None:
    # "He wrote to Cyd Fox" in Bob's passage: .8 · ln(5/2)/ln 5.
    row = relation(extract(*FOUR), "e:bob ray", "e:cyd fox")

    assert (round(0.8 * RARITY_OF_TWO, 6), ["implied"]) == (row.strength, row.types)


def test_statements_add_up_as_independent_evidence() -> None:
    # Implied and stated: 1 − (1 − .8)(1 − .9) = .98; rarity is that of the commoner end (Ann, df 2), not of Dan (1).
    row = relation(extract(*FOUR), "e:ann lee", "e:dan orr")

    assert round(0.98 * RARITY_OF_TWO, 6) == row.strength
    assert (["implied", "stated"], "He painted Ann Lee.") == (row.types, row.description)


def test_two_names_in_one_sentence_are_related_at_half_trust() -> None:
    tables = extract(*FOUR, Passage("e", "", "there Cyd Fox saw Dan Orr"))

    # N = 5; Cyd stands in b, c and e (df 3), Dan in d and e: .5 · ln(6/3)/ln 6.
    row = relation(tables, "e:cyd fox", "e:dan orr")
    assert (round(0.5 * math.log(2) / math.log(6), 6), ["named_together"]) == (row.strength, row.types)


def test_names_far_apart_in_a_list_are_not_related() -> None:
    names = [f"N{letter * 3} Xu" for letter in "abcdefgh"]
    passages = [Passage(f"p{n}", name, "") for n, name in enumerate(names)]
    tables = extract(*passages, Passage("z", "", "seen were " + ", ".join(names)))

    # Each name and the five after it: of 8 names 5+5+5+4+3+2+1 = 25 pairs of 28.
    assert 25 == len(tables[RELATED_TO])
    assert not ((tables[RELATED_TO].source == "e:naaa xu") & (tables[RELATED_TO].target == "e:nggg xu")).any()


def test_one_passage_alone_has_strengths_too() -> None:
    (passage,) = FOUR[:1]
    tables = extract(passage)  # N = 1: Bob Ray stands in one passage only and is no entity

    assert ["e:ann lee"] == tables[ENTITY]["id"].tolist()
    assert 0 == len(tables[RELATED_TO])


def test_mentions_have_counts_weights_and_the_tags_of_their_sentences() -> None:
    mentions = extract(*FOUR)[MENTIONED_IN].set_index(["source", "target"])

    # Dan's passage names Ann in both sentences and Dan in the title and the second.
    ann, dan = mentions.loc[("e:ann lee", "d")], mentions.loc[("e:dan orr", "d")]
    assert (2, 1.0, ["ann", "dan", "knew", "lee", "orr", "paint"]) == (ann["count"], ann.weight, ann.tags)
    assert (2, 1.0, ["ann", "dan", "knew", "lee", "orr"]) == (dan["count"], dan.weight, dan.tags)


def test_columns_are_those_of_the_schema() -> None:
    for passages in ((), FOUR):
        tables = extract(*passages)
        assert list(NODE_COLUMNS[ENTITY]) == list(tables[ENTITY])
        for kind in (MENTIONED_IN, RELATED_TO):
            assert list(EDGE_COLUMNS[kind]) == list(tables[kind])


@given(corpora(low=1), st.integers(1, 5))
def test_tables_in_small_parts_are_the_same_tables(passages: Sequence[Passage], rows: int) -> None:
    whole = extract(*passages)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "ROWS_PER_PART", rows)
        parts = extract(*passages)

    assert {name: table.values.tolist() for name, table in whole.items()} == {
        name: table.values.tolist() for name, table in parts.items()
    }


def check(tables: dict[str, pd.DataFrame]) -> None:
    related, mentions = tables[RELATED_TO], tables[MENTIONED_IN]
    assert (related.source < related.target).all()  # an unordered pair stands once, and no end relates to itself
    assert not related.duplicated(["source", "target"]).any()
    assert related.strength.between(0, 1, inclusive="right").all()
    assert not mentions.duplicated(["source", "target"]).any()
    assert mentions.weight.between(0, 1, inclusive="right").all()
    assert (mentions["count"] >= 1).all()
    assert not tables[ENTITY]["id"].duplicated().any()
    assert {*related.source, *related.target, *mentions.source} <= set(tables[ENTITY]["id"])
    assert set(tables[ENTITY]["id"]) == set(mentions.source)
    assert all(len(tags) <= 8 for table in (related, mentions) for tags in table.tags)


@given(corpora(low=0))
def test_any_corpus_gives_a_sound_graph(passages: Sequence[Passage]) -> None:
    check(extract(*passages))


@pytest.mark.parametrize("text", ["x " * 3000, "Ann Lee " * 500, "É\u0301 ß ﷺ \u037a Ann Lee. \u202e", "\x00 Ann", "…"])
def test_odd_texts_give_a_sound_graph(text: str) -> None:
    check(extract(*FOUR, Passage("odd", "Odd One", text), Passage("odder", text[:300], text)))


def test_the_world_relates_its_chains() -> None:
    related = extract(*WORLD)[RELATED_TO]
    pairs = set(zip(related.source, related.target, strict=True))

    chain = {("e:ed wood", "e:tim burton"), ("e:burbank california", "e:tim burton"), ("e:johnny depp", "e:ohio river")}
    assert chain <= pairs
