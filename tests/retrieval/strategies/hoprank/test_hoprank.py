"""hoprank as a whole: words, mentions, the walk, path values, weights, hits, and corpora of every kind."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.graphs import ASKED, WORLD, PlainGraph, built_index, corpora, hand_index, plain_graphs, plan_of

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.index.kept import KeptSearch
from hopbench.retrieval.strategies.hoprank import HopRank, corpus, strategy
from hopbench.retrieval.strategies.hoprank.closeness import Closeness, question_vectors
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex, Texts, corpus_index
from hopbench.retrieval.strategies.hoprank.edges import FORWARD, SHARED
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.path_features import OVER_TRIPLES, PATH_FEATURES, path_features
from hopbench.retrieval.strategies.hoprank.paths import anchor_probabilities
from hopbench.retrieval.strategies.hoprank.question import UNKNOWN, ReadQuestion
from hopbench.retrieval.strategies.hoprank.questions import Questions, parts_of
from hopbench.retrieval.strategies.hoprank.random_walk import RandomWalk, _sums
from hopbench.retrieval.strategies.hoprank.weights import feature_names, from_json, load, shipped, to_json
from hopbench.retrieval.strategies.hoprank.words import Words
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.support import divided
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.traversal.whole_walk import power_iteration, transitions
from hopbench.retrieval.types import Chunk, Counters, Passage, Question, Ranking, Triple


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


def seen_of(index: Index) -> CorpusIndex:
    return corpus_index(Batch(index, []), Counters())[0]


def ranked(index: Index, *texts: str, label: str = "hoprank") -> list[Ranking]:
    return make(label).rank(Batch(index, [Question(text, text) for text in texts]), Counters())


def test_words_count_chunks_and_know_sentences() -> None:
    words = Words.read([Chunk("a", "a", 0, "Ed Wood", "Ed sang. He won."), Chunk("b", "b", 0, "", "Sang it?")])

    assert ["ed", "wood", "sang", "he", "won", "it"] == list(words.vocabulary)
    assert [0, 1, 0, 2, 3, 4, 2, 5] == words.numbers.tolist()
    assert [0, 2, 4, 6, 6, 8] == words.sentence_start.tolist()  # the second title is an empty sentence
    assert [0, 3, 5] == words.chunk_start.tolist()
    assert [1, 1, 2, 1, 1, 1] == words.frequency.tolist()
    assert math.log1p((2 - 2 + 0.5) / (2 + 0.5)) == pytest.approx(words.idf[2])
    assert [0, 1, 2, 4] == words.sentence_of(np.array([1, 3, 5, 7])).tolist()


def test_sentences_of_a_large_corpus_have_the_vectors_of_the_table(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, asked = seen_of(index), Question("q", "Where was the director of Ed Wood born?")
    (candidates,) = HopRank().candidates(Batch(index, [asked]), Counters())
    (words,) = question_vectors(seen, [candidates.questions[0]])
    chunks = np.array([4, 0, 4, 1, 11])

    def close() -> list[list[float]]:
        found = Closeness.of(seen, candidates.questions[0], chunks, words)
        return [found.dense.tolist(), found.dense_open.tolist()]

    of_table = close()
    monkeypatch.setattr(corpus, "KEPT_SENTENCES", 0)
    assert of_table == close()
    assert len(set(of_table[0])) > len(chunks)


@pytest.mark.parametrize("sentences", [1_000_000, 0])
def test_what_is_read_of_the_texts_comes_back_from_files(
    index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sentences: int
) -> None:
    monkeypatch.setattr(corpus, "KEPT_SENTENCES", sentences)
    texts, entities = seen_of(index).texts, len(seen_of(index).graph.entities)
    arrays = KeptSearch(tmp_path).arrays("hoprank", "x", texts.arrays)
    found = Texts.of_arrays(KeptSearch(tmp_path).arrays("hoprank", "x", dict), entities)  # `dict` would write none

    assert list(texts.words.vocabulary.items()) == list(found.words.vocabulary.items())
    assert ("table" in arrays) == bool(sentences)
    for name, values in texts.arrays().items():
        again = found.arrays()[name]
        assert (values.dtype, values.tolist()) == (again.dtype, again.tolist()), name


def test_texts_without_words_come_back_from_files(tmp_path: Path) -> None:
    words = Words.read([Chunk("a", "a", 0, "", "")])
    arrays = KeptSearch(tmp_path).arrays("hoprank", "x", words.arrays)
    assert Words.of_arrays(arrays).vocabulary == {}


def places(seen: CorpusIndex, chunk: int) -> list[tuple[str, str]]:
    """Each mention of a chunk: the entity, and the words that stand there."""
    spelled = list(seen.words.vocabulary)
    rows = np.flatnonzero(seen.mentions.chunk == chunk)
    return [
        (
            seen.graph.entities[seen.mentions.entity[row]],
            " ".join(spelled[n] for n in seen.words.numbers[start : start + seen.mentions.length[row]]),
        )
        for row in rows
        for start in [seen.mentions.start[row]]
    ]


def test_mentions_stand_where_the_name_or_its_alias_does(index: Index) -> None:
    seen = seen_of(index)

    assert [("e:tim burton", "tim burton"), ("e:johnny depp", "johnny depp")] == places(seen, 0)
    # Its own title, Owensboro, is left out; Kentucky stands in the title.
    assert [("e:kentucky", "kentucky"), ("e:ohio river", "ohio river")] == places(seen, 4)
    # The alias alone and the whole name, which holds the alias, are one mention each.
    assert [
        ("e:coraopolis", "coraopolis"),
        ("e:owensboro kentucky", "owensboro kentucky"),
        ("e:kentucky", "kentucky"),
    ] == places(seen, 7)
    assert NOWHERE == seen.mentions.own[11]  # no title
    assert "e:ed wood" == seen.graph.entities[seen.mentions.own[0]]


@settings(max_examples=25)
@given(graph=plain_graphs(), seed=st.integers(0, 100))
def test_a_walk_that_drops_nothing_is_the_power_iteration(
    tmp_path_factory: pytest.TempPathFactory, graph: PlainGraph, seed: int
) -> None:
    index = hand_index(graph.tables(), tmp_path_factory.mktemp("walk"), dict.fromkeys(graph.chunks, 0.5))
    whole = adjacency(Batch(index, []), Counters())
    nodes = len(whole.entities) + len(graph.chunks)
    seeds = np.random.default_rng(seed).dirichlet(np.ones(nodes))

    met, held, _ = RandomWalk.over(whole, index).mass(np.arange(nodes), seeds, restart=0.3, steps=5, least=0.0)

    expected = power_iteration(transitions(whole, 1.0, 0.0, 0.0), seeds[:, None], 0.3, 5)[:, 0]
    assert expected[len(whole.entities) :].tolist() == pytest.approx(held.tolist(), abs=1e-12)
    assert list(range(len(graph.chunks))) == met.tolist()


def test_a_walk_touches_at_most_one_edge_per_least_mass(index: Index) -> None:
    walk = RandomWalk.over(adjacency(Batch(index, []), Counters()), index)
    seeds = np.array([walk.entities])

    for least in (1e-3, 0.05, 0.3):
        assert walk.mass(seeds, np.ones(1), steps=8, least=least)[2] <= 8 / least


def test_the_top_four_do_not_compete() -> None:
    """P = σ(z − logsumexp of z from the fifth on); here ln(e¹ + e⁰)."""
    first, probability = anchor_probabilities(np.array([4.0, 5.0, 0.0, 3.0, 2.0, 1.0]), 5)

    assert [1, 0, 3, 4, 5] == first.tolist()
    rest = math.log(math.e + 1)
    assert [1 / (1 + math.exp(rest - z)) for z in (5, 4, 3, 2, 1)] == pytest.approx(probability.tolist())


def test_path_features_by_hand() -> None:
    """Candidate 0 is reached from anchor 0 (.5 forward, .2 shared) and from anchor 1 (.4 shared); 1 not at all."""
    zero = np.zeros(3, np.int64)
    kinds, anchors = np.array([FORWARD, SHARED, SHARED]), np.array([0, 0, 1])

    values = path_features(kinds, anchors, zero, np.array([0.5, 0.2, 0.4]), 2)

    several = 1 - (1 - 0.5) * (1 - 0.4)  # the best of each anchor
    plain = [0.5, 0.0, 0.4, 0.0, 0.5, several]  # forward, reverse, shared, same title, any, several
    assert [*plain, *(math.log(x + 0.001) for x in plain)] == pytest.approx(values[0].tolist())
    assert [*[0.0] * 6, *[math.log(0.001)] * 6] == pytest.approx(values[1].tolist())
    assert len(PATH_FEATURES) == values.shape[1] + len(OVER_TRIPLES)


def test_linear_components_are_those_of_the_coefficients(index: Index) -> None:
    for label in ("hoprank[model=linear]", "hoprank[anchors=0]"):
        coefficients = make(label).coefficients()
        for ranking in ranked(index, *(one.text for one in ASKED), label=label):
            for hit in ranking.hits:
                if hit.origin != "fill":
                    assert list(coefficients)[: len(hit.components)] == list(hit.components)  # those of triples last
                    assert hit.score == pytest.approx(sum(hit.components.values()), abs=1e-6)


def test_the_bridge_is_found_by_its_path(index: Index) -> None:
    (ranking,) = ranked(index, "Where was the director of Ed Wood born?")
    hits = {hit.chunk_id: hit for hit in ranking.hits}

    assert {"p01", "p02"} <= {hit.chunk_id for hit in ranking.hits[:3]}
    assert ["p01", "e:tim burton", "p02"] == [hits["p02"].path[0].source, *(step.target for step in hits["p02"].path)]
    for hit in ranking.hits:
        for first, second in pairwise(hit.path):
            assert first.target == second.source


def test_two_runs_say_the_same_and_count_the_same(index: Index) -> None:
    spent = Counters(), Counters()
    first, second = (make("hoprank").rank(Batch(index, ASKED), counters) for counters in spent)

    assert list(map(repr, first)) == list(map(repr, second))
    assert spent[0] == spent[1]
    pools = [len(one.pool.chunks) for one in HopRank().candidates(Batch(index, ASKED), Counters())]
    assert sum(pools) == spent[0].observed["chunks in the pool"]


@pytest.mark.parametrize("label", ["hoprank", "hoprank[model=linear]"])
def test_several_processes_say_the_same(index: Index, monkeypatch: pytest.MonkeyPatch, label: str) -> None:
    monkeypatch.setattr(strategy, "LEAST", 2)
    monkeypatch.setattr(divided, "usable_processors", lambda: 3)
    monkeypatch.setattr(divided._log, "warning", pytest.fail)  # a share that is done again here
    asked = [Question(f"{place}-{one.id}", one.text) for place in range(3) for one in ASKED]
    one, several = Counters(), Counters()
    alone = make(label).rank(Batch(index, asked), one)
    shared = make(label).rank(Batch(index, asked, processes=3), several)

    assert list(map(repr, alone)) == list(map(repr, shared))
    assert one == several


QUESTIONS = (
    "the first one, which is ranked by itself",
    "Where was Ada Krell born?",
    "Did Bo Marn live in Tolva?",
    "who",
    "",
    "Which river flows through the town that Bo Marn and Corin Vell of Tolva left for the Ohio River?",
    "Zyzzyva quux?",
)


@settings(max_examples=10)
@given(
    passages=corpora(),
    stated=st.booleans(),
    label=st.sampled_from(["hoprank", "hoprank[depth=1,walked=0,anchors=2]", "hoprank[anchors=0,model=linear]"]),
)
def test_side_by_side_and_alone_questions_are_ranked_alike(
    tmp_path_factory: pytest.TempPathFactory, passages: list[Passage], stated: bool, label: str
) -> None:
    """With a pool of few chunks, what edges lead to is no candidate yet, and the second pass has other anchors."""
    triples = [Triple(passages[0].id, "Ada Krell", "born in", "Tolva")] if stated else []
    plan = plan_of(passages, triples=triples, extractor="rules+triples" if stated else "rules")
    index = built_index(plan, tmp_path_factory.mktemp("side"))

    together = ranked(index, *QUESTIONS, label=label)

    for text, found in zip(QUESTIONS, together, strict=True):
        (alone,) = ranked(index, text, label=label)
        assert repr(alone) == repr(found)


def test_long_questions_are_ranked_by_themselves(index: Index) -> None:
    long = [False, True, False, False, True, True, False]

    assert [[0], [1], [2, 3], [4], [5], [6]] == list(strategy._apart(range(7), long))
    texts = ["who", *(one.text for one in ASKED), "Who directed Ed Wood? " * 60, ASKED[0].text]
    assert [len(text) > strategy.LONG for text in texts].count(True) == 1
    for text, found in zip(texts, ranked(index, *texts), strict=True):
        assert repr(found) == repr(ranked(index, text)[0])


def test_sums_by_key_are_added_in_their_order() -> None:
    keys, values = np.array([7, 2, 7, 2, 7]), np.array([1e16, 0.5, 1.0, 0.25, -1e16])

    found, sums = _sums(keys, values)

    assert ([2, 7], [0.75, 0.0]) == (found.tolist(), sums.tolist())  # 1e16 + 1 is 1e16


def test_walks_side_by_side_are_those_alone(index: Index) -> None:
    walk = RandomWalk.over(adjacency(Batch(index, []), Counters()), index)
    starts = [np.array([walk.entities]), np.array([0, walk.entities + 3])]
    alone = [walk.mass(seeds, np.full(len(seeds), 0.5)) for seeds in starts]

    keys = np.concatenate([seeds + number * walk.nodes for number, seeds in enumerate(starts)])
    chunks, held, touched = walk.mass(keys, np.full(len(keys), 0.5))

    assert [one + number * len(WORLD) for number, (met, _, _) in enumerate(alone) for one in met] == chunks.tolist()
    assert [share for _, shares, _ in alone for share in shares] == held.tolist()
    assert sum(edges for _, _, edges in alone) == touched


def test_words_of_several_questions_are_told_apart(index: Index) -> None:
    """Word numbers that leave the same remainder, a word of two questions, ranges without words, and a long one."""
    numbers = [np.array([5, 1029, UNKNOWN]), np.array([5]), np.zeros(0, np.int64)]
    no = [np.zeros(len(one), bool) for one in numbers]
    questions = Questions(
        [
            ReadQuestion(
                tuple(map(str, one)), one, np.ones(len(one)), np.ones(len(one), np.int64), blank, blank, {}, {}
            )
            for one, blank in zip(numbers, no, strict=True)
        ]
    )
    text = np.array([5, 1029, 6, 2053, 1029], np.int32)
    begin, end, of = np.array([0, 1, 3, 0, 0]), np.array([2, 1, 5, 5, 5]), np.array([0, 0, 0, 1, 2])

    covered = questions.covered(text, begin, end, of)

    assert [
        [True, True, False],
        [False] * 3,
        [False, True, False],
        [True, False, False],
        [False] * 3,
    ] == covered.tolist()
    assert [True, True, False, False] == questions.asks(np.array([5, 1029, 1029, 6]), np.array([0, 0, 1, 1])).tolist()
    assert [slice(0, 3), slice(3, 4), slice(4, 5), slice(5, 5)] == parts_of(of, 4)


def test_words_in_parts_are_those_at_once(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = HopRank().candidates(Batch(index, ASKED[:1]), Counters())
    monkeypatch.setattr("hopbench.retrieval.strategies.hoprank.questions.TOGETHER", 7)
    (again,) = HopRank().candidates(Batch(index, ASKED[:1]), Counters())

    assert one.covered.tolist() == again.covered.tolist()
    assert one.base.tolist() == again.base.tolist()


def test_edges_are_touched_as_often_side_by_side(index: Index) -> None:
    together, alone = Counters(), Counters()
    make("hoprank").rank(Batch(index, ASKED), together)
    for one in ASKED:
        make("hoprank").rank(Batch(index, [one]), alone)

    assert together.edges_touched == alone.edges_touched
    assert together.observed["chunks in the pool"] == alone.observed["chunks in the pool"]


@given(count=st.integers(0, 1000), processes=st.integers(1, 4))
def test_questions_are_ranked_in_parts(count: int, processes: int) -> None:
    parts = list(strategy._parts(range(count), processes))

    assert list(range(count)) == [number for part in parts for number in part]
    assert all(len(part) == strategy.TOGETHER for part in parts[:-1]) or processes > 1
    assert all(strategy.FEW <= len(part) <= strategy.TOGETHER for part in parts[:-1])
    assert [] == parts or len(parts[-1]) <= strategy.TOGETHER


def test_without_anchors_no_edge_is_followed(index: Index) -> None:
    for ranking in ranked(index, *(one.text for one in ASKED), label="hoprank[anchors=0]"):
        assert all(not hit.path for hit in ranking.hits)


def test_duplicate_passages_say_the_same(tmp_path: Path) -> None:
    """Only what the graph adds may differ: an anchor leads to its twin, not to itself."""
    twice = [*WORLD, *(Passage(f"twin-{one.id}", one.title, one.text) for one in WORLD)]
    index = built_index(plan_of(twice), tmp_path)
    by_words = [name != "walk" for name in feature_names()["base"]]

    for candidates in HopRank().candidates(Batch(index, ASKED), Counters()):
        first, second = candidates.features(np.arange(12)), candidates.features(np.arange(12, 24))
        assert first[:, by_words].tolist() == second[:, by_words].tolist()


@settings(max_examples=10)
@given(passages=corpora())
def test_titles_are_no_condition(tmp_path_factory: pytest.TempPathFactory, passages: list[Passage]) -> None:
    bare = [Passage(one.id, "", f"{one.title}. {one.text}") for one in passages]
    index = built_index(plan_of(bare), tmp_path_factory.mktemp("bare"))

    for ranking in ranked(index, "Where was Ada Krell born?", "who"):
        assert ranking.failure is None
        assert len(bare) == len(ranking.hits)


@pytest.mark.parametrize("text", ["Zyzzyva?", "", "?", "the of it", "Who directed Ed Wood?"])
def test_one_passage_and_any_question(tmp_path: Path, text: str) -> None:
    (ranking,) = ranked(built_index(plan_of(WORLD[:1]), tmp_path), text)

    assert (ranking.failure, ["p01"]) == (None, [hit.chunk_id for hit in ranking.hits])
    assert math.isfinite(ranking.hits[0].score)


def test_a_question_with_no_known_word_is_ranked_by_meaning_alone(index: Index) -> None:
    """No word of it is in the corpus: BM25, names and coverage say nothing, and every chunk is ranked all the same."""
    (ranking,) = ranked(index, "Zyzzyva quux?", label="hoprank[model=linear]")  # to trees a 0 says something, too

    assert (ranking.failure, len(WORLD)) == (None, len(ranking.hits))
    for name in ("bm25", "link", "title_found", "coverage", "sentence", "open_coverage", "rare", "capitals"):
        assert {0.0} == {hit.components[name] for hit in ranking.hits if hit.origin != "fill"}


def test_phrases_alone_make_paths(tmp_path: Path) -> None:
    bare = [Passage(one.id, "", one.text) for one in WORLD]
    (ranking,) = ranked(built_index(plan_of(bare), tmp_path), "Who played Batman for the director of Beetlejuice?")

    assert any(step.source.startswith("e:") for hit in ranking.hits for step in hit.path)


def test_ready_triples_serve_as_the_graph(tmp_path: Path) -> None:
    triples = [Triple("p01", "Ed Wood", "directed by", "Tim Burton"), Triple("p02", "Tim Burton", "born in", "Burbank")]
    (ranking,) = ranked(built_index(plan_of(WORLD, triples=triples), tmp_path), "Who directed Ed Wood?")
    hits = {hit.chunk_id: hit for hit in ranking.hits}

    assert ["e:tim burton", "p02"] == [step.target for step in hits["p02"].path]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda content: content["features"]["base"].reverse(), "other base features"),
        (lambda content: content.update(schema="hopbench.hoprank/0"), "this version reads 'hopbench.hoprank/4'"),
        (lambda content: content["first"].pop(), r"holds \[11, 17"),
        (lambda content: content.update(passes=[]), "no pass"),
        (lambda content: content.update(first=[[one] for one in content["first"]]), "lists in lists"),
        (lambda content: content["edges"][0].update(bias="x"), "no weights file"),
        (lambda content: content["first"].__setitem__(0, math.nan), "not finite"),
        (lambda content: content["passes"][0].__setitem__(3, -1e308), r"the number 1e\+308, 1,000,000 is allowed"),
        (lambda content: content.pop("features"), "no weights file"),
        (lambda content: content.update(provenance=None), "provenance is no object"),
        (lambda content: content["provenance"].update(learned_from=[]), "provenance is no object"),
        (lambda content: content["provenance"].update(learned_from={"one": 1}), "provenance is no object"),
    ],
    ids=[
        *["names", "schema", "length", "no pass", "nested", "text", "nan", "huge", "lacking"],
        *["no provenance", "no sets", "no set"],
    ],
)
def test_weights_for_something_else_are_refused(tmp_path: Path, spoil: object, message: str) -> None:
    content = json.loads(to_json(shipped()))
    spoil(content)  # type: ignore[operator]
    file = tmp_path / "weights.json"
    file.write_text(json.dumps(content), encoding="utf-8")

    with pytest.raises(InputError, match=message):
        HopRank(weights=str(file)).coefficients()


def test_a_weights_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"hoprank.weights = 'nowhere.json' cannot be read"):
        HopRank(weights="nowhere.json").coefficients()


def test_a_strategy_ranks_by_the_weights_that_it_read_first(tmp_path: Path) -> None:
    file = tmp_path / "weights.json"
    file.write_text(to_json(shipped()), encoding="utf-8")
    strategy = HopRank(weights=str(file))
    assert shipped().digest == strategy.identity()["weights"]
    assert load(str(file)) is load(str(file))  # read once

    file.write_text("{}", encoding="utf-8")
    assert shipped().digest == strategy.identity()["weights"]
    with pytest.raises(InputError, match="no weights file"):
        HopRank(weights=str(file)).coefficients()


def test_weights_survive_their_file_and_decide_the_identity(tmp_path: Path) -> None:
    again = from_json(to_json(shipped()), "again")
    assert to_json(shipped()) == to_json(again)
    assert shipped().digest == again.digest

    content = json.loads(to_json(shipped()))
    content["first"][0] += 1.0
    other = from_json(json.dumps(content), "other")
    assert shipped().digest != other.digest
    assert {**HopRank().spec(), "weights": shipped().digest} == HopRank().identity()


def test_the_shipped_weights_fit_this_version_and_say_where_they_come_from() -> None:
    provenance = shipped().provenance

    sets = {"2wiki-train500", "2wiki-train618", "hotpotqa-train200", "hotpotqa-train1046"}
    assert {"base", "edge", "triple", "path", "kinds", "trees"} == set(feature_names())
    assert {*sets, "musique-train100", "musique-train940"} == set(provenance["learned_from"])
    assert {"tune"} == {one["role"] for one in provenance["learned_from"].values()}
