"""What `hopbench synthesize --llm MODEL` would cost: calls, tokens, price and time, without calling the model."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hopbench.flows.run.estimate import Estimate, priced
from hopbench.flows.settings.home import Home
from hopbench.flows.studies.synthesize.make import ROLES, SPARE, MakeOptions
from hopbench.retrieval.support.errors import InputError

ASSUMED = "Assumed: nothing cached, no question dropped before its last check, passages of the corpus's mean length."
GOLD = 2.4  # passages of a question, a mean
SENTENCE = 40  # tokens
WRITTEN, ANSWERED, RAGAS_REPLY, RAGAS_PROMPT = 45, 12, 120, 900
SAMPLED = 200


def estimate(options: MakeOptions) -> Estimate:
    """Estimate the calls of the model. Raises InputError where none is named."""
    from hopbench.eval.answering.estimate import Line, extraction_line
    from hopbench.eval.synthesize.by_ragas import CALLS_PER_CHUNK, CALLS_PER_QUESTION
    from hopbench.eval.synthesize.model import ANSWER, WRITE
    from hopbench.retrieval.chunking import count_tokens

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
    if options.by == "ragas":
        chunks = GOLD * questions
        calls = CALLS_PER_CHUNK * chunks + CALLS_PER_QUESTION * options.recipe.questions
        lines.append(
            Line("ragas", "synthesize:ragas", "llm", calls, calls * (RAGAS_PROMPT + passage), calls * RAGAS_REPLY)
        )
    else:
        written = count_tokens(WRITE) + GOLD * SENTENCE
        checks = (1 + GOLD) * questions
        read = count_tokens(ANSWER) + WRITTEN
        lines += [
            Line("rules", "synthesize:write", "llm", questions, questions * written, questions * WRITTEN),
            Line(
                "rules",
                "synthesize:check",
                "llm",
                checks,
                checks * read + GOLD * questions * passage,
                checks * ANSWERED,
            ),
        ]
    return priced(lines, options.models, home)


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)
