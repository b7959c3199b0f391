"""Names from spaCy's recogniser: what becomes of them, and what is said where spaCy or its model is absent."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.machinery import ModuleSpec
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from tests.support.graphs import plain, plan_of

from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.graph.construction.builder import build_graph
from hopbench.retrieval.graph.extract.names import ReadChunk, alias_table, read_chunk
from hopbench.retrieval.graph.extract.rules import rule_tables
from hopbench.retrieval.graph.extract.spacy_names import MODEL_VARIABLE, recogniser, spacy_names
from hopbench.retrieval.graph.schema import ENTITY, MENTIONED_IN
from hopbench.retrieval.graph.stores.contents import export
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.support.errors import InputError, MissingExtraError
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Passage

PLACE = "hopbench.retrieval.graph.extract.spacy_names"


@dataclass(frozen=True)
class Entity:
    """What of spacy.tokens.Span is read."""

    start_char: int
    end_char: int
    label_: str


@dataclass(frozen=True)
class Doc:
    """What of spacy.tokens.Doc is read."""

    text: str
    ents: Sequence[Entity]


@dataclass(frozen=True)
class Recogniser:
    """A spaCy pipe that knows these names where they first stand in a sentence.

    "GPE LOC" labels the name GPE in the first sentence that has it, LOC in the next, then GPE again.
    """

    labels: Mapping[str, str]

    def pipe(self, texts: Sequence[str], *, batch_size: int) -> Iterator[Doc]:
        assert batch_size > 0
        labels = {name: cycle(found.split()) for name, found in self.labels.items()}
        for text in texts:
            places = sorted((text.find(name), name) for name in labels if name in text)
            yield Doc(text, [Entity(at, at + len(name), next(labels[name])) for at, name in places])


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reads passages (title, text) with a recogniser that knows `labels`; gives the chunks and the types."""

    def read(labels: Mapping[str, str], *texts: str, title: str = "Zed") -> tuple[list[ReadChunk], Any]:
        monkeypatch.setattr(f"{PLACE}._load", lambda model: Recogniser(labels))
        chunks = chunk_passages(Passage(f"p{n}", title, text) for n, text in enumerate(texts))
        table = alias_table(chunks)
        pieces = [read_chunk(chunk, table) for chunk in chunks]
        return pieces, spacy_names("model@1/spacy@3", pieces, table)

    return read


def phrases(piece: ReadChunk) -> list[str]:
    return [" ".join(phrase.key) for phrase in piece.phrases]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Madrid", "Madrid lies in the middle.", ["madrid"]),  # one word at the beginning: the rules see no name
        ("Obama", "there President Obama spoke.", ["president obama", "obama"]),
        ("The Who", "The Who sang.", []),  # nothing but a stop word is left
        ("the Big Ben's", "under the Big Ben's clock", ["big ben"]),  # no article, no possessive
        ("café society", "the café society met", []),  # no capital
        ("Jo", "seen was Jo there", []),  # the rules, too, want four letters of a single word, spaCy's have three
        ("Jon", "seen was Jon there", ["jon"]),
        ("ork", "New York grew", ["new york"]),  # not our words
        ("New York", "New York grew", ["new york"]),  # found by both, once
        (" ".join(["Xa"] * 11), " ".join(["Xa"] * 11), []),  # over MAX_NAME_WORDS
        ("José Martí", "José Martí wrote.", ["jose marti"]),
    ],
)
def test_which_names_become_phrases(reading: Any, name: str, text: str, expected: list[str]) -> None:
    (piece,), _ = reading({name: "PERSON"}, text)

    assert sorted(expected) == sorted(phrases(piece))


@pytest.mark.parametrize("label", ["DATE", "CARDINAL", "MONEY", "TIME", "ORDINAL", "PERCENT", "QUANTITY"])
def test_numbers_and_dates_are_no_names(reading: Any, label: str) -> None:
    (piece,), types = reading({"Friday": label}, "Friday came.")

    assert ([], {}) == (phrases(piece), types)


