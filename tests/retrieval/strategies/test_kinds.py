"""Where a label's numbers come from, and whether it is scored on what chose them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

import pytest

from hopbench.eval.types import Benchmark, BenchmarkQuestion, fitted_on, hashes_of
from hopbench.retrieval.fitted import HASH_DIGITS, FittedOn, packed, question_hash, sets_of, shipped_hashes, unpacked
from hopbench.retrieval.strategies.baselines import Vector
from hopbench.retrieval.strategies.hoprank.strategy import HopRank
from hopbench.retrieval.strategies.hoprank.weights import shipped, to_json
from hopbench.retrieval.strategies.registry import LabelKind, kind_of, make, preset, registry
from hopbench.retrieval.support.errors import InputError

TEXTS = ("Who founded Calden?", "Which river runs through Calden?", "Who made “The Tide”?")


def benchmark(*texts: str, name: str = "mine") -> Benchmark:
    return Benchmark(name, (), tuple(BenchmarkQuestion(f"q{i}", text) for i, text in enumerate(texts)))


@dataclass(frozen=True, kw_only=True)
class Distilled(Vector):
    """A plug-in that says what it is."""

    name = "distilled"
    kind: ClassVar[str] = "distilled from a model"

    def fitted_on(self) -> tuple[FittedOn, ...]:
        return (fitted_on(benchmark(*TEXTS)),)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("bm25", "documented"),
        ("activation", "documented"),
        ("activation:documented", "documented"),
        ("activation:tuned", "tuned"),
        ("pagerank", "tuned"),  # no document names its numbers: its plain label is the preset
        ("hoprank", "learned"),
        ("activation[max_depth=3]", "set by hand"),
        ("activation:tuned[max_depth=3]", "set by hand"),
        ("hoprank[depth=20]", "set by hand"),
    ],
)
def test_every_label_has_a_kind(label: str, expected: str) -> None:
    assert expected == kind_of(label, make(label)).kind


def test_weights_of_one_s_own_are_learned_and_name_their_sets(tmp_path: Path) -> None:
    mine = benchmark(*TEXTS)
    told = {"learned_from": {"mine": {"digest": mine.digest, **hashes_of(mine)}}}
    file = tmp_path / "w.json"
    file.write_text(to_json(replace(shipped(), provenance=told)))
    label = f"hoprank[weights={file}]"
    found = kind_of(label, HopRank(weights=str(file)))
    assert ("learned", (fitted_on(mine),)) == (found.kind, found.fitted_on)


def test_a_plug_in_says_what_it_is_and_on_what_it_was_fitted() -> None:
    found = kind_of("distilled", Distilled())
    assert "distilled from a model" == found.kind
    assert {"sets": ["mine"], "questions": 1} == found.in_sample("another digest", {question_hash(TEXTS[0]), "f" * 10})


def test_changes_that_a_sweep_found_are_tuned_on_its_sets() -> None:
    tuned_on = [fitted_on(benchmark(*TEXTS))]
    label = "activation[max_depth=3]"
    assert LabelKind("tuned", tuple(tuned_on)) == kind_of(label, make(label), tuned_on)
    assert LabelKind("documented") == kind_of("activation", make("activation"), tuned_on)  # it has no changes


def test_every_set_behind_the_shipped_numbers_is_known_by_its_questions() -> None:
    known = shipped_hashes()
    presets = [found for name in registry().names() if (found := preset(name))]
    assert presets
    for about in [*(one.provenance["tuned_on"] for one in presets), shipped().provenance["learned_from"]]:
        for name, one in about.items():
            assert one["digest"] in known, name
            assert one["questions"] == len(unpacked(known[one["digest"]]))
    told = json.loads((files("hopbench.retrieval.strategies") / "tuning_sets.json").read_text(encoding="utf-8"))
    assert {"name", "questions", "question_hashes"} == {key for one in told.values() for key in one}  # and no text


@pytest.mark.parametrize("label", ["pagerank", "hoprank", "kg2rag:tuned", "pagerank[restart=0.3]"])
def test_a_label_scored_on_what_chose_it_is_known_by_digest_and_by_a_few_questions(label: str) -> None:
    kind = kind_of(label, make(label))
    musique = next(one for one in kind.fitted_on if one.name == "musique-train100")
    assert {"sets": ["musique-train100"], "questions": 7} == kind.in_sample(musique.digest, ["f" * 10] * 7)
    some = sorted(musique.questions)[:3]
    assert {"sets": ["musique-train100"], "questions": 3} == kind.in_sample("another digest", [*some, "f" * 10])
    assert kind.in_sample("another digest", ["f" * 10]) is None


def test_hopworld_tune_is_known_and_hopworld_is_not() -> None:
    from hopbench.eval.benchmarks import load_benchmark

    kind = kind_of("pagerank", make("pagerank"))
    tune, report = map(fitted_on, map(load_benchmark, ("hopworld-tune", "hopworld")))
    assert {"sets": ["hopworld-tune"], "questions": 400} == kind.in_sample(tune.digest, tune.questions)
    assert kind.in_sample(report.digest, report.questions) is None


def test_a_question_is_known_in_another_writing_and_not_in_other_words() -> None:
    assert question_hash("Who  made 'The Tide'") == question_hash("who made “THE TIDE”?")
    assert question_hash("Who made The Tide?") != question_hash("Who sang The Tide?")
    assert HASH_DIGITS == len(question_hash(""))


def test_a_set_survives_being_written_down() -> None:
    found = fitted_on(benchmark(*TEXTS, name="my set"))
    assert replace(found, name="my_set") == FittedOn.read(str(found))
    bare = replace(found, name="s", questions=frozenset())
    assert bare == FittedOn.read(str(bare))
    assert FittedOn.read("hopworld-tune") is None
    digest, hashes = next(iter(shipped_hashes().items()))
    shipped_set = FittedOn("s", digest, unpacked(hashes))
    assert (f"s {digest}", shipped_set) == (str(shipped_set), FittedOn.read(f"s {digest}"))
    assert found.questions == unpacked(packed(TEXTS))
    assert (replace(found, name="s"),) == sets_of({"s": {"digest": found.digest, "question_hashes": packed(TEXTS)}})


def test_damaged_hashes_are_refused() -> None:
    with pytest.raises(InputError, match="question_hashes: 'xyz'… is no row of hashes of 10 hexadecimal digits"):
        unpacked("xyz")
