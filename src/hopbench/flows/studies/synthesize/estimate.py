"""What `hopbench synthesize --llm MODEL` would cost: calls, tokens, price and time, without calling the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hopbench.flows.run.estimate import Estimate, priced
from hopbench.flows.settings.home import Home
from hopbench.flows.studies.synthesize.make import ROLES, SPARE, MakeOptions
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.answering.estimate import Line

ASSUMED = "Assumed: nothing cached, no question dropped before its last check, passages of the corpus's mean length."
GOLD = 2.4  # passages of a question, a mean
SENTENCE = 40  # tokens
WRITTEN, ANSWERED, RAGAS_REPLY, RAGAS_PROMPT = 45, 12, 120, 900
SAMPLED = 200


def estimate(options: MakeOptions) -> Estimate:
    """Estimate the calls of the model. Raises InputError where none is named."""
    from hopbench.eval.answering.estimate import extraction_line
    from hopbench.retrieval.text.model_tokens import count_tokens

    options.check()
    if options.graph.llm is None:
        raise InputError("--dry-run estimates what a language model costs: name one with --llm MODEL[@URL]")
    home = Home.resolve()
    home.apply_environment()
    benchmark = options.graph.benchmark(need_questions=False)
    passage = _mean(
        [count_tokens(one.text) for one in benchmark.passages[:: max(1, len(benchmark.passages) // SAMPLED)]]
    )
    questions = math.ceil(SPARE * options.recipe.questions) * len(ROLES[options.role])
    lines = []
    if options.graph.extractor == "llm" and not options.graph.triples:
        lines.append(extraction_line(benchmark, options.graph.gleaning))
    lines += _by_ragas(options, questions, passage) if options.by == "ragas" else _by_rules(questions, passage)
    return priced(lines, options.models, home)


def _by_ragas(options: MakeOptions, questions: int, passage: float) -> list[Line]:
    """The calls of RAGAS's generator; `passage` is the mean length in tokens."""
    from hopbench.eval.answering.estimate import Line
    from hopbench.eval.synthesize.models import CALLS_PER_CHUNK, CALLS_PER_QUESTION

    calls = CALLS_PER_CHUNK * GOLD * questions + CALLS_PER_QUESTION * options.recipe.questions
    return [Line("ragas", "synthesize:ragas", "llm", calls, calls * (RAGAS_PROMPT + passage), calls * RAGAS_REPLY)]


def _by_rules(questions: int, passage: float) -> list[Line]:
    """The calls that put the rules' paths into words, and those of the filters."""
    from hopbench.eval.answering.estimate import Line
    from hopbench.eval.synthesize.models import ANSWER, WRITE
    from hopbench.retrieval.text.model_tokens import count_tokens

    prompts = questions * (count_tokens(WRITE) + GOLD * SENTENCE)
    checks = (1 + GOLD) * questions
    read = checks * (count_tokens(ANSWER) + WRITTEN) + GOLD * questions * passage
    return [
        Line("rules", "synthesize:write", "llm", questions, prompts, questions * WRITTEN),
        Line("rules", "synthesize:check", "llm", checks, read, checks * ANSWERED),
    ]


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)
