"""Links by words against their definitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.support.graphs import ASKED, WORLD, built_index, plan_of

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.hoprank import HopRank
from hopbench.retrieval.strategies.hoprank.links import MAX_RARE_FREQUENCY, PARTNERS, ListFacts
from hopbench.retrieval.strategies.hoprank.tree_features import READ, WORD_LINKS, list_facts
from hopbench.retrieval.strategies.hoprank.weights import passes, shipped
from hopbench.retrieval.types import Counters, Passage, Question


def listed_of(index: Index, asked: list[Question]) -> list[ListFacts]:
    found = HopRank().candidates(Batch(index, asked), Counters())
    return [one for each in found for one in list_facts(each, [list(passes(each, shipped(), 8))])]


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> list[ListFacts]:
    return listed_of(built_index(plan_of(WORLD), tmp_path_factory.mktemp("world")), ASKED)


class Read:
    """The listed chunks as sets of content words, sentence by sentence."""

    def __init__(self, facts: ListFacts) -> None:
        words = facts.candidates.corpus.words
        spelled = list(words.vocabulary)
        self.idf = dict(zip(spelled, words.idf.tolist(), strict=True))
        self.frequency = dict(zip(spelled, words.frequency.tolist(), strict=True))
        self.question = set(facts.candidates.questions[0].words)
        self.sentences = []
        for chunk in facts.chunks[0, :READ].tolist():
            own = range(words.chunk_start[chunk], words.chunk_start[chunk + 1])
            ends = [words.sentence_start[place : place + 2] for place in own]
            inside = [words.numbers[begin:end].tolist() for begin, end in ends]
            self.sentences.append([{spelled[one] for one in each if not words.stop[one]} for each in inside])
        self.titles = [each[0] for each in self.sentences]
        self.chunks = [set().union(*each) for each in self.sentences]
        self.log = np.log(facts.candidates.corpus.chunks + 1.0)

    def mass(self, words: set[str]) -> float:
        return sum(self.idf[word] for word in words)

    def share(self, title: set[str], of: set[str]) -> float:
        return self.mass(title & of) / self.mass(title) if title else 0.0


def test_titles_in_chunks_by_their_definition(listed: list[ListFacts]) -> None:
    for facts in listed:
        links, read = facts.links, Read(facts)
        count = len(read.titles)
        assert (1, count, min(PARTNERS, count)) == links.title.shape
        for one, title in enumerate(read.titles):
            asked = read.share(title, read.question)
            assert asked == pytest.approx(links.asked[0, one], abs=1e-6)
            for other in range(links.title.shape[2]):
                chunk, same = read.chunks[other], one == other
                found = 0.0 if same else read.share(title, chunk)
                explained = asked if same else read.share(title, chunk | read.question)
                new = 0.0 if same else read.mass(title & chunk - read.question) / read.log
                holds = 0.0 if same else read.share(read.titles[other], read.chunks[one])
                assert found == pytest.approx(links.title[0, one, other], abs=1e-6)
                assert explained == pytest.approx(links.explained[0, one, other], abs=1e-6)
                assert new == pytest.approx(links.new[0, one, other], abs=1e-6)
                assert holds == pytest.approx(links.holds[0, one, other], abs=1e-6)


def test_titles_in_sentences_by_their_definition(listed: list[ListFacts]) -> None:
    for facts in listed:
        links, read, close = facts.links, Read(facts), facts.closeness
        question, first = facts.candidates.questions[0], close.read.first
        with_title = [
            np.maximum(close.sentence[first[chunk] + place], close.sentence[first[chunk]])
            for chunk, sentences in enumerate(read.sentences)
            for place in range(len(sentences))
        ]
        near = [each @ question.shares for each in with_title]
        wanted = {}
        for one, title in enumerate(read.titles):
            for partner, sentences in enumerate(read.sentences):
                for place, sentence in enumerate(sentences, first[partner]):
                    if one != partner and title & sentence:
                        together = np.maximum(close.chunk[one], with_title[place]) @ question.shares
                        new = read.mass(title & sentence - read.question) / read.log
                        wanted[one, partner, place] = [read.share(title, sentence), new, near[place], together]
        found = np.array([links.stated_title, links.stated_new, links.relevance, links.joint_relevance]).T
        pairs = [(one, partner) for one, partner, _ in wanted]
        assert pairs == list(zip(links.titled.tolist(), links.stated_by.tolist(), strict=True))
        assert np.array([*wanted.values()]).reshape(-1, 4) == pytest.approx(found, abs=1e-6)


def test_what_sentences_tell_of_titles_by_its_definition(listed: list[ListFacts]) -> None:
    for facts in listed:
        links, sure = facts.links, facts.sure[0, :PARTNERS].tolist()
        columns = links.titled, links.stated_by, links.stated_title, links.stated_new
        rows = list(zip(*(one.tolist() for one in (*columns, links.relevance, links.joint_relevance)), strict=True))
        for one in range(facts.shape[1]):
            of_title = [row for row in rows if row[0] == one and row[1] < len(sure)]
            held = [row for row in rows if row[1] == one and row[0] < len(sure)]
            wanted = {
                "title_told": [title * told * sure[by] for _, by, title, _, told, _ in of_title],
                "title_told_best": [title * told for _, by, title, _, told, _ in of_title if by == 0],
                "title_new_told": [new * told * sure[by] for _, by, _, new, told, _ in of_title],
                "title_told_together": [title * both * sure[by] for _, by, title, _, _, both in of_title],
                "holds_title_told": [title * told for _, _, title, _, told, _ in held],
                "holds_title_told_sure": [title * told * sure[of] for of, _, title, _, told, _ in held],
            }
            for name, values in wanted.items():
                assert max([0.0, *values]) == pytest.approx(WORD_LINKS[name](facts)[0, one])


def test_rare_words_by_their_definition(listed: list[ListFacts]) -> None:
    for facts in listed:
        links, read = facts.links, Read(facts)
        for one, chunk in enumerate(read.chunks):
            for other in range(links.rare.shape[2]):
                both = {word for word in chunk & read.chunks[other] if 2 <= read.frequency[word] <= MAX_RARE_FREQUENCY}
                wanted = sum((read.frequency[word] - 1) ** -0.5 for word in both - read.question)
                assert (0.0 if one == other else wanted) == pytest.approx(links.rare[0, one, other], abs=1e-6)


def test_a_word_counts_once_however_often_a_title_or_a_sentence_has_it(tmp_path: Path) -> None:
    passages = [
        Passage("a", "Duran Duran", "Duran Duran is a band. Duran Duran played in Ohio and in Ohio."),
        Passage("b", "Ohio of Ohio", "Ohio has a river. A band of Duran Duran."),
    ]
    (facts,) = listed_of(built_index(plan_of(passages), tmp_path), [Question("q", "Which band played?")])

    test_titles_in_chunks_by_their_definition([facts])
    test_titles_in_sentences_by_their_definition([facts])
    assert [[0.0, 1.0], [1.0, 0.0]] == pytest.approx(facts.links.title[0])
    assert facts.links.stated_title.max() == pytest.approx(1.0)


def test_a_title_in_other_words_than_the_name_is_found(tmp_path: Path) -> None:
    """No entity leads from "Iowa State" to the gold passage: the words of its title do."""
    passages = [
        Passage("p1", "Tom Watkins", "Tom Watkins is a running back. He played college football at Iowa State."),
        Passage("p2", "Iowa State Cyclones football", "The Cyclones are a team that was founded in 1892."),
        Passage("p3", "Ohio", "Ohio is a state of rivers. A team was founded there."),
    ]
    asked = [Question("q", "When was the college football team of Tom Watkins founded?")]
    (facts,) = listed_of(built_index(plan_of(passages), tmp_path), asked)
    order = facts.chunks[0].tolist()
    gold, other, first = order.index(1), order.index(2), order.index(0)
    held = facts.links.title[0, :, first]

    # of the title's four words all but "Cyclones" stand in p1
    words = facts.candidates.corpus.words
    idf = words.idf[[words.vocabulary[word] for word in ("iowa", "state", "football", "cyclones")]]
    assert idf[:3].sum() / idf.sum() == pytest.approx(held[gold], abs=1e-6)
    assert 0.0 == held[other]
    assert held[gold] > WORD_LINKS["title_in"](facts)[0, other]


def test_one_candidate_alone_has_no_links(tmp_path: Path) -> None:
    (facts,) = listed_of(built_index(plan_of([Passage("a", "It", "it is.")]), tmp_path), ASKED[:1])

    values = [feature(facts) for feature in WORD_LINKS.values()]

    assert all((1, 1) == each.shape and np.isfinite(each).all() for each in values)
    assert not facts.links.title.any()
