"""The generator: the same bytes always, any size, bounded memory, tables that fit together."""

from __future__ import annotations

import json
import os
import string
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.places import ROOT
from tools.hopworld import templates
from tools.hopworld.__main__ import main
from tools.hopworld.entities import Namer, coprime
from tools.hopworld.write import MIN_ENTITIES, communities, write_benchmark

from hopbench.retrieval.support.errors import InputError

FILES = ("README.md", "corpus.jsonl", "qrels/test.jsonl", "qrels/test.tsv", "queries.jsonl")


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def test_the_same_seed_gives_the_same_bytes_under_any_hash_seed(tmp_path: Path) -> None:
    made = []
    for hash_seed in ("1", "2"):
        folder = tmp_path / hash_seed / "world"
        command = [sys.executable, "-m", "tools.hopworld", "--out", str(folder)]
        size = ["--seed", "5", "--passages", "300", "--questions", "40"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        subprocess.run([*command, *size], check=True, env=environment, cwd=ROOT)
        made.append(contents(folder))
    assert made[0] == made[1]


def test_another_seed_gives_another_world(tmp_path: Path) -> None:
    for seed in (5, 6, 21):  # 5 and 21 take their names from the same sixteenth
        write_benchmark(tmp_path / str(seed), seed, 300, 10)
    corpora = [{json.loads(line)["text"] for line in lines(tmp_path / s / "corpus.jsonl")} for s in ("5", "6", "21")]
    assert corpora[0].isdisjoint(corpora[1])
    assert corpora[0].isdisjoint(corpora[2])


@pytest.mark.parametrize("passages", [200, 333, 1000])
def test_any_size_is_met_exactly(tmp_path: Path, passages: int) -> None:
    write_benchmark(tmp_path, 9, passages, 20)
    ids = [json.loads(line)["_id"] for line in lines(tmp_path / "corpus.jsonl")]
    assert passages == len(ids) == len(set(ids))
    assert len(lines(tmp_path / "queries.jsonl")) == 20


@pytest.mark.parametrize(("passages", "questions"), [(199, 10), (300, 0), (300, 151)])
def test_impossible_sizes_are_refused(tmp_path: Path, passages: int, questions: int) -> None:
    with pytest.raises(InputError, match=f"--passages {passages} --questions {questions}"):
        write_benchmark(tmp_path, 1, passages, questions)
    assert list(tmp_path.iterdir()) == []


def test_the_command_reports_bad_input_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.touch()
    assert main(["--out", str(file / "world")]) == 2
    assert main(["--out", str(tmp_path), "--passages", "3"]) == 2
    assert main(["--check", str(tmp_path / "nowhere")]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert errors[0].startswith(f"{file}/world: Not a directory")


def test_ready_communities_are_forgotten_so_that_memory_stays_bounded() -> None:
    made = []
    for community, known in communities(3, 60):
        made.append(community)
        assert len(known) <= 30
        assert len(community.entities) >= MIN_ENTITIES
    assert all(not e.facts and not e.incoming and not e.stated and not e.echoes for e in made[0].entities)
    assert all(e.facts for e in made[-1].entities if e.kind == "film")


def test_links_between_communities_are_few_but_exist() -> None:
    links = [
        fact
        for community, _ in communities(4, 80)
        for entity in community.entities
        for fact in entity.facts
        if not isinstance(fact.object, str) and fact.object.id == "" and fact.object not in community.entities
    ]
    assert 5 <= len(links) <= 60  # 80 communities: .15 people moved and .1 films shot elsewhere in each


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 400_000))
def test_stems_are_unique_and_disjoint_between_worlds(first: int, second: int, capacity: int) -> None:
    stems = []
    for seed in (first, second):
        namer = Namer(seed, max(capacity, 1000))
        stems.append([namer.stem() for _ in range(500)])
        assert len(set(stems[-1])) == 500
    if (first - second) % 16:
        assert set(stems[0]).isdisjoint(stems[1])


def test_names_grow_by_a_syllable_when_the_world_needs_it() -> None:
    # 26 onsets × 5 vowels × 5 codas = 650 syllables; 650² = 422,500 < 16 worlds × 30,000 stems
    def vowels(capacity: int) -> int:
        namer = Namer(1, capacity)
        return min(
            sum(letter in "aeio" or letter == "u" for letter in namer.stem().lower().replace("qu", "q"))
            for _ in range(50)
        )

    assert (vowels(20_000), vowels(30_000)) == (2, 3)


@given(st.integers(1, 10_000), st.integers(2, 10_000))
def test_a_coprime_step_permutes(start: int, modulus: int) -> None:
    step = coprime(start, modulus)
    assert len({(i * step) % modulus for i in range(modulus)}) == modulus


def slots(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_fact_has_six_sentences_on_each_side_that_can_state_it() -> None:
    for table in (templates.SUBJECT_SENTENCES, templates.OBJECT_SENTENCES):
        for relation, wordings in table.items():
            assert len(set(wordings)) >= 6, relation
            assert all("o" in slots(w) and slots(w) <= set("SsmPpo") for w in wordings), relation


def test_every_relation_can_be_asked_for() -> None:
    assert set(templates.SUBJECT_SENTENCES) <= set(templates.QUESTIONS)
    assert set(templates.HOPS) <= set(templates.SUBJECT_SENTENCES)
    for table in (templates.HOPS, templates.INVERSE_HOPS, templates.QUESTIONS, templates.INVERSE_QUESTIONS):
        assert all(slots(wording) <= {"x", "k"} for wordings in table.values() for wording in wordings)


def test_openings_and_fillers_fit_every_kind() -> None:
    assert set(templates.FILLERS) == set(templates.OPENINGS)
    known = {
        "N",
        "dem",
        "a_dem",
        "region",
        "role",
        "genre",
        "S",
        "s",
        "m",
        "P",
        "p",
        "x",
        "place",
        "n",
        "y",
        "theme",
        "o",
    }
    sentences = [s for kinds in templates.FILLERS.values() for s in kinds] + list(templates.ECHOES)
    sentences += [s for openings in templates.OPENINGS.values() for s in (*openings["local"], *openings["plain"])]
    assert all(slots(sentence) <= known for sentence in sentences)


def test_a_last_community_cut_short_costs_no_question(tmp_path: Path) -> None:
    write_benchmark(tmp_path, 1, 500, 100)  # what is left of the last community here cannot be asked about
    assert len(lines(tmp_path / "queries.jsonl")) == 100
