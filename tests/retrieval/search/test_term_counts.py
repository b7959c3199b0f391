"""BM25 from counts of terms: equal to bm25s by default, and what stems, parts, weights and files change."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from hopbench.retrieval.index.cache import IndexCache
from hopbench.retrieval.search.exact import LexicalIndex
from hopbench.retrieval.search.term_counts import LexicalFields, TermCounts, analyser
from hopbench.retrieval.text import ENGLISH, Language
from hopbench.retrieval.types import Chunk

PASSAGES = [
    ("Rivers", "The river Ohio flows by a stone."),
    ("", "Stones and stones, and a film of the river"),
    ("Film", "Ed Wood made a film."),
    ("", "the"),
    ("Réunion", "An island, naïve as it is; 日本語のテキスト"),
]
STEMS, PARTS = LexicalFields(stemmer=True), LexicalFields(parts=True)


def chunks(passages: list[tuple[str, str]]) -> list[Chunk]:
    return [Chunk(str(row), str(row), 0, title, text) for row, (title, text) in enumerate(passages)]


def scores(passages: list[tuple[str, str]], question: str, fields: LexicalFields) -> list[float]:
    counts = TermCounts.fit(chunks(passages), ENGLISH, fields)
    (found,) = counts.top([question], fields)
    filled = np.zeros(len(passages))
    filled[found.rows] = found.scores
    return [float(score) for score in filled]


@pytest.mark.parametrize("question", ["a river of stone", "river river film", "naïve 日本語", "Ed Wood", "unknown", ""])
def test_by_default_it_is_what_bm25s_computes(question: str) -> None:
    lexical = LexicalIndex([chunk.content for chunk in chunks(PASSAGES)])
    # bm25s adds float32 scores
    assert lexical.scores(question).tolist() == pytest.approx(scores(PASSAGES, question, LexicalFields()), abs=2e-6)


def test_a_stem_a_title_that_counts_twice_and_k1_and_b_by_hand() -> None:
    fields = LexicalFields(stemmer=True, k1=1.2, b=0.4, title_weight=2.0)
    found = scores([("Rivers", "stone"), ("", "rivers flow by")], "river", fields)
    # Terms are river, stone / river, flow, by, which is a stop word: lengths 2 + 1 and 2, mean 2.5. df = n = 2.
    idf = math.log(1 + 0.5 / 2.5)
    expected = [2 / (2 + 1.2 * (0.6 + 0.4 * 3 / 2.5)), 1 / (1 + 1.2 * (0.6 + 0.4 * 2 / 2.5))]
    assert [idf * share for share in expected] == pytest.approx(found, abs=1e-6)


def test_a_title_of_no_weight_is_not_searched() -> None:
    assert [0.0, 0.0] == scores([("River", "stone"), ("", "film")], "river", LexicalFields(title_weight=0.0))


def test_without_repetitions_that_count_a_term_counts_once() -> None:
    once, often = scores([("", "river"), ("", "river river stone")], "river", LexicalFields(k1=0.0))
    assert once == often == pytest.approx(math.log(1 + 0.5 / 2.5), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flow_run.name", ["flow", "run", "name", "flow_run.name"]),
        ("--set-role", ["set", "role", "set-role"]),
        ("It ends. Next", ["ends", "next"]),
        ("PREFECT_API_URL", ["prefect", "api", "url", "prefect_api_url"]),
    ],
)
def test_identifiers_are_whole_and_in_parts(text: str, expected: list[str]) -> None:
    assert expected == analyser(ENGLISH, PARTS)(text)


def test_stems_are_those_of_the_language_where_it_has_a_stemmer() -> None:
    assert ["aufeinanderfolg", "haus"] == analyser(Language("de"), STEMS)("aufeinanderfolgenden Häuser")
    assert ["flow", "run"] == analyser(ENGLISH, STEMS)("flows running")
    assert ["日本", "本語"] == analyser(Language("ja"), STEMS)("日本語")


@pytest.mark.parametrize("passages", [PASSAGES, [], [("", "the")]], ids=["some", "none", "stop words"])
def test_counts_in_files_answer_as_those_in_memory(passages: list[tuple[str, str]], tmp_path: Path) -> None:
    made: list[int] = []

    def counted() -> TermCounts:
        made.append(1)
        return TermCounts.fit(chunks(passages), ENGLISH, STEMS)

    for _ in range(2):
        kept = IndexCache(tmp_path).terms(counted, ENGLISH, STEMS._replace(k1=1.2))
        for question in ("rivers and stones", ""):
            (found,) = kept.top([question], STEMS)
            (expected,) = TermCounts.fit(chunks(passages), ENGLISH, STEMS).top([question], STEMS)
            assert (expected.rows.tolist(), expected.scores.tolist()) == (found.rows.tolist(), found.scores.tolist())
    assert [1] == made  # other values of k1, b and the title's weight read the same counts
