"""The two shipped benchmarks: what their cards promise."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from tests.support.places import ROOT
from tools.hopworld.difficulty import DIFFICULTY, MAX_SHARE, MIN_REACH, check, table
from tools.hopworld.questions import number
from tools.hopworld.write import write_benchmark

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.types import Benchmark, BenchmarkQuestion

DATASETS = ROOT / "datasets"
SEEDS = {"hopworld": 1, "hopworld-tune": 2}
GOLD = {"bridge": 2, "comparison": 2, "compositional": 3, "bridge-comparison": 4}
FILES = ("README.md", "corpus.jsonl", "qrels/test.jsonl", "qrels/test.tsv", "queries.jsonl")

both = pytest.mark.parametrize("name", sorted(SEEDS))


@cache
def shipped(name: str) -> Benchmark:
    return load_benchmark(DATASETS / name)


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def evidences(question: BenchmarkQuestion) -> list[list[str]]:
    found = question.metadata["evidences"]
    assert isinstance(found, list)
    return found


@cache
def passages_of(name: str) -> dict[str, str]:
    return {p.id: f"{p.title}. {p.text}" for p in shipped(name).passages}


def texts(name: str, question: BenchmarkQuestion) -> list[str]:
    return [passages_of(name)[gold] for gold in question.gold]


@both
def test_the_generator_writes_the_shipped_bytes(name: str, tmp_path: Path) -> None:
    write_benchmark(tmp_path / name, SEEDS[name], 2500, 400)
    for file in FILES:
        assert (tmp_path / name / file).read_bytes() == (DATASETS / name / file).read_bytes(), file
    shipped_files = sorted(str(p.relative_to(DATASETS / name)) for p in (DATASETS / name).rglob("*") if p.is_file())
    assert shipped_files == sorted(FILES)


@both
def test_sizes_types_and_roles(name: str) -> None:
    benchmark = shipped(name)
    counts = Counter(question.type for question in benchmark.questions)
    assert len(benchmark.passages) >= 2000
    assert counts.total() >= 300
    assert set(counts) == set(GOLD)
    assert min(counts.values()) >= 60
    assert benchmark.role == ("tune" if name.endswith("tune") else "report")
    assert len({question.text for question in benchmark.questions}) == counts.total()


@both
def test_titles_are_unique_and_passages_have_two_to_eight_sentences(name: str) -> None:
    passages = shipped(name).passages
    assert len({passage.title for passage in passages}) == len(passages)
    assert len({passage.text for passage in passages}) == len(passages)
    lengths = Counter(len(re.findall(r"[.](?: |$)", passage.text)) for passage in passages)
    assert set(lengths) <= set(range(2, 10))  # an opening of two sentences makes nine at most
    assert min(lengths[n] for n in range(3, 9)) > 20


@both
def test_a_question_has_the_gold_of_its_type_and_an_answer_stated_there(name: str) -> None:
    for question in shipped(name).questions:
        assert len(question.gold) == GOLD[question.type] == len(evidences(question)), question.id
        assert any(question.answer in text for text in texts(name, question)), question.id


@both
def test_each_fact_is_stated_in_the_gold(name: str) -> None:
    for question in shipped(name).questions:
        gold = texts(name, question)
        for subject, _, value in evidences(question):
            # One of both names may be an alias: its surname or acronym.
            assert any(subject in text or value in text for text in gold), (question.id, subject, value)


@both
def test_a_question_names_neither_bridge_nor_answer(name: str) -> None:
    for question in shipped(name).questions:
        triples = evidences(question)
        named = Counter(end for subject, _, value in triples for end in {subject, value})
        bridges = {end for end, times in named.items() if times > 1}
        bridges -= {question.answer} if question.type == "comparison" else set()
        assert not [bridge for bridge in bridges if bridge in question.text], question.id
        if "comparison" not in question.type:
            assert question.answer not in question.text, question.id
            assert len(bridges) == len(triples) - 1, question.id


@both
def test_comparisons_are_won_by_the_right_side(name: str) -> None:
    larger = re.compile(r"later|newer|longer|younger|larger|more|greater|recent")
    for question in shipped(name).questions:
        if "comparison" not in question.type:
            continue
        triples = evidences(question)
        half = len(triples) // 2
        sides = {side[0][0]: number(side[-1][2]) for side in (triples[:half], triples[half:])}
        words = question.text
        for side in sides:
            words = words.replace(side, "")
        pick = max if larger.search(words) else min
        assert question.answer == pick(sides, key=sides.__getitem__), question.text


def test_names_of_the_two_worlds_are_disjoint() -> None:
    worlds = []
    for name in SEEDS:
        found = set()
        for passage in shipped(name).passages:
            # Inside a sentence only names are capitalised; acronyms of both worlds may meet.
            found |= set(re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", f"{passage.title}. {passage.text}"))
        worlds.append(found)
    templates = "".join(
        p.read_text() for p in (DATASETS.parent / "tools/hopworld").iterdir() if p.suffix in (".py", ".yaml")
    )
    common = (worlds[0] & worlds[1]) - set(re.findall(r"[A-Z][a-z]+", templates))
    assert common == set()
    assert min(map(len, worlds)) > 2000
    titles = [{passage.title for passage in shipped(name).passages} for name in SEEDS]
    assert titles[0].isdisjoint(titles[1])


@both
def test_the_card_names_what_the_folder_holds(name: str) -> None:
    _, front, body = (DATASETS / name / "README.md").read_text().split("---\n", 2)
    card = yaml.safe_load(front)
    assert card["license"] == "apache-2.0"
    assert [config["config_name"] for config in card["configs"]] == ["corpus", "queries", "qrels"]
    assert f"--seed {SEEDS[name]} --passages 2500 --questions 400" in body


def test_hugging_face_datasets_loads_the_folder(tmp_path: Path) -> None:
    code = (
        "import sys, datasets\n"
        "for config, split in (('corpus', 'corpus'), ('queries', 'queries'), ('qrels', 'test')):\n"
        "    rows = datasets.load_dataset(sys.argv[1], config, split=split, cache_dir=sys.argv[2])\n"
        "    print(config, len(rows), *rows.column_names)\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    command = [sys.executable, "-c", code, str(DATASETS / "hopworld"), str(tmp_path)]
    done = subprocess.run(command, check=True, env=environment, cwd=tmp_path, capture_output=True, text=True)
    judged = len(lines(DATASETS / "hopworld" / "qrels" / "test.tsv")) - 1
    assert done.stdout.splitlines() == [
        "corpus 2500 _id title text",
        "queries 400 _id text metadata",
        f"qrels {judged} query-id corpus-id score",
    ]


def test_both_forms_of_the_judgements_agree() -> None:
    folder = DATASETS / "hopworld" / "qrels"
    tsv = [line.split("\t") for line in lines(folder / "test.tsv")]
    jsonl = [json.loads(line) for line in lines(folder / "test.jsonl")]
    assert [[str(value) for value in row.values()] for row in jsonl] == tsv[1:]
    assert list(jsonl[0]) == tsv[0]


@pytest.mark.parametrize("name", ["hopworld", pytest.param("hopworld-tune", marks=pytest.mark.soak)])
def test_difficulty_is_honest(name: str) -> None:
    measured = check(DATASETS / name)
    assert measured.problems == []
    assert DIFFICULTY[0] <= measured.all_gold[measured.best].mean() <= DIFFICULTY[1]
    assert measured.reach["reach@2"].mean() >= MIN_REACH
    assert measured.reach["corpus share@2"].mean() <= MAX_SHARE
    types = np.array(measured.types)
    by_type = {kind: measured.all_gold[measured.best][types == kind].mean() for kind in GOLD}
    assert by_type["comparison"] > by_type["bridge"] > by_type["compositional"] > 0.1
    assert by_type["bridge"] > by_type["bridge-comparison"] > 0.1
    printed = table(measured)
    assert "as the dataset card promises" in printed
    assert all(row in printed for row in ("bm25", "vector", "hybrid 0.7", "reach@1", "reach@2", "corpus share@2"))
