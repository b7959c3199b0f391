"""Names in lower case: always in graphs that triples made, with reserve where rules found the names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.graphs import built_index, plan_of

from hopbench.retrieval.graph.construction.plan import GraphPlan
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.strategies.entity_expansion import EntityExpansion
from hopbench.retrieval.types import Counters, Passage, Question, Triple

CORPUS = [
    Passage("p1", "Web servers", "Programs such as uvicorn run FastAPI. The server reloads by watchfiles."),
    Passage("p2", "Abortion", "Abortion ends a pregnancy. In many countries an abortion is lawful."),
    Passage("p3", "Mother (1996 film)", "Mother is a film in which a mother takes her son back. The Supreme Court."),
    Passage("p4", "Water", "Water is wet. The Supreme Court has water."),
    Passage("p5", "gunicorn", "Gunicorn runs workers. City life."),
    Passage("p6", "Notes", "The City is old. In the City of London stands the Supreme Court."),
]
TRIPLES = [
    Triple("p1", "uvicorn", "uses", "watchfiles"),
    Triple("p1", "FastAPI", "runs on", "uvicorn"),
    Triple("p2", "abortion", "has", "global implications"),
]


def linked(index: Index, question: str) -> list[str]:
    reader = linker(Batch(index, [Question("q", question)]), Counters())
    return [reader.name_of[link.entity] for link in reader.links(question)]


def index_of(folder: Path, triples: Sequence[Triple] = (), **settings: str) -> Index:
    plan: GraphPlan = plan_of(CORPUS, triples=triples, **settings)
    return built_index(plan, folder)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How does uvicorn reload?", ["uvicorn"]),
        ("What are the global implications of abortion?", ["global implications", "Abortion"]),
        ("Does FastAPI use watchfiles?", ["FastAPI", "watchfiles"]),  # a capital elsewhere changes nothing
        ("Does water flow?", ["Water"]),  # a title is an entity of that graph too
        ("What is it?", []),
    ],
)
def test_whatever_triples_state_links_in_lower_case(tmp_path: Path, question: str, expected: list[str]) -> None:
    assert expected == linked(index_of(tmp_path, TRIPLES), question)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What are the global implications of abortion?", ["Abortion"]),
        ("How does gunicorn reload?", ["gunicorn"]),  # the title itself is in lower case
        ("Does the Supreme Court use gunicorn?", ["Supreme Court", "gunicorn"]),
        ("What did the Supreme Court say of water?", ["Supreme Court"]),  # something else is named
        ("Which city has a mother?", []),  # no passage is titled City, and Mother is a film's name
        ("Is Abortion lawful?", ["Abortion"]),
    ],
)
def test_what_rules_found_links_in_lower_case_alone(tmp_path: Path, question: str, expected: list[str]) -> None:
    assert expected == linked(index_of(tmp_path), question)


def test_triples_make_no_name_of_a_word_that_many_passages_have_unless_it_stands_alone(tmp_path: Path) -> None:
    films = [Passage(f"f{number:02}", f"Golm {number}", "It is a film.") for number in range(11)]
    stated = [*TRIPLES, *(Triple(one.id, one.title, "is a", "film") for one in films)]
    index = built_index(plan_of([*CORPUS, *films], triples=stated), tmp_path)

    assert ["FastAPI"] == linked(index, "Which film is about FastAPI?")
    assert ["FastAPI", "uvicorn"] == linked(index, "Does FastAPI run on uvicorn?")
    assert ["film"] == linked(index, "Which film is it?")


def test_a_word_that_many_passages_have_is_no_name(tmp_path: Path) -> None:
    more = [Passage(f"m{number}", "", "They speak of abortion.") for number in range(9)]  # 10 chunks, then 11
    question = "What are the global implications of abortion?"

    assert ["Abortion"] == linked(built_index(plan_of([*CORPUS, *more]), tmp_path / "ten"), question)
    more.append(Passage("m9", "", "They speak of abortion."))
    assert [] == linked(built_index(plan_of([*CORPUS, *more]), tmp_path / "eleven"), question)


def test_joined_graphs_link_in_lower_case_what_a_triple_states(tmp_path: Path) -> None:
    index = index_of(tmp_path, TRIPLES, extractor="rules+triples")

    assert ["uvicorn", "watchfiles"] == linked(index, "How does uvicorn reload by watchfiles in the city?")
    assert ["Supreme Court"] == linked(index, "What did the Supreme Court say of water?")


def test_adr_041_finds_the_chunks_of_a_concept_in_lower_case(tmp_path: Path) -> None:
    question = Question("q", "What are the global implications of abortion?")

    (ranking,) = EntityExpansion(use_synonyms=False).rank(Batch(index_of(tmp_path, TRIPLES), [question]), Counters())

    assert "fallback" not in ranking.notes
    assert ("p2", 2.0) == (ranking.hits[0].chunk_id, ranking.hits[0].components["entity_count"])
