"""The real samples: every folder and official file loads with the right counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopbench.eval.benchmarks import load_benchmark, load_run, load_triples

pytestmark = pytest.mark.benchmarks

# passages, questions and gold as `wc -l` counts them (qrels without their header)
FOLDERS = [
    ("2wiki-kg100", "report", 851, 100, 246),
    ("2wiki-train500", "tune", 3112, 500, 1184),
    ("hotpotqa-dev500", "report", 4937, 500, 1000),
    ("hotpotqa-train200", "tune", 1989, 200, 400),
    ("musique-train100", "tune", 1890, 100, 237),
]


@pytest.mark.parametrize("expected", FOLDERS)
def test_folders(benchmarks_dir: Path, expected: tuple[str, str, int, int, int]) -> None:
    loaded = load_benchmark(benchmarks_dir / expected[0])
    gold = sum(len(question.gold) for question in loaded.questions)

    assert (loaded.name, loaded.role, len(loaded.passages), len(loaded.questions), gold) == expected
    assert all(question.answer and question.type for question in loaded.questions)


@pytest.mark.parametrize(
    ("official", "folder", "shared_questions", "all_passages"),
    [
        ("hotpot_dev_distractor_v1.sample.json", "hotpotqa-dev500", 47, 491),
        ("2wikimultihop_train.sample.json", "2wiki-train500", 50, 394),
    ],
)
def test_official_files_agree_with_the_folders_made_from_them(
    benchmarks_dir: Path, official: str, folder: str, shared_questions: int, all_passages: int
) -> None:
    sample, whole = load_benchmark(benchmarks_dir / "originals" / official), load_benchmark(benchmarks_dir / folder)
    known = {(passage.title, passage.text) for passage in whole.passages}
    gold = {question.text: {whole.titles[passage_id] for passage_id in question.gold} for question in whole.questions}
    shared = [question for question in sample.questions if question.text in gold]

    assert (50, all_passages) == (len(sample.questions), len(sample.passages))
    assert all((passage.title, passage.text) in known for passage in sample.passages)
    assert shared_questions == len(shared)
    assert all(
        gold[question.text] == {sample.titles[passage_id] for passage_id in question.gold} for question in shared
    )


def test_official_musique_supports_match_the_decomposition(benchmarks_dir: Path) -> None:
    sample = load_benchmark(benchmarks_dir / "originals" / "musique_ans_v1.0_dev.sample.jsonl")

    assert (len(sample.questions), len(sample.passages)) == (10, 200)
    for question in sample.questions:
        steps = question.metadata["decomposition"]
        assert isinstance(steps, list)
        assert set(question.gold) == {step["passage_id"] for step in steps}
        assert question.type == question.id.split("__")[0]


@pytest.mark.parametrize(("name", "lines"), [("2wiki-kg100", 6296), ("musique-train100", 17234)])
def test_ready_triples(benchmarks_dir: Path, name: str, lines: int) -> None:
    benchmark = load_benchmark(benchmarks_dir / name)
    triples = load_triples(benchmarks_dir / name / "kg" / "triples.jsonl", benchmark.titles)

    assert lines == len(triples)
    assert all(0 <= triple.confidence <= 1 for triple in triples)


@pytest.mark.parametrize("system", ["bm25", "dense", "rerank"])
def test_published_runs(benchmarks_dir: Path, system: str) -> None:
    folder = benchmarks_dir / "hotpotqa-dev500"
    run = load_run(folder / "published_runs" / f"{system}_pooled.jsonl")
    benchmark = load_benchmark(folder)

    assert {question.id for question in benchmark.questions} == set(run)
    assert all(len(ranked) >= 50 and set(ranked) <= set(benchmark.titles) for ranked in run.values())