def test_a_title_stays_the_title_s_own_entity(reading: Any) -> None:
    labels = {"Ed Wood": "PERSON", "Wood": "PERSON"}
    (piece,), _ = reading(labels, "Ed Wood was Wood.", title="Ed Wood")

    # "Ed Wood" is a mention, and so is its inside; the rules took the last "Wood" (spaCy here knows the first only).
    assert ["wood"] == phrases(piece)


def test_a_type_is_the_commonest_label(reading: Any) -> None:
    labels = {"Paris": "GPE PERSON PERSON", "Texas": "LOC GPE"}
    _, types = reading(labels, "Paris met Texas.", "Paris left Texas.", "Paris alone.")

    # Paris: PERSON twice, GPE once; Texas: one each, so the alphabet's first.
    assert {("paris",): "PERSON", ("texas",): "GPE"} == types


def test_typed_phrases_must_return_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{PLACE}._load", lambda model: Recogniser({"Madrid": "GPE", "Toledo": "GPE"}))
    passages = [
        Passage("a", "Ann Lee", "Madrid was home."),
        Passage("b", "Bob Ray", "Madrid was far. Toledo was near. He saw Big Ben."),
        Passage("c", "Cyd Fox", "She saw Big Ben."),
    ]
    chunks = chunk_passages(passages)
    tagger = Tagger(chunk.content for chunk in chunks)
    entities = rule_tables(chunks, tagger, partial(spacy_names, "model@1/spacy@3"))[ENTITY]
    kinds = dict(zip(entities["name"], entities["type"], strict=True))

    # Toledo stands in one passage only; Big Ben returns, but spaCy has no label for it.
    assert {"Ann Lee": "title", "Bob Ray": "title", "Cyd Fox": "title", "Madrid": "GPE", "Big Ben": "phrase"} == kinds


def test_without_spacy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{PLACE}.find_spec", lambda name: None)

    with pytest.raises(MissingExtraError, match=r"the spaCy extractor needs .*pip install 'hopbench\[spacy\]'"):
        recogniser()


@pytest.mark.parametrize("model", ["no_such_model", "../folder", "a.b", "json"])  # json is a module, but no package
def test_a_missing_model_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    real = importlib.util.find_spec

    def with_spacy(name: str) -> ModuleSpec | None:
        return ModuleSpec("spacy", None) if name == "spacy" else real(name)

    monkeypatch.setattr(f"{PLACE}.find_spec", with_spacy)
    monkeypatch.setenv(MODEL_VARIABLE, model)
    with pytest.raises(InputError) as error:
        recogniser()

    assert f"the spaCy model {model!r} is not installed: python -m spacy download {model}" in str(error.value)
    assert MODEL_VARIABLE in str(error.value)


@pytest.fixture
def installed() -> str:
    try:
        return recogniser()
    except InputError as missing:
        pytest.skip(str(missing))


@pytest.mark.soak  # no package index has a model, so that few machines could run it
def test_a_real_model_builds_the_same_graph_in_any_order(installed: str, tmp_path: Path) -> None:
    passages = [
        Passage("a", "Ann Lee", "Barack Obama met her in Chicago. Chicago was cold."),
        Passage("b", "Bob Ray", "President Barack Obama wrote to him from Washington."),
        Passage("c", "Cyd Fox", "Chicago elected her in 1990."),
    ]
    prints = []
    for name, corpus in (("forward", passages), ("backward", passages[::-1])):
        plan = plan_of(corpus, extractor="spacy", recogniser=installed)
        store = KgliteStore(tmp_path / name, plan.namespace)
        prints.append(build_graph(plan, store, tmp_path / "staging", plain)["fingerprint"])
        store.close()
        tables = export(store)

    kinds = dict(zip(tables.nodes[ENTITY]["id"], tables.nodes[ENTITY]["type"], strict=True))
    mentions = tables.edges[MENTIONED_IN]
    assert prints[0] == prints[1]
    assert ("PERSON", "GPE") == (kinds["e:barack obama"], kinds["e:chicago"])
    # In c "Chicago" stands at the sentence's beginning, in b "Obama" behind his office: the rules find neither.
    assert {"a", "c"} == set(mentions[mentions.source == "e:chicago"].target)
    assert {"a", "b"} == set(mentions[mentions.source == "e:barack obama"].target)
