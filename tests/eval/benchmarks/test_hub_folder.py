"""Folders as the Hub has them and as `datasets` writes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.types import Benchmark
from hopbench.retrieval.support.errors import InputError

CORPUS = [{"_id": f"p{n}", "title": f"T{n}", "text": f"Text {n}."} for n in range(1, 5)]
QUERIES = [{"_id": "q1", "text": "Who?"}, {"_id": "q2", "text": "What?"}]
QRELS = [
    {"query-id": "q1", "corpus-id": "p1", "score": 1},
    {"query-id": "q1", "corpus-id": "p3", "score": 2},
    {"query-id": "q2", "corpus-id": "p2", "score": 0},
]
HOTPOT = {
    "_id": "h1",
    "question": "Who wrote?",
    "answer": "Ada",
    "supporting_facts": {"title": ["Ada"], "sent_id": [0]},
    "context": {"title": ["Ada", "Bea"], "sentences": [["Ada wrote."], ["Bea did not."]]},
}


def parquet(path: Path, rows: list[dict[str, Any]], shards: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    for n in range(shards):
        pq.write_table(pa.Table.from_pylist(rows[n::shards]), f"{path}-{n:05}-of-{shards:05}.parquet")


def mteb(folder: Path) -> None:
    """As MTEB's sets lie on the Hub: three configs, the judgements in `default` or `qrels`, and a card."""
    parquet(folder / "corpus" / "corpus", CORPUS, shards=2)
    parquet(folder / "queries" / "queries", QUERIES)
    parquet(folder / "default" / "test", [{**row, "score": float(row["score"])} for row in QRELS])
    parquet(folder / "default" / "train", [{"query-id": "q2", "corpus-id": "p4", "score": 1}])
    (folder / "README.md").write_text("---\nlanguage: [en]\n---\nA set of somebody's.\n")


def with_ids_and_splits(folder: Path) -> None:
    """MTEB's later form: `id` in place of `_id`, a split for each part."""
    renamed = [[{"id": row["_id"], **row} for row in rows] for rows in (CORPUS, QUERIES)]
    for name, rows in zip(("corpus", "queries"), renamed, strict=True):
        for row in rows:
            del row["_id"]
        parquet(folder / name / "test", rows)
        parquet(folder / name / "dev", [{**rows[0], "text": "Another split's."}])
    parquet(folder / "qrels" / "test", QRELS)


def by_card(folder: Path) -> None:
    """Files where only the card says: its configs name them."""
    parquet(folder / "texts" / "part", CORPUS)
    parquet(folder / "data" / "asked", QUERIES)
    parquet(folder / "data" / "test", QRELS)
    files = {"corpus": "texts/part-*", "queries": "data/asked-*"}
    configs = [{"config_name": name, "data_files": [{"split": "x", "path": path}]} for name, path in files.items()]
    configs.append({"config_name": "default", "data_files": [{"split": "test", "path": ["data/test-*.parquet"]}]})
    (folder / "README.md").write_text(f"---\n{json.dumps({'configs': configs})}\n---\n")


def converted(folder: Path) -> None:
    """As the Hub itself converts a set: a folder for each config and split."""
    for part, split, rows in (("corpus", "a", CORPUS), ("queries", "b", QUERIES), ("default", "test", QRELS)):
        place = folder / part / split
        place.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), place / "0000.parquet")


