"""Files compressed with gzip: read as they are, and refused where they are cut off or unfold without end."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from hopbench.eval.benchmarks import load_benchmark, load_rankings, load_triples
from hopbench.eval.benchmarks.files import ALWAYS_ALLOWED
from hopbench.eval.data_check import check_data
from hopbench.retrieval.support.errors import InputError

CORPUS = '{"_id": "1", "text": "a"}\n{"_id": "2", "text": "b"}\n'
QUERIES = "_id;text;gold\nq1;Who?;2\n"
HOTPOT = '[{"_id": "h1", "question": "Who?", "context": [["A", ["x"]]], "supporting_facts": [["A", 0]]}]'


def pack(path: Path, content: str | bytes) -> None:
    path.write_bytes(gzip.compress(content if isinstance(content, bytes) else content.encode()))


def test_compressed_tables_are_the_same_benchmark(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    for folder in (plain, packed):
        folder.mkdir()
    (plain / "corpus.jsonl").write_text(CORPUS)
    (plain / "queries.csv").write_text(QUERIES)
    pack(packed / "corpus.jsonl.gz", "\ufeff" + CORPUS)
    pack(packed / "queries.csv.gz", QUERIES)
    expected = load_benchmark(plain)
    assert expected.digest == load_benchmark(packed).digest
    assert expected.digest == load_benchmark(packed, mapped=tmp_path / "mapped").digest
    assert expected.digest == check_data(str(packed)).as_json()["digest"]
    (packed / "corpus.jsonl.gz").write_text(CORPUS)  # as browsers save it: decompressed, under its old name
    assert expected.digest == load_benchmark(packed).digest


@pytest.mark.parametrize("name", ["dev.json.gz", "dev.jsonl.gz"])
def test_an_official_file_has_its_name_without_endings(tmp_path: Path, name: str) -> None:
    pack(tmp_path / name, HOTPOT if name.endswith("json.gz") else HOTPOT[1:-1])
    benchmark = load_benchmark(tmp_path / name)
    assert ("dev", "A") == (benchmark.name, benchmark.passages[0].title)


def test_triples_and_rankings_may_be_compressed(tmp_path: Path) -> None:
    pack(tmp_path / "triples.jsonl.gz", '{"passage_id": "1", "subject": "a", "relation": "b", "object": "c"}\n')
    pack(tmp_path / "run.jsonl.gz", '{"id": "q1", "ranked_ids": ["1"]}\n')
    assert ["c"] == [one.object for one in load_triples(tmp_path / "triples.jsonl.gz", ["1"])]
    assert ("1",) == tuple(load_rankings(tmp_path / "run.jsonl.gz").rankings["q1"].passages)


@pytest.mark.parametrize(
    "damage", [lambda whole: whole[:-6], lambda whole: whole[:20], lambda whole: whole[:-8] + bytes(8)]
)
def test_a_damaged_file_is_one_message(tmp_path: Path, damage: object) -> None:
    (tmp_path / "corpus.jsonl.gz").write_bytes(damage(gzip.compress(CORPUS.encode())))  # type: ignore[operator]
    with pytest.raises(InputError, match=r"corpus.jsonl.gz: not a whole gzip file \(.*: download or compress it again"):
        load_benchmark(tmp_path, need_questions=False)
    (fault,) = check_data(str(tmp_path)).faults
    assert "not a whole gzip file" in fault


@pytest.mark.parametrize("content", [b"\n", b" ", b"\0", b'{"_id": "1", "text": "a"}\n'])
def test_a_file_that_unfolds_without_end_is_refused_early(tmp_path: Path, content: bytes) -> None:
    pack(tmp_path / "corpus.jsonl.gz", content * (5 * ALWAYS_ALLOWED // len(content)))
    begin = time.monotonic()
    with pytest.raises(InputError, match=r"unfold to .*|over 16,777,216 bytes long|duplicate passage"):
        load_benchmark(tmp_path, need_questions=False)
    assert time.monotonic() - begin < 60  # a second on an idle machine


def test_an_array_that_unfolds_without_end_is_refused_early(tmp_path: Path) -> None:
    pack(tmp_path / "dev.json.gz", b"[" + b" " * 5 * ALWAYS_ALLOWED + b"]")
    with pytest.raises(InputError, match="and over 200 times as many is the limit, as no text has that: decompress it"):
        load_benchmark(tmp_path / "dev.json.gz")
