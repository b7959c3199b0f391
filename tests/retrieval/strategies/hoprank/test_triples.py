"""Triples beside the rules' graph, and hoprank's edges over them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from tests.support.graphs import ASKED, WORLD, built_index, corpora, plan_of

from hopbench.eval.training.examples import TrainingExample, training_examples
from hopbench.eval.training.trainer import NEVER, Trainer
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.graph.extract.rules import rule_tables
from hopbench.retrieval.graph.extract.triples import with_triples
from hopbench.retrieval.graph.schema import ENTITY, MENTIONED_IN, RELATED_TO, RULE_RELATIONS
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.hoprank import HopRank
from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE
from hopbench.retrieval.strategies.hoprank.edges import TRIPLE, TRIPLE_FEATURES, Edges, edge_features, triple_edges
from hopbench.retrieval.strategies.hoprank.paths import OVER_TRIPLES, EdgeTable, path_features
from hopbench.retrieval.strategies.hoprank.weights import shipped, to_json
from hopbench.retrieval.strategies.hoprank.words import Relations
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Counters, Passage, Question, Ranking, Triple

PASSAGES = [
    Passage("a", "Ada Krell", "She sings in Tolva."),
    Passage("b", "Bo Marn", "He wrote songs."),
    Passage("c", "Chronicle", "Much is told here of Tolva."),
    Passage("d", "Lake Ister", "Bo Marn swam there."),
]
TOLD = [Triple("c", "Ada Krell", "married songs", "Bo Marn", 0.5)]
A, B, C, D = range(4)


def index_of(tmp_path: Path, triples: list[Triple] = TOLD, passages: list[Passage] = PASSAGES) -> Index:
    return built_index(plan_of(passages, triples=triples, extractor="rules+triples"), tmp_path)


def asked(index: Index, text: str) -> Candidates:
    (found,) = HopRank().candidates(Batch(index, [Question("q", text)]), Counters())
    return found


def ranked(index: Index, text: str, strategy: HopRank | None = None) -> Ranking:
    (found,) = (strategy or HopRank()).rank(Batch(index, [Question("q", text)]), Counters())
    return found


def told(candidates: Candidates) -> Relations:
    assert candidates.corpus.relations is not None
    return candidates.corpus.relations


def edges_of(candidates: Candidates, *anchors: int) -> Edges:
    return triple_edges(np.array(anchors), candidates.corpus.mentions, told(candidates), candidates.in_pool)


def tables(*triples: Triple) -> dict[str, pd.DataFrame]:
    chunks = chunk_passages(PASSAGES, 1200)
    tagger = Tagger(chunk.content for chunk in chunks)
    return dict(with_triples(rule_tables(chunks, tagger), chunks, triples, tagger))


def test_the_rules_entities_stay_and_a_triple_s_are_added() -> None:
    rules, both = tables(), tables(Triple("d", "Bo Marn", "loved", "Vampira"))

    assert [*rules[ENTITY].id, "e:vampira"] == list(both[ENTITY].id)
    assert [*rules[MENTIONED_IN].itertuples(index=False)][:5] == [*both[MENTIONED_IN].itertuples(index=False)][:5]
    assert {("e:vampira", "d")} == set(zip(both[MENTIONED_IN].source, both[MENTIONED_IN].target, strict=True)) - set(
        zip(rules[MENTIONED_IN].source, rules[MENTIONED_IN].target, strict=True)
    )


def test_a_relation_of_both_has_the_types_of_both_and_the_triple_s_wording() -> None:
    """By rule "Lake Ister" and "Bo Marn" are stated together (.9 × rarity); the triple says it with 1.0."""
    both = tables(Triple("d", "Bo Marn", "swam in", "Lake Ister", 1.0))[RELATED_TO].set_index(["source", "target"])
    row = both.loc["e:bo marn", "e:lake ister"]

    assert 1.0 == row.strength
    assert "swam in" in row.types
    assert set(row.types) & set(RULE_RELATIONS)
    assert row.description == "Bo Marn swam in Lake Ister"


def test_a_triple_may_use_an_alias(tmp_path: Path) -> None:
    passages = [Passage("x", "Vell, Norland", "A town."), Passage("y", "Tolva", "Far from Vell, Norland.")]
    index = index_of(tmp_path, [Triple("y", "Tolva", "is far from", "Vell")], passages)
    relations = told(asked(index, "Tolva?"))

    graph = asked(index, "Tolva?").corpus.graph
    assert ["e:tolva", "e:vell norland"] == sorted(graph.entities[entity] for entity in relations.other)


def test_an_edge_goes_over_a_triple_that_a_third_passage_states(tmp_path: Path) -> None:
    """Ada's passage does not name Bo: c says they married. Bo leads to his passage, and to d and c, which name him."""
    found = edges_of(asked(index_of(tmp_path), "Whom did Ada Krell marry?"), A)
    rows = set(zip(found.target.tolist(), (found.far == NOWHERE).tolist(), found.fan.tolist(), strict=True))

    assert {(B, True, 2), (C, False, 2), (D, False, 2)} == rows  # two passages name Bo beside his own
    assert {TRIPLE} == set(found.kind.tolist())
    assert {NOWHERE} == set(found.mention.tolist())  # the near end is the anchor's title


