"""Questions from a corpus alone: their evidence, what they must not say, and how many of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.eval.synthesize.conftest import MADE
from tests.support.graphs import built_index, plan_of

from hopbench.eval.synthesize.generate import TYPES, Generator, Recipe, Searched
from hopbench.retrieval.embedding.models import WordLlamaEmbedder
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.text import name_key
from hopbench.retrieval.types import Passage


def texts(made: Sequence[Searched]) -> list[str]:
    return [each.wording.text for each in made]


def test_equal_seeds_give_equal_questions_and_other_seeds_others(
    generator: Generator, made: Sequence[Searched]
) -> None:
    assert texts(made) == texts(generator.make(MADE).questions)
    assert not set(texts(made)) & set(texts(generator.make(Recipe(questions=4, seed=4)).questions))


def test_no_question_names_its_bridge_or_repeats_another(generator: Generator, made: Sequence[Searched]) -> None:
    assert 20 == len(set(texts(made)))
    bridges = 0
    for each in made:
        said = set(name_key(each.wording.text))
        for step in each.wording.draft.steps:
            bridges += 1
            assert not generator.evidence.name_words(step.entity) & said
            if step.met is None and each.wording.draft.type != "intersection":
                assert not generator.evidence.title_words(step.target) & said
    assert bridges > 10


def test_every_path_stands_in_the_corpus(generator: Generator, made: Sequence[Searched]) -> None:
    evidence = generator.evidence
    for each in made:
        draft = each.wording.draft
        assert len(draft.gold) == len({evidence.chunks[chunk].passage_id for chunk in draft.gold}) >= 2
        for step in draft.steps:
            words = evidence.words(step.source.chunk, step.source.sentence)[step.source.start : step.source.end]
            assert tuple(word.folded for word in words) in evidence.linker.names_of(
                evidence.corpus.graph.entities[step.entity]
            )
        if draft.answer:
            chunk, sentence = draft.answered
            assert chunk in draft.gold
            if draft.type != "intersection":
                assert set(name_key(draft.answer)) <= {word.folded for word in evidence.words(chunk, sentence)}


def test_types_that_are_asked_for_are_made(generator: Generator) -> None:
    made = generator.make(Recipe(questions=4, types=("comparison", "compositional"), seed=1)).questions
    assert {"comparison", "compositional"} == {each.wording.draft.type for each in made}
    assert all(len(each.wording.draft.gold) >= 3 for each in made if each.wording.draft.type == "compositional")


def test_two_halves_share_no_evidence(generator: Generator) -> None:
    halves = [generator.make(Recipe(questions=8, seed=1, half=half)).questions for half in (0, 1)]
    gold = [{chunk for each in half for chunk in each.wording.draft.gold} for half in halves]
    assert all(len(half) >= 6 for half in halves)
    assert not gold[0] & gold[1]


def test_twofold_evidence_is_left_out(tmp_path: Path) -> None:
    passages = [
        Passage("a", "Ada Lark", "Ada Lark was a painter from the town of Merrow. She kept a diary of storms."),
        Passage("b", "Merrow", "Merrow is a town on the Silver Coast. Its harbour was founded in 1834 by fishers."),
        Passage("c", "Old Merrow", "Merrow is a town on the Silver Coast. Its harbour was founded in 1834 by fishers."),
    ]
    index = built_index(plan_of(passages, embedder=WordLlamaEmbedder()), tmp_path)
    with pytest.raises(InputError, match=r"its evidence stands in the corpus twice \(\d+\).*remove duplicates"):
        Generator(index).make(Recipe(questions=5))


def test_any_part_of_an_article_may_be_the_evidence_and_a_files_name_is_no_name(tmp_path: Path) -> None:
    parts = ("Merrow lies on the Silver Coast. Its harbour was founded in 1834.", "The fair of Merrow is held in June.")
    people = ("Ada Lark", "Ben Orme", "Cleo Vance", "Dora Finch", "Egon Thal", "Fay Brook")
    passages = [Passage(f"m{number}", "Merrow", text) for number, text in enumerate(parts)]
    passages += [
        Passage(str(number), f"note-{number}", f"The painter {name} moved to Merrow in {1900 + number} after a flood.")
        for number, name in enumerate(people)
    ]
    index = built_index(plan_of(passages, embedder=WordLlamaEmbedder()), tmp_path)
    made = Generator(index).make(Recipe(questions=8, types=("bridge",))).questions
    ids = [{index.chunks[chunk].passage_id for chunk in each.wording.draft.gold} for each in made]
    assert {"m0", "m1"} <= set().union(*ids)
    assert not any({"m0", "m1"} <= one for one in ids)  # parts of one article are no two pieces of evidence
    assert not any("note" in text for text in texts(made))


def test_a_corpus_where_nothing_links_gets_one_message_with_the_remedy(tmp_path: Path) -> None:
    passages = [Passage(str(number), "", f"only words {number} and more of them here") for number in range(5)]
    generator = Generator(built_index(plan_of(passages, embedder=WordLlamaEmbedder()), tmp_path))
    with pytest.raises(InputError, match=r"no two of the 5 passages .* --extractor llm"):
        generator.make(Recipe())


def test_passages_without_titles_are_joined_by_what_both_mention(tmp_path: Path) -> None:
    told = (
        "The keeper of the lamp at {place} wrote long letters to Ansel Brook every winter.",
        "A bridge near {place} was repaired by Ansel Brook with timber from the valley.",
    )
    places = ("Tarn Hill", "Fell Water", "Grey Moor")
    passages = [
        Passage(f"{number}{side}", "", text.format(place=place))
        for number, place in enumerate(places)
        for side, text in enumerate(told)
    ]
    generator = Generator(built_index(plan_of(passages, embedder=WordLlamaEmbedder()), tmp_path))
    with pytest.raises(InputError, match="yields none of these: name some of bridge, intersection"):
        generator.make(Recipe(types=("comparison",)))
    made = generator.make(Recipe(questions=4))
    assert made.questions
    assert not Counter(each.wording.draft.type for each in made.questions).keys() - {"bridge", "intersection"}


@pytest.mark.parametrize("wrong", [{"questions": 0}, {"types": ()}])
def test_recipes_that_make_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Recipe(**wrong)  # type: ignore[arg-type]


def test_an_unknown_type_gets_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="'comparison'"):
        Recipe(types=("comparision",))
    assert TYPES == Recipe().types
