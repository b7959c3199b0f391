"""Corpora in languages other than English, from the command line: what is found, named and said."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from stop_words import get_stop_words
from tests.flows.cli.conftest import Hopbench
from tests.support.languages import WORLDS, World

NAMES = {"zh": "Chinese", "ja": "Japanese", "hi": "Hindi", "ar": "Arabic", "de": "German"}


def pairs_of_characters(text: str) -> list[str]:
    """An independent splitter: pairs within what punctuation and spaces divide."""
    return [run[at : at + 2] for run in re.findall(r"\w+", text) for at in range(max(len(run) - 1, 1))]


def spaced_words(text: str) -> list[str]:
    """An independent splitter: words between spaces and punctuation, of two letters or more."""
    return [word for word in re.split(r"[\s.,?!।؟]+", text.lower()) if len(word) > 1]


def reference_bm25(world: World, depth: int = 10) -> float:
    """The share of questions whose gold is all among the first 10 by BM25 over scikit-learn's counts."""
    split = pairs_of_characters if world.code in ("zh", "ja") else spaced_words
    passages = world.passages()
    stop = [] if split is pairs_of_characters else get_stop_words(world.code)
    counter = CountVectorizer(tokenizer=split, token_pattern=None, lowercase=False, stop_words=stop or None)
    counts = counter.fit_transform([f"{row['title']}. {row['text']}" for row in passages]).toarray().astype(float)
    length, frequency = counts.sum(axis=1, keepdims=True), (counts > 0).sum(axis=0)
    idf = np.log(1 + (len(counts) - frequency + 0.5) / (frequency + 0.5))
    weights = idf * counts / (counts + 1.5 * (1 - 0.75 + 0.75 * length / length.mean()))
    ids = [row["_id"] for row in passages]
    order = sorted(range(len(ids)), key=lambda row: ids[row])
    hits = []
    for question in world.questions():
        asked = counter.transform([str(question["text"])]).toarray()[0]
        scores = np.round(weights @ asked, 6)
        best = sorted(order, key=lambda row: -scores[row])[:depth]
        gold = question["gold"]
        assert isinstance(gold, list)
        hits.append(set(gold) <= {ids[row] for row in best})
    return float(np.mean(hits))


@pytest.mark.parametrize("code", sorted(WORLDS))
def test_a_corpus_of_another_language_is_searched_named_and_explained(
    code: str, hopbench: Hopbench, tmp_path: Path
) -> None:
    world = WORLDS[code]
    folder, out = world.write(tmp_path / code), tmp_path / "run"
    assert f"passages read: {NAMES[code]};" in hopbench("check-data", folder).out

    done = hopbench(
        *("run", "--dataset", str(folder), "--strategies", "bm25,pagerank", "--no-prefect", "--out", str(out))
    )
    assert 0 == done.code, done.err
    assert f"warning: the corpus is {NAMES[code]}:" in done.out
    assert f"the corpus is {NAMES[code]}:" in (out / "report.html").read_text(encoding="utf-8")
    entries = json.loads((out / "results.json").read_text(encoding="utf-8"))["strategies"]
    assert entries["bm25"]["metrics"]["all_gold@10"] == pytest.approx(reference_bm25(world), abs=0.02)
    assert 1.0 == entries["pagerank"]["metrics"]["all_gold@10"]  # the graph joins each ferry and its yard

    explained = hopbench("explain", "w3", "--run", out, "--strategy", "pagerank").out
    ferry, yard, _ = list(world.entities())[3]
    assert f"[{ferry}] ─MENTIONED_IN" in explained
    assert f"→ {yard} ─MENTIONED_IN" in explained


@pytest.mark.parametrize("code", sorted(WORLDS))
def test_every_title_is_an_entity_of_its_own(code: str) -> None:
    from hopbench.retrieval.graph.extract.rules import rule_tables
    from hopbench.retrieval.graph.schema import ENTITY
    from hopbench.retrieval.text import Language, Tagger
    from hopbench.retrieval.types import Chunk

    rows = WORLDS[code].passages()
    chunks = [Chunk(row["_id"], row["_id"], 0, row["title"], row["text"]) for row in rows]
    language = Language(code)
    entities: pd.DataFrame = rule_tables(chunks, Tagger((chunk.content for chunk in chunks), language))[ENTITY]

    titled = entities[entities["type"] != "phrase"]
    assert sorted(row["title"] for row in rows) == sorted(titled["name"])
    assert len(titled) == titled["id"].nunique()


@pytest.mark.parametrize(
    ("corpus", "more", "nodes", "edges"),
    [
        ("hi", (), 3, 0),
        ("ja", (), 3, 0),
        ("la", (), 3, 0),
        ("hi", ("--triples", "hi-triples.jsonl"), 3, 2),
    ],
)
def test_the_field_s_scripts_keep_their_names_apart(
    corpus: str,
    more: tuple[str, ...],
    nodes: int,
    edges: int,
    cases_dir: Path,
    hopbench: Hopbench,
) -> None:
    place = cases_dir / "scripts"
    flags = [str(place / one) if one.endswith(".jsonl") else one for one in more]
    done = hopbench("graph", "build", "--dataset", str(place / corpus), *flags)

    assert 0 == done.code, done.err
    assert f"'Entity': {nodes}}}" in done.out
    assert f"'RELATED_TO': {edges}}}" in done.out


def test_the_field_s_chinese_set_is_found_by_bm25(cases_dir: Path, hopbench: Hopbench, tmp_path: Path) -> None:
    out = tmp_path / "run"
    flags = ("--strategies", "bm25", "--no-prefect", "--out", str(out))
    done = hopbench("run", "--dataset", str(cases_dir / "chinese"), *flags)

    assert 0 == done.code, done.err
    found: Mapping[str, float] = json.loads((out / "results.json").read_text())["strategies"]["bm25"]["metrics"]
    assert 1.0 == found["all_gold@10"]


def test_the_language_can_be_named(hopbench: Hopbench, tmp_path: Path) -> None:
    folder = WORLDS["de"].write(tmp_path / "de")
    named = hopbench("graph", "build", "--dataset", folder, "--language", "de").out
    told = hopbench("graph", "build", "--dataset", folder).out
    assert named.splitlines()[0] == told.splitlines()[0]
    done = hopbench("graph", "build", "--dataset", str(folder), "--language", "xx")
    assert 2 == done.code
    assert "language 'xx' is unknown; known: " in done.err
