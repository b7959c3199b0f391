"""Drafts of questions along a path: A leads to B, perhaps on to C; the question asks for what the last says."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hopbench.eval.synthesize.asked import asked_of
from hopbench.eval.synthesize.context import Context
from hopbench.eval.synthesize.draft import Clue, Draft, Step, around, content, lower_case
from hopbench.eval.synthesize.evidence import Evidence
from hopbench.eval.synthesize.steps import Steps, hidden
from hopbench.retrieval.text import Token, tokens

DESCRIBED = 0.55  # per share of chunks with a kind beyond `ONE_KIND`: how often a first passage is described, not named
KIND_NAMED = 0.4  # how often a name follows its kind: "the film X"
BRIDGE_KIND = 0.5  # how often a bridge is called by its kind: "the actor … of X"
NAMES_QUOTED = 0.4  # how often a description has a name of its sentence; always where the passage has none itself


class Chains:
    """Drafts along paths; equal seeds give equal drafts."""

    def __init__(self, evidence: Evidence, steps: Steps, rng: Random) -> None:
        self._evidence, self._steps, self._rng = evidence, steps, rng
        self._context = Context(evidence, rng)

    def draw(self, type: str, hops: int) -> Draft | None:
        """A question about the end of a path of so many steps."""
        first = self._steps.first()
        path = [first] if first else []
        while path and len(path) < hops:
            step = self._steps.next(path)
            if step is None:
                return None
            path.append(step)
        if not path:
            return None
        evidence = self._evidence
        gold = (path[0].source.chunk, *(step.target for step in path))
        unsaid = frozenset().union(*(hidden(evidence, step) for step in path))
        banned = unsaid | evidence.title_words(gold[0])
        asked = asked_of(evidence, path[-1], banned, self._rng)
        start = self._start(gold[0], unsaid)
        if asked is None or start is None:
            return None
        relations = [part for step in reversed(path) for part in self._relation(step, banned)]
        places = [(gold[0], path[0].source.sentence), (gold[0], 1), (asked.clue.chunk, asked.clue.sentence)]
        places += [(step.target, 1) for step in path]
        answer = frozenset(word.folded for word in tokens(asked.answer))
        context = self._context.names(places, banned | answer)
        parts = (asked.opening, asked.clue, asked.name, *relations, *start, *context)
        answered = (asked.clue.chunk, asked.clue.sentence)
        return Draft(type, gold, tuple(path), parts, unsaid, asked.answer, answered)

    def _relation(self, step: Step, banned: frozenset[str]) -> list[str | Clue]:
        """ "of the actor starring …": how a bridge is called."""
        kind = self._evidence.kinds.of_chunk.get(step.target, "") if step.met is None else ""
        named = kind if kind not in banned and self._rng.random() < BRIDGE_KIND else ""
        return ["of the", named, around(self._evidence, step.source, banned)]

    def _start(self, chunk: int, unsaid: frozenset[str]) -> list[str | Clue] | None:
        """The path's first passage, by name or, always without a title, by what it says."""
        title = self._evidence.title(chunk)
        if title and self._rng.random() >= DESCRIBED * self._evidence.kinds.alike:
            return None if self._evidence.title_words(chunk) & unsaid else ["of", self._named(chunk)]
        described = self._description(chunk, unsaid | self._evidence.title_words(chunk))
        return ["of the", *described] if described else None

    def _named(self, chunk: int) -> str:
        kind = self._evidence.kinds.of_chunk.get(chunk)
        title = self._evidence.title(chunk)
        return f"the {kind} {title}" if kind and self._rng.random() < KIND_NAMED else title

    def _description(self, chunk: int, banned: frozenset[str]) -> list[str | Clue]:
        """Words of a sentence that call a passage to mind, now and then with a name; empty where it says too little."""
        count = len(self._evidence.sentences(chunk)) - 1
        if not count:
            return []
        number = 1 if self._rng.random() < 0.5 else self._rng.randint(1, count)
        words = self._evidence.words(chunk, number)
        common = lower_case(words, banned)
        if len(common) < 2:
            return []
        often = NAMES_QUOTED if self._evidence.title(chunk) else 1.0
        return [Clue("description", chunk, number, common), *self._quoted_name(content(words, banned), often)]

    def _quoted_name(self, words: Sequence[Token], often: float) -> list[str]:
        names = [index for index, word in enumerate(words) if word.capital]
        if not names or self._rng.random() >= often:
            return []
        chosen = self._rng.choice(names)
        return [" ".join(word.text for word in words[chosen : chosen + 2] if word.capital)]
