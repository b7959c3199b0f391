"""`hopbench explain` on the tiny benchmark: what a person reads, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from tests.flows.cli.conftest import PASSAGES, QUESTIONS, Hopbench, call

BURTON = "Where was the director of Ed Wood born?"


def test_a_question_with_gold_is_explained_whole(hopbench: Hopbench, bench: Path, finished: Path) -> None:
    done = hopbench("explain", "q1", "--dataset", bench, "--strategy", "graph_expansion", "--top", 5)
    assert (done.code, done.err) == (0, "")
    _, text, kind, answer, gold = QUESTIONS[0]
    assert f"q1  tiny, {kind}" in done.out
    assert text in done.out
    assert f"answer: {answer}" in done.out
    assert re.search(r"^Ed Wood +Ed Wood ", done.out, re.MULTILINE)  # words → entity
    assert re.search(r"^graph_expansion  documented  \(\d+ round trips, [\d,]+ rows", done.out, re.MULTILINE)
    assert len(re.findall(r"^  \d  (?:gold|    )  ", done.out, re.MULTILINE)) == 5
    fates = done.out.partition("gold passages\n")[2]
    for passage in gold:
        title = PASSAGES[passage][0]
        assert re.search(rf"^  {re.escape(title)}  \[{passage}\]  (rank \d+|not in the ranking)", fates, re.MULTILINE)
    assert re.search(r"^      (seed|reached|out-ranked|pruned|filled)", fates, re.MULTILINE)


def test_two_strategies_stand_side_by_side(hopbench: Hopbench, bench: Path, finished: Path) -> None:
    done = hopbench("explain", "q2", "--dataset", bench, "--strategy", "bm25", "--against", "pagerank", "--top", 3)
    assert (done.code, done.err) == (0, "")
    head, _, beside = done.out.partition("bm25 against pagerank\n")
    assert head.count("In which") + head.count(QUESTIONS[1][1]) == 1  # the question is printed once
    assert re.search(r"^gold passage +bm25 +pagerank", beside, re.MULTILINE)
    assert re.search(r"^Johnny Depp +rank \d+, \w+ +rank \d+, \w+", beside, re.MULTILINE)
    assert re.search(r"^only bm25 has in its first hits: (\d|nothing)", beside, re.MULTILINE)
    assert re.search(r"^only pagerank has in its first hits: (\d|nothing)", beside, re.MULTILINE)


def test_free_text_has_no_gold(hopbench: Hopbench, bench: Path, finished: Path) -> None:
    done = hopbench("explain", BURTON, "--dataset", bench, "--strategy", "vector")
    assert done.code == 0
    assert "(free text)" in done.out
    assert "gold passages" not in done.out


def test_the_text_of_a_question_is_that_question(hopbench: Hopbench, bench: Path, finished: Path) -> None:
    done = hopbench("explain", QUESTIONS[2][1], "--dataset", bench, "--strategy", "bm25")
    assert "q3  tiny, bridge" in done.out
    assert "gold passages" in done.out


def test_a_run_brings_its_benchmark_settings_and_ranking(hopbench: Hopbench, finished: Path) -> None:
    done = hopbench("explain", "q3", "--run", finished, "--strategy", "pagerank")
    assert (done.code, done.err) == (0, "")
    assert f"the ranking stored in {finished} is the same" in " ".join(done.out.split())
    other = hopbench("explain", "q3", "--run", finished, "--strategy", "hybrid")
    assert other.code == 0
    assert "was not run on it" in other.out


def test_a_stored_ranking_that_differs_is_shown(hopbench: Hopbench, finished: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(finished, changed)
    table = pd.read_parquet(changed / "questions.parquet")
    table["ranked_ids"] = [list(ids)[::-1] for ids in table["ranked_ids"]]
    table.to_parquet(changed / "questions.parquet")
    done = hopbench("explain", "q3", "--run", changed, "--strategy", "bm25", "--top", 2)
    assert done.code == 0
    assert "holds another ranking" in done.out


def test_the_parameters_are_those_of_the_run(hopbench: Hopbench, finished: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(finished, changed)
    text = (changed / "results.json").read_text(encoding="utf-8")
    assert text.count('"restart"') == 1
    (changed / "results.json").write_text(text.replace('"restart"', '"comeback"'), encoding="utf-8")
    done = hopbench("explain", "q3", "--run", changed, "--strategy", "pagerank")
    assert done.code == 2
    assert "was run with what is unknown here (unknown parameter of pagerank 'comeback'" in done.err


def test_cypher_to_paste(hopbench: Hopbench, bench: Path, finished: Path) -> None:
    done = hopbench("explain", "q1", "--dataset", bench, "--strategy", "graph_expansion", "--cypher")
    assert done.code == 0
    first, *rest = done.out.splitlines()
    assert first == "// graph_expansion: round trip 1 of 1"
    assert re.match(r':param namespace => "tiny-[0-9a-f]{12}";$', rest[0])
    assert any(re.match(r":param ids => \[\"p\d\d\"", line) for line in rest)
    assert done.out.rstrip().endswith("weight;")


def test_cypher_of_both_sides_and_of_the_source(hopbench: Hopbench, bench: Path, finished: Path) -> None:
    done = hopbench(
        "explain", "q1", "--dataset", bench, "--strategy", "pagerank", "--against", "activation", "--cypher"
    )
    heads = [line for line in done.out.splitlines() if line.startswith("//")]
    assert heads[0].startswith("// pagerank: round trip 1 of ")
    assert heads[-1] == "// activation: the source's own query 1 of 1"
    assert "transfer_energy DESC" in done.out


def test_cypher_of_document_4_returns_whole_chunks_by_matched_entities(
    hopbench: Hopbench, bench: Path, finished: Path
) -> None:
    done = hopbench("explain", "q1", "--dataset", bench, "--strategy", "entity_expansion", "--cypher")
    own = done.out.partition("// entity_expansion: the source's own query 1 of 1\n")[2]
    assert re.search(r':param entities => \["e:ed wood", "e:', own)
    assert "c.content AS chunk_text" in own
    assert own.rstrip().endswith("matched_entities, entity_count\nORDER BY entity_count DESC, id LIMIT $top_k;")


def test_the_page_of_a_passage_is_printed_and_kept_beside_its_rank(
    hopbench: Hopbench, bench: Path, finished: Path
) -> None:
    done = hopbench("explain", "q1", "--dataset", bench, "--strategy", "vector", "--top", 12)
    hits = re.findall(r"^ *\d+  (?:gold|    )  (.*?)  [\d.]+  (.*)$", done.out, re.MULTILINE)
    assert {"Tim Burton"} == {title for title, words in hits if "[directors.pdf, page 12]" in words}

    table = pd.read_parquet(finished / "questions.parquet")
    for ranked, sources in zip(table["ranked_ids"], table["sources"], strict=True):
        assert ["directors.pdf, page 12" if one == "p02" else "" for one in ranked] == list(sources)


def test_a_documents_name_of_a_parameter_is_explained_by_its_field(
    hopbench: Hopbench, bench: Path, finished: Path
) -> None:
    label = "graph_expansion[max_expansion_depth=2]"
    done = hopbench("explain", "q1", "--dataset", bench, "--strategy", label)
    assert re.search(r"^graph_expansion\[max_depth=2\]  set by hand  \(2 round trips", done.out, re.MULTILINE), done.out


def test_json_holds_trace_context_costs_and_fates(hopbench: Hopbench, bench: Path, finished: Path) -> None:
    done = hopbench(
        "explain", "q1", "--dataset", bench, "--strategy", "expansion_queries", "--against", "bm25", "--json"
    )
    assert (done.code, done.err) == (0, "")
    said = json.loads(done.out)
    assert list(QUESTIONS[0][4]) == said["gold"]
    assert ["expansion_queries", "bm25"] == list(said["labels"])
    found = said["labels"]["expansion_queries"]
    trace = found["trace"]
    assert {"entities", "neighbours", "queries", "hits_of", "query_of", "found", "unique", "kept"} <= set(trace)
    assert trace["found"] == sum(map(len, trace["hits_of"].values())) >= trace["unique"] == len(trace["query_of"])
    assert {"entities", "graph", "search", "fusion"} == set(found["stage_seconds"])
    near = [one for each in trace["neighbours"].values() for one in each]
    assert near
    assert all({"entity", "hops", "strength"} == set(one) for one in near)
    assert ("documented", None) == (found["kind"], found["in_sample"])
    assert found["context"]["tokens"] > 0
    assert [hit["passage_id"] for hit in found["hits"]][:3] == found["context"]["passages"][:3]
    assert list(QUESTIONS[0][4]) == [gold["passage_id"] for gold in found["gold"]]


def test_the_context_of_a_reader_is_shown(hopbench: Hopbench, bench: Path, finished: Path) -> None:
    done = hopbench("explain", "q1", "--dataset", bench, "--strategy", "neighborhood")
    assert re.search(r"^  context for the reader: \d+ tokens", done.out, re.MULTILINE)


def test_a_hop_free_strategy_sends_no_cypher(hopbench: Hopbench, bench: Path, finished: Path) -> None:
    assert hopbench("explain", "q1", "--dataset", bench, "--strategy", "bm25", "--cypher").out.strip() == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["q", "--strategy", "bm25"], ["'q' is no question of tiny, which has 4, such as q", "more than one word"]),
        (["q1", "--strategy", "bm52"], ["unknown strategy 'bm52'", "'bm25'"]),
        (["q1", "--strategy", "bm25", "--against", "vektor"], ["unknown strategy 'vektor'", "'vector'"]),
        (["q1", "--strategy", "graph_expansion[max_depth=9]"], ["max_depth = 9", "1..3"]),
        (["q1", "--strategy", "bm25", "--embedder", "minilmm"], ["unknown embedder", "'minilm'"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("q") else "",
)
def test_what_cannot_be_explained(
    hopbench: Hopbench, bench: Path, finished: Path, arguments: list[str], words: list[str]
) -> None:
    done = hopbench("explain", *arguments, "--dataset", bench)
    assert (done.code, done.out) == (2, "")
    assert all(word in done.err for word in words), done.err


def test_a_graph_that_is_not_built(bench: Path, tmp_path: Path) -> None:
    done = call("explain", "q1", "--dataset", bench, "--strategy", "bm25", home=tmp_path / "home")
    assert done.code == 2
    assert f"hopbench graph build --dataset {bench}" in done.err
    assert "no graph is built" in done.err


def test_a_run_whose_benchmark_has_changed(hopbench: Hopbench, finished: Path) -> None:
    done = hopbench("explain", "q1", "--run", finished, "--dataset", "hopworld", "--strategy", "bm25")
    assert done.code == 2
    assert "digest" in done.err
    assert "--dataset" in done.err