def test_features_of_triples_by_hand(tmp_path: Path) -> None:
    """The question's open words are "whom"-less "marry" and "songs"; only "songs" stands in the wording.

    "marry" is in no chunk: idf ln 4. "songs" is in one of four: ln(1 + 3.5/1.5). The near end, Ada's title, is named.
    """
    candidates = asked(index_of(tmp_path), "Did Ada Krell marry songs?")
    found = edges_of(candidates, A)
    values = edge_features(candidates, found)[:, -len(TRIPLE_FEATURES) :]
    to_bo = dict(zip(TRIPLE_FEATURES, values[found.target.tolist().index(B)], strict=True))

    songs, marry = np.log(1 + 3.5 / 1.5), np.log(4)
    assert songs / (songs + marry) == pytest.approx(to_bo["said"], abs=1e-5)
    assert (0.5, 1.0, 1.0, 1.0) == tuple(to_bo[name] for name in ("strength", "from_asked", "from_title", "to_title"))
    to_lake = values[found.target.tolist().index(D)]
    assert 0.0 == to_lake[-1]
    assert {"said", "strength", "from_asked", "from_title", "to_title"} == set(TRIPLE_FEATURES)


def test_paths_over_triples_stand_aside() -> None:
    """They are no part of `any` and `several`; ln(1 + .2/.001) = ln 201."""
    zero = np.zeros(2, np.int64)
    value = np.array([0.1, 0.2])

    found = path_features(np.array([TRIPLE, TRIPLE]), np.arange(2), zero, value, 2, triples=True)

    assert [[0.2, pytest.approx(np.log(201))], [0.0, 0.0]] == found[:, -2:].tolist()
    assert not found[:, :6].any()


def test_the_path_goes_from_the_near_end_to_the_far_one(tmp_path: Path) -> None:
    """With a model that believes in triples and in nothing else."""
    learned = shipped()
    certain = replace(
        learned,
        edges=(*(np.append(np.zeros(17), NEVER) for _ in range(4)), np.append(np.zeros(22), 5.0)),
        passes=tuple(np.append(one[:-2], [9.0, 1.0]) for one in learned.passes[:1]),
    )
    file = tmp_path / "weights.json"
    file.write_text(to_json(certain), encoding="utf-8")
    ranking = ranked(index_of(tmp_path), "Whom did Ada Krell marry?", HopRank(weights=str(file), anchors=1))
    path = next(hit.path for hit in ranking.hits if hit.chunk_id == "b")

    assert [
        (MENTIONED_IN, "a", "e:ada krell"),
        (RELATED_TO, "e:ada krell", "e:bo marn"),
        (MENTIONED_IN, "e:bo marn", "b"),
    ] == [(step.edge, step.source, step.target) for step in path]
    assert 0.5 == path[1].weight


@settings(max_examples=5, deadline=None)
@given(passages=corpora(low=2))
def test_without_triples_the_kind_is_absent(tmp_path_factory: pytest.TempPathFactory, passages: list[Passage]) -> None:
    """Whatever the weights of triples are; and a graph with triples is ranked without them when told to."""
    index = built_index(plan_of(passages), tmp_path_factory.mktemp("rules"))
    candidates = asked(index, "Where was Ada Krell born?")
    edges, features = EdgeTable(candidates).leaving(candidates.pool)

    assert candidates.corpus.relations is None
    assert (TRIPLE not in edges.kind, 17) == (True, features.shape[1])
    for hit in ranked(index, "Where was Ada Krell born?").hits:
        assert not set(OVER_TRIPLES) & set(hit.components)


def test_triples_can_be_left_aside(tmp_path: Path) -> None:
    index = index_of(tmp_path)

    (left,) = HopRank(triples=False).candidates(Batch(index, [Question("q", "Ada Krell?")]), Counters())

    assert left.corpus.relations is None
    assert told(asked(index, "Ada Krell?")).strength.tolist() == [0.5, 0.5]


def test_rules_and_triples_need_triples() -> None:
    from hopbench.flows.settings.graph_options import GraphOptions
    from hopbench.flows.settings.home import Home

    with pytest.raises(InputError, match=r"--extractor rules\+triples adds ready triples .* --triples FILE"):
        GraphOptions(dataset="hopworld", extractor="rules+triples").open_embedder(Home.resolve())


GOLD = (("p01", "p02"), ("p04", "p08"), ("p06", "p10"))
WORLD_TOLD = [
    Triple("p01", "Ed Wood", "directed by", "Tim Burton"),
    Triple("p06", "Beetlejuice", "made for", "Geffen Company"),
    Triple("p05", "Johnny Depp", "born near", "Ohio River"),
]


def taught(tmp_path: Path, triples: list[Triple]) -> list[TrainingExample]:
    asking = zip(ASKED, GOLD, strict=False)
    questions = tuple(BenchmarkQuestion(q.id, q.text, gold=gold) for q, gold in asking)
    plan = plan_of(WORLD, triples=triples, extractor="rules+triples" if triples else "rules")
    return list(
        training_examples(Benchmark("world", tuple(WORLD), questions, "tune"), built_index(plan, tmp_path), HopRank())
    )


def test_examples_with_triples_teach_only_what_triples_are_worth(tmp_path: Path) -> None:
    plain, more = taught(tmp_path / "rules", []), taught(tmp_path / "both", WORLD_TOLD)
    alone, both = Trainer().fit(plain), Trainer().fit([*plain, *more])

    assert (alone.first.tolist(), [m[-1] for m in alone.edges[:4]]) == (
        both.first.tolist(),
        [m[-1] for m in both.edges[:4]],
    )
    for one, other in zip(alone.passes, both.passes, strict=True):
        assert one[:-2].tolist() == other[:-2].tolist()
        assert [0.0, 0.0] == one[-2:].tolist()
        assert other[-2:].any()
    assert (NEVER, True) == (alone.edges[TRIPLE][-1], both.edges[TRIPLE][-1] > NEVER)
    without = Trainer(without=frozenset({"triple", "edge"})).fit([*plain, *more])
    assert not any(model[:-1].any() for model in without.edges)
    assert [0.0, 0.0] == without.passes[-1][-2:].tolist()
