"""What a question asks for: an answer in a sentence of its last passage, and the words about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from hopbench.eval.synthesize.draft import AFTER, BEFORE, Clue, Step, content, lower_case
from hopbench.eval.synthesize.evidence import Evidence
from hopbench.retrieval.text import Token

FIRST = 0.5  # how often the first sentence, which says what a passage is about, is preferred
NEARBY = 0.6  # how often only the words around the answer are quoted
MOST_ANSWER = 6  # words
_YEAR = re.compile(r"1[0-9]\d\d|20\d\d")
_MONTHS = frozenset("january february march april may june july august september october november december".split())
_OPEN = ("What", "Which", "Who", "Where")


class Asked(NamedTuple):
    """A question's first words, the clue about its answer, a name that stands with it, and the answer."""

    opening: str
    clue: Clue
    name: Clue
    answer: str


def asked_of(evidence: Evidence, step: Step, banned: frozenset[str], rng: Random) -> Asked | None:
    """Something that a path's last passage says; None where no sentence names anything to ask for."""
    if step.met is not None:
        sentences = [step.met.sentence]
    else:
        sentences = list(range(1, len(evidence.sentences(step.target))))
        rng.shuffle(sentences)
        if rng.random() < FIRST:
            sentences.sort(key=lambda number: number > 1)
    for number in sentences:
        words = evidence.words(step.target, number)
        spans = [span for span in name_spans(words) if not {word.folded for word in words[slice(*span)]} & banned]
        if not spans:
            continue
        start, end = rng.choice(spans)
        answer = words[start:end]
        unwanted = banned | {word.folded for word in answer}
        near = lower_case(words[max(0, start - BEFORE) : start] + words[end : end + AFTER], unwanted)
        about = near if len(near) > 1 and rng.random() < NEARBY else lower_case(words, unwanted)
        if about:
            clue = Clue("asked", step.target, number, about)
            names = [words[slice(*span)] for span in spans if span != (start, end)]
            beside = rng.choice(names) if names else []
            name = Clue("name", step.target, number, tuple(content(beside, unwanted)))
            return Asked(_opening(answer, rng), clue, name, " ".join(word.text for word in answer))
    return None


def name_spans(words: Sequence[Token]) -> list[tuple[int, int]]:
    """Where capitalised words and numbers stand that do not begin the sentence, as (start, end)."""
    spans: list[tuple[int, int]] = []
    start = 1
    while start < len(words):
        end = start
        while end < len(words) and words[end].capital and (end == start or not words[end].breaks):
            end += 1
        if start < end <= start + MOST_ANSWER:
            spans.append((start, end))
        start = max(end, start + 1)
    return spans


def _opening(answer: Sequence[Token], rng: Random) -> str:
    """When, How many, or a word that leaves it open."""
    if any(word.folded in _MONTHS or _YEAR.fullmatch(word.text) for word in answer):
        return "When"
    return "How many" if answer[0].text[0].isdigit() else rng.choice(_OPEN)