def lines_beside(folder: Path) -> None:
    """BEIR's files with judgements as JSON lines."""
    for name, rows in (("corpus.jsonl", CORPUS), ("queries.jsonl", QUERIES), ("qrels/test.jsonl", QRELS)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def saved_parts(folder: Path) -> None:
    """Each part saved by itself, one of them with splits."""
    datasets.Dataset.from_list(CORPUS).save_to_disk(str(folder / "corpus"), num_shards=2)
    datasets.Dataset.from_list(QUERIES).save_to_disk(str(folder / "queries"))
    judged = {"test": datasets.Dataset.from_list(QRELS)}
    datasets.DatasetDict(judged).save_to_disk(str(folder / "qrels"))


def saved_together(folder: Path) -> None:
    parts = {"corpus": CORPUS, "queries": QUERIES, "qrels": QRELS}
    datasets.DatasetDict({name: datasets.Dataset.from_list(rows) for name, rows in parts.items()}).save_to_disk(
        str(folder)
    )


LAYOUTS = (mteb, with_ids_and_splits, by_card, converted, lines_beside, saved_parts, saved_together)


def plain(benchmark: Benchmark) -> tuple[list[tuple[str, str, str]], list[tuple[str, tuple[str, ...]]]]:
    passages = sorted((one.id, one.title, one.text) for one in benchmark.passages)
    return passages, [(one.id, tuple(sorted(one.gold))) for one in benchmark.questions]


@pytest.mark.parametrize("write", LAYOUTS)
def test_every_layout_is_the_same_benchmark(tmp_path: Path, write: Callable[[Path], None]) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    write(folder)
    expected = [(row["_id"], row["title"], row["text"]) for row in CORPUS], [("q1", ("p1", "p3"))]
    assert expected == plain(load_benchmark(folder))
    assert expected == plain(load_benchmark(folder, mapped=tmp_path / "mapped"))
    assert ("made", "report") == (load_benchmark(folder).name, load_benchmark(folder).role)


def test_judgements_without_scores_list_gold(tmp_path: Path) -> None:
    mteb(tmp_path)
    for file in (tmp_path / "default").iterdir():
        file.unlink()
    parquet(tmp_path / "qrels" / "train", [{"query-id": "q2", "corpus-id": "p4"}])
    assert [("q2", ("p4",))] == plain(load_benchmark(tmp_path))[1]


def test_without_judgements_the_questions_may_name_their_gold(tmp_path: Path) -> None:
    parquet(tmp_path / "corpus" / "train", CORPUS)
    parquet(tmp_path / "queries" / "train", [{**row, "gold": ["p2"]} for row in QUERIES])
    assert [("q1", ("p2",)), ("q2", ("p2",))] == plain(load_benchmark(tmp_path))[1]


def test_a_corpus_alone_is_loaded_where_no_questions_are_needed(tmp_path: Path) -> None:
    parquet(tmp_path / "corpus" / "train", CORPUS)
    assert 4 == len(load_benchmark(tmp_path, need_questions=False).passages)
    with pytest.raises(
        InputError, match=r"the folder holds corpus. It is a corpus without questions, which are needed"
    ):
        load_benchmark(tmp_path)


def test_saved_records_are_read_as_any_file_of_them(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text(json.dumps([HOTPOT]))
    expected = load_benchmark(tmp_path / "dev.json")
    dev = datasets.Dataset.from_list([HOTPOT])
    dev.save_to_disk(str(tmp_path / "single"))
    train = datasets.Dataset.from_list([{**HOTPOT, "_id": "t1"}])
    datasets.DatasetDict(train=train, validation=dev).save_to_disk(str(tmp_path / "both"))
    single, both = load_benchmark(tmp_path / "single"), load_benchmark(tmp_path / "both")
    assert [expected.digest] * 2 == [single.digest, both.digest]
    assert ["single", "both-validation"] == [single.name, both.name]
    only = load_benchmark(tmp_path / "both" / "train")
    assert ("train", "tune", ["t1"]) == (only.name, only.role, [one.id for one in only.questions])


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (
            lambda folder: next((folder / "corpus").iterdir()).unlink(),
            "corpus: holds 1 of the 2 files of the split 'corpus': download the others",
        ),
        (
            lambda folder: parquet(folder / "queries" / "more", QUERIES),
            "queries: has the splits more, queries, and which to read is not clear",
        ),
        (
            lambda folder: parquet(folder / "default" / "test", [{"query-id": "q1", "corpus-id": "P1", "score": 1}]),
            "default: 1 gold id is not in the corpus: 'P1' (row 1; 'p1' is there, which differs in case)",
        ),
        (
            lambda folder: parquet(folder / "default" / "test", [{"query-id": "q1", "corpus-id": "p1", "score": "x"}]),
            "default/test-00000-of-00001.parquet, row 1: column 'score' is 'x', must be a whole number",
        ),
        (
            lambda folder: parquet(folder / "corpus" / "corpus", [CORPUS[0]] * 2, shards=2),
            "corpus/corpus-00001-of-00002.parquet, row 1: duplicate passage '_id' 'p1', first used in ",
        ),
    ],
)
def test_faults_are_named(tmp_path: Path, spoil: Callable[[Path], object], expected: str) -> None:
    mteb(tmp_path)
    spoil(tmp_path)
    with pytest.raises(InputError) as caught:
        load_benchmark(tmp_path)
    assert expected == str(caught.value).removeprefix(f"{tmp_path}/")[: len(expected)]


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("dataset_dict.json", "{", "dataset_dict.json, line 1: not JSON"),
        ("dataset_dict.json", '{"splits": 3}', "dataset_dict.json: field 'splits' must be a list, as `save_to_disk`"),
        ("dataset_dict.json", '{"splits": ["../elsewhere"]}', "elsewhere/state.json: no such file"),
        ("state.json", '{"_data_files": [{"filename": "../../etc/passwd"}]}', "passwd: no such file"),
        ("state.json", '{"_data_files": []}', ": is empty: it must hold at least one record"),
    ],
)
def test_damaged_saved_folders_are_one_message(tmp_path: Path, file: str, content: str, expected: str) -> None:
    (tmp_path / "dataset_info.json").write_text("{}")
    (tmp_path / file).write_text(content)
    with pytest.raises(InputError) as caught:
        load_benchmark(tmp_path)
    assert expected == str(caught.value).removeprefix(f"{tmp_path}").removeprefix("/")[: len(expected)]


@pytest.mark.parametrize("path", ["../../../etc/*", "/etc/*", "**x/[", ""])
def test_a_card_leads_nowhere_else(tmp_path: Path, path: str) -> None:
    parquet(tmp_path / "corpus" / "train", CORPUS)
    parquet(tmp_path / "queries" / "train", QUERIES)
    card = {"configs": [5, {"config_name": "corpus", "data_files": [{"split": "a", "path": path}, 7, None]}]}
    (tmp_path / "README.md").write_text(f"---\n{json.dumps(card)}\n---\n")
    assert 4 == len(load_benchmark(tmp_path).passages)
