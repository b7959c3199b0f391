"""What a model may not write: a bridge's name, the answer, or no question at all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hopbench.eval.synthesize._drafts import Draft
from hopbench.eval.synthesize.generate import Generator, Searched
from hopbench.eval.synthesize.models import prompt, refused


@pytest.fixture(scope="module")
def draft(made: Sequence[Searched]) -> Draft:
    return next(each.wording.draft for each in made if each.wording.draft.type == "bridge")


def test_a_question_that_names_its_bridge_is_refused(generator: Generator, draft: Draft) -> None:
    evidence = generator.evidence
    bridge = evidence.name(draft.steps[0].entity)
    assert draft.answer
    questions = {
        f"Since when is {bridge.upper()} known for it?": "the model named the bridge",
        f"Is it {draft.answer} that stands there?": "the model named the answer",
        "Who knows?": "the model wrote no question",
        "What became of it in the end?": None,
    }
    assert questions == {text: refused({"question": text}, draft, evidence) for text in questions}


def test_the_prompt_tells_the_bridge_that_must_not_be_named(generator: Generator, draft: Draft) -> None:
    told = prompt(draft, generator.evidence)[1]["content"].splitlines()
    assert f"Bridge, not to be named: {generator.evidence.name(draft.steps[0].entity)}" in told
    assert f"Answer: {draft.answer}" in told
