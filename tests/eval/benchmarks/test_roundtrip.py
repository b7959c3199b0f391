"""Any benchmark written as a BEIR folder is read back the same, in whatever order its lines are."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.types import Passage

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
WORDS = TEXT.filter(lambda text: bool(text.strip()))
IDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=8).filter(
    lambda text: (
        bool(text.strip()) and text.lower() not in {"query-id", "query_id", "queryid", "question_id", "qid", "query"}
    )
)


@st.composite
def benchmarks(draw: st.DrawFn) -> Benchmark:
    ids = draw(st.lists(IDS, min_size=1, max_size=6, unique=True))
    titles = TEXT.map(lambda text: text if text.strip() else "")  # a title of spaces alone is none
    passages = tuple(Passage(passage_id, draw(titles), draw(WORDS)) for passage_id in ids)
    golds = st.lists(st.sampled_from(ids), min_size=1, unique=True).map(tuple)
    questions = []
    for question_id in draw(st.lists(IDS, min_size=1, max_size=4, unique=True)):
        answers = draw(st.lists(WORDS, unique=True, max_size=3))
        questions.append(
            BenchmarkQuestion(
                id=question_id,
                text=draw(WORDS),
                type=draw(TEXT),
                answer=answers[0] if answers else None,
                aliases=tuple(answers[1:]),
                gold=draw(golds),
            )
        )
    return Benchmark("any", passages, tuple(questions), "report")


def write(folder: Path, benchmark: Benchmark, random: Random, *, ascii_only: bool) -> None:
    def lines(records: Sequence[str]) -> str:
        return "\n".join(random.sample(records, len(records))) + "\n"

    def dumps(record: object) -> str:
        return json.dumps(record, ensure_ascii=ascii_only)

    corpus = [dumps({"_id": p.id, "title": p.title, "text": p.text}) for p in benchmark.passages]
    queries = [
        dumps(
            {"_id": q.id, "text": q.text, "metadata": {"type": q.type, "answer": q.answer, "answer_aliases": q.aliases}}
        )
        for q in benchmark.questions
    ]
    qrels = [f"{q.id}\t{passage_id}\t1" for q in benchmark.questions for passage_id in q.gold]
    (folder / "qrels").mkdir()
    (folder / "corpus.jsonl").write_bytes(lines(corpus).encode())
    (folder / "queries.jsonl").write_bytes(lines(queries).encode())
    (folder / "qrels" / "test.tsv").write_bytes(("query-id\tcorpus-id\tscore\n" + lines(qrels)).encode())


@settings(max_examples=60, deadline=None)
@given(benchmarks(), st.integers(0, 2**32), st.booleans())
def test_written_and_read_back_it_has_the_same_digest(benchmark: Benchmark, seed: int, ascii_only: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), benchmark, Random(seed), ascii_only=ascii_only)
        loaded = load_benchmark(name)

    assert benchmark.digest == loaded.digest
    assert set(benchmark.passages) == set(loaded.passages)


@settings(max_examples=30, deadline=None)
@given(benchmarks(), st.data())
def test_another_text_is_another_digest(benchmark: Benchmark, data: st.DataObject) -> None:
    spoiled = data.draw(st.sampled_from(benchmark.passages))
    with tempfile.TemporaryDirectory() as name:
        changed = tuple(Passage(p.id, p.title, p.text + "x") if p is spoiled else p for p in benchmark.passages)
        write(Path(name), Benchmark("any", changed, benchmark.questions), Random(0), ascii_only=False)

        assert benchmark.digest != load_benchmark(name).digest
