"""Triples by a language model: what a scripted one says becomes a graph, and what it does not say is told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.graphs import WordEmbedder, plain
from tests.support.llm_servers.scripted import Body, ScriptedServer

from hopbench.eval.graph_quality import agreement
from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.graph.construction.builder import build_graph
from hopbench.retrieval.graph.construction.plan import BuildSettings, GraphPlan
from hopbench.retrieval.graph.extract.model import (
    TripleReader,
    aliases_of,
    recogniser,
    renamed,
    resolve_names,
)
from hopbench.retrieval.graph.schema import ENTITY, MENTIONED_IN, RELATED_TO
from hopbench.retrieval.graph.stores.contents import export
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.llm import LLM, CallLedger, Endpoint, Settings
from hopbench.retrieval.support.errors import IncompleteError, InputError, ParameterError
from hopbench.retrieval.types import Chunk, Passage, Triple

FACTS = {
    "Ed Wood": [
        ("Ed Wood", "film", "directed by", "Tim Burton", "person", 9),
        ("Ed Wood", "film", "is", "Ed Wood", "x", 1),
    ],
    "Tim Burton": [("Tim Burton", "person", "born in", "Burbank", "city", 6)],
    "Burbank": [],
    "Gleaned": [("Gleaned", "thing", "first", "One", "number", 2)],
}
LATER = {"Gleaned": [("Gleaned", "thing", "second", "Two", "number", 3)]}


def chunk(number: int, title: str, text: str = "A text.") -> Chunk:
    return Chunk(f"c{number}", f"c{number}", 0, title, text)


CHUNKS = [chunk(1, "Ed Wood", "Tim Burton directed Ed Wood."), chunk(2, "Tim Burton"), chunk(3, "Burbank")]


def fact(subject: str, kind: str, relation: str, thing: str, other: str, weight: int) -> dict[str, Any]:
    said = f"{subject} {relation} {thing}."
    named = {"subject": subject, "relation": relation, "object": thing}
    return {**named, "description": said, "weight": weight, "tags": ["fact"]}


def things(subject: str, kind: str, relation: str, thing: str, other: str, weight: int) -> list[dict[str, str]]:
    told = {subject: kind, thing: other}
    return [{"name": name, "type": one, "description": f"{name} is a {one}."} for name, one in told.items()]


def reads(body: Body) -> str:
    """What the scripted model finds in the passages of its prompt; it answers "same" to questions about pairs."""
    talk = body["messages"]
    if "pair" in talk[0]["content"]:
        return json.dumps({"same": ["Burbank" not in line for line in talk[1]["content"].splitlines()]})
    titles = re.findall(r"Passage (\d+): (.*)", talk[1]["content"])
    known = LATER if len(talk) > 2 else FACTS
    told = []
    for number, title in titles:
        facts = known.get(title, [])
        named = [thing for one in facts if len(talk) == 2 for thing in things(*one)]
        told.append({"passage": int(number), "entities": named, "triples": [fact(*one) for one in facts]})
    return json.dumps({"passages": told})


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(reply=reads).running() as running:
        yield running


@pytest.fixture
def llm(server: ScriptedServer, tmp_path: Path) -> Iterator[LLM]:
    ledger = CallLedger()
    with LLM(Endpoint("m", server.url), tmp_path / "cache", ledger, Settings(attempts=1, timeout=5)) as opened:
        yield opened
    ledger.close()


def test_short_passages_are_read_together_and_told_apart(llm: LLM, server: ScriptedServer) -> None:
    triples, unread = TripleReader(llm).read(CHUNKS)
    assert 1 == len(server.requests)
    # "Ed Wood is Ed Wood" relates nothing; weight 9 of 10 is a strength of .9.
    # The first description of Ed Wood counts: "Ed Wood is a film.", not that of the second fact.
    assert [
        Triple(
            *("c1", "Ed Wood", "directed by", "Tim Burton", 0.9, "film", "person", "Ed Wood directed by Tim Burton."),
            *(("fact",), "Ed Wood is a film.", "Tim Burton is a person."),
        ),
        Triple(
            *("c2", "Tim Burton", "born in", "Burbank", 0.6, "person", "city", "Tim Burton born in Burbank."),
            *(("fact",), "Tim Burton is a person.", "Burbank is a city."),
        ),
    ] == list(triples)
    assert {} == unread


def test_long_passages_are_read_alone(llm: LLM, server: ScriptedServer) -> None:
    TripleReader(llm).read([chunk(1, "Ed Wood", "word " * 300), chunk(2, "Tim Burton", "word " * 300)])
    assert 2 == len(server.requests)


def test_where_a_call_for_several_fails_each_is_asked_for_alone(llm: LLM, server: ScriptedServer) -> None:
    triples, unread = TripleReader(llm).read([*CHUNKS, chunk(4, "Bad", "fault:schema")])
    assert ["c1", "c2"] == [triple.passage_id for triple in triples]
    assert ["c4"] == list(unread)
    assert unread["c4"].startswith("wrong schema")


def test_gleaning_adds_what_was_missed(llm: LLM, server: ScriptedServer) -> None:
    glean = [chunk(1, "Gleaned")]
    assert ["One"] == [triple.object for triple in TripleReader(llm).read(glean)[0]]
    assert ["One", "Two"] == [triple.object for triple in TripleReader(llm, gleaning=1).read(glean)[0]]
    assert 2 == len(server.requests)  # the first round came from the cache
    # The second round lists no things: what is known of Gleaned is from the first.
    assert ["Gleaned is a thing."] * 2 == [
        triple.subject_description for triple in TripleReader(llm, gleaning=1).read(glean)[0]
    ]


def passages(count: int = 3) -> list[Passage]:
    return [Passage(one.id, one.title, one.text) for one in CHUNKS[:count]]


def plan(llm: LLM | None, corpus: list[Passage]) -> GraphPlan:
    settings = BuildSettings(extractor="llm", recogniser=recogniser(Endpoint("m", "http://h/v1")))
    return GraphPlan("small", corpus, settings, WordEmbedder(), reader=TripleReader(llm) if llm else None)


def test_a_graph_is_built_from_what_was_read(llm: LLM, tmp_path: Path) -> None:
    wanted = plan(llm, passages())
    store = KgliteStore(tmp_path / "graphs", wanted.namespace)
    record = build_graph(wanted, store, tmp_path / "staging", plain)
    assert "gaps" not in record
    tables = export(store)
    entities = tables.nodes[ENTITY].set_index("name")
    assert {"Ed Wood": "film", "Tim Burton": "person", "Burbank": "city"} == entities["type"].to_dict()
    assert {
        "Ed Wood": "Ed Wood is a film.",
        "Tim Burton": "Tim Burton is a person.",
        "Burbank": "Burbank is a city.",
    } == (entities["description"].to_dict())
    edges = tables.edges[RELATED_TO].set_index(["source", "target"])
    directed = edges.loc[("e:ed wood", "e:tim burton")]
    assert (0.9, ["directed by"], "Ed Wood directed by Tim Burton.") == (
        directed["strength"],
        list(directed["types"]),
        directed["description"],
    )
    assert {"direct", "fact"} <= set(directed["tags"])
    backward = edges.loc[("e:burbank", "e:tim burton")]
    assert (
        '{"subject": "e:tim burton", "type": "born in", "object": "e:burbank", ' in backward["statements"][0],
        1,
    ) == (
        True,
        len(backward["statements"]),
    )
    assert ("e:burbank", "c2") in set(
        zip(*(tables.edges[MENTIONED_IN][end] for end in ("source", "target")), strict=True)
    )
    # Found: Ed Wood–Tim Burton and Burbank–Tim Burton; wanted: the first and one more, so 1 of 2 both ways.
    reference = [Triple("c1", "Tim Burton", "made", "Ed Wood"), Triple("c3", "Burbank", "in", "California")]
    found = agreement(tables, reference)
    assert (0.5, 0.5) == (found["relations"].precision, found["relations"].recall)
    assert (1.0, 0.75) == (found["entities"].precision, found["entities"].recall)


def test_a_graph_is_never_half_built(server: ScriptedServer, llm: LLM, tmp_path: Path) -> None:
    wanted = plan(llm, [*passages(), Passage("c4", "Bad", "fault:500")])
    store = KgliteStore(tmp_path / "graphs", wanted.namespace)
    with pytest.raises(IncompleteError, match=r"1 of 4 passages.*c4: server error"):
        build_graph(wanted, store, tmp_path / "staging", plain)
    assert store.record() is None


def test_a_few_passages_that_no_run_could_read_are_named_in_the_record(llm: LLM, tmp_path: Path) -> None:
    many = [Passage(f"x{number:02}", "Burbank", "Word.") for number in range(24)]
    wanted = plan(llm, [*many, Passage("y", "Bad", "fault:empty")])  # 1 of 25 is less than 5%
    store = KgliteStore(tmp_path / "graphs", wanted.namespace)
    record = build_graph(wanted, store, tmp_path / "staging", plain)
    assert {"y": "empty choice: the reply has no content"} == record["gaps"]


def test_the_model_and_the_prompt_name_the_graph() -> None:
    one = plan(None, passages())
    other = replace(one, settings=replace(one.settings, recogniser=recogniser(Endpoint("n", "http://h/v1"))))
    gleaned = replace(one, settings=replace(one.settings, recogniser=recogniser(Endpoint("m", "http://h/v1"), 1)))
    assert 3 == len({one.build_key, other.build_key, gleaned.build_key})


def test_what_cannot_be_built_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="'llm' and plug-ins need"):
        BuildSettings(extractor="llm")
    with pytest.raises(InputError, match="--llm"):
        build_graph(plan(None, passages()), KgliteStore(tmp_path, "n"), tmp_path / "staging", plain)


class Angles:
    """Names at given places on a circle: the cosine of two is that of their difference."""

    name, dimension, synonym_threshold = "angles-1", 2, 0.7

    def __init__(self, **degrees: float) -> None:
        self._degrees = {name.replace("_", " "): angle for name, angle in degrees.items()}

    def embed(self, texts: list[str]) -> Vectors:
        import numpy as np

        angles = np.radians([self._degrees[text] for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def states(*names: str) -> list[Triple]:
    return [Triple("p", name, "is", "other") for name in names]


def test_names_are_merged_when_sure_and_asked_about_when_doubtful(llm: LLM, server: ScriptedServer) -> None:
    # cos 5° = .996: sure. cos 30° = .87: doubtful, and the model says yes to Burton only. cos 90° = 0: different.
    embedder = Angles(Tim_Burton=0, Tim_W_Burton=5, T_Burton=30, Burbank=-30, other=120)
    triples = [*states("Tim Burton", "Tim Burton", "tim burton", "Tim W Burton", "T Burton", "Burbank")]
    canonical, _ = resolve_names(triples, embedder, llm)  # type: ignore[arg-type]
    assert {"T Burton": "Tim Burton", "Tim W Burton": "Tim Burton", "tim burton": "Tim Burton"} == canonical
    assert {"Tim Burton", "Burbank"} == {one.subject for one in renamed(triples, canonical)}
    without, _ = resolve_names(triples, embedder)  # type: ignore[arg-type]
    assert {"Tim W Burton": "Tim Burton", "tim burton": "Tim Burton"} == without
    assert {"Tim Burton": ["Tim W Burton", "tim burton"]} == aliases_of(without)


def test_names_that_differ_in_a_number_are_never_one() -> None:
    embedder = Angles(**{"1 April 1787": 0, "1 April 1788": 1, "Henry IV": 40, "Henry V": 41, "other": 120})
    assert {} == resolve_names(states("1 April 1787", "1 April 1788", "Henry IV", "Henry V"), embedder)[0]  # type: ignore[arg-type]


def test_a_pair_the_model_does_not_answer_for_stays_apart_and_is_told(llm: LLM) -> None:
    embedder = Angles(**{"fault:500 a": 0, "fault:500 b": 30, "other": 120})
    canonical, undecided = resolve_names(states("fault:500 a", "fault:500 b"), embedder, llm)  # type: ignore[arg-type]
    assert {} == canonical
    assert ["1 pairs of names from ('fault:500 a', 'fault:500 b')"] == list(undecided)
