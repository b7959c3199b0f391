"""`--dry-run`: calls, tokens, price and time per label and metric. No model is asked, no graph is built."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError, StoreError

if TYPE_CHECKING:
    from hopbench.eval.answering.estimate import Line
    from hopbench.eval.types import Benchmark
    from hopbench.flows.settings.graph_options import GraphOptions
    from hopbench.flows.settings.models import ModelOptions
    from hopbench.flows.settings.options import RunOptions
    from hopbench.retrieval.llm import Endpoint
    from hopbench.retrieval.strategies.base import Strategy

PROMPT_WEIGHT = 0.05  # reading a token takes about a twentieth of writing one
ASSUMED_SECONDS = 0.02  # to write a token, for an endpoint without earlier calls: 50 a second

SUMMING = "dual_level"
NOT_COUNTED = f"not counted: {SUMMING} also has each community of the graph summed up once"


@dataclass(frozen=True)
class Speed:
    """Seconds that a written token takes at an endpoint, from so many earlier calls (0: assumed)."""

    seconds: float
    calls: int


@dataclass(frozen=True)
class Priced:
    """A line of the estimate with its price (None: not known) and time."""

    line: Line
    usd: float | None
    seconds: float


@dataclass(frozen=True)
class Estimate:
    """Everything that `--dry-run` prints."""

    lines: Sequence[Priced]
    speeds: dict[str, Speed]
    endpoints: dict[str, Endpoint]
    warnings: Sequence[str]

    @property
    def usd(self) -> float | None:
        """The sum of all prices; None where one is not known."""
        prices = [line.usd for line in self.lines]
        return None if None in prices else sum(price for price in prices if price is not None)


def estimate_run(options: RunOptions) -> Estimate:
    """Estimate the calls of a run's models. Raises InputError where no model is named, or one is malformed."""
    home = Home.resolve()
    home.apply_environment()
    models = options.models
    models.check()
    endpoints = models.endpoints()
    if not endpoints:
        raise InputError("--dry-run estimates what language models cost: name one with --llm or --judge")
    benchmark, strategies = options.benchmark(), options.labels()
    asked = strategies if "llm" in endpoints else {}
    summaries, warnings = _summary_lines(options, benchmark, asked, home)
    return priced([*_lines(options, benchmark, strategies, list(endpoints)), *summaries], models, home, warnings)


def priced(lines: Sequence[Line], models: ModelOptions, home: Home, warnings: Sequence[str] = ()) -> Estimate:
    """The lines with their prices and times."""
    from hopbench.retrieval.llm import Settings, price_of

    endpoints = models.endpoints()
    speeds = {role: _speed(home, endpoint) for role, endpoint in endpoints.items()}
    prices = {role: price_of(endpoint.model) for role, endpoint in endpoints.items()}
    results = []
    for line in lines:
        price = prices[line.role]
        usd = None if price is None else price.of(round(line.tokens_in), 0, round(line.tokens_out))
        work = PROMPT_WEIGHT * line.tokens_in + line.tokens_out
        results.append(Priced(line, usd, work * speeds[line.role].seconds / Settings().concurrency))
    return Estimate(results, speeds, endpoints, [*models.warnings(), *warnings])


def _lines(
    options: RunOptions, benchmark: Benchmark, strategies: Mapping[str, Strategy], roles: Sequence[str]
) -> list[Line]:
    from hopbench.eval.answering.answers import CLOSED_BOOK
    from hopbench.eval.answering.estimate import (
        answer_line,
        extraction_line,
        judge_lines,
        strategy_lines,
        typical_samples,
    )

    models, asked = options.models, len(benchmark.questions)
    labels, samples = list(strategies), typical_samples(benchmark)
    lines: list[Line] = []
    if "llm" in roles:
        if options.extractor == "llm" and not options.triples:
            lines.append(extraction_line(benchmark, options.gleaning))
        for label, strategy in strategies.items():
            lines += strategy_lines(label, strategy.name, samples, asked)
        labels.append(CLOSED_BOOK)
        lines += [answer_line(label, samples, asked) for label in labels]
    if "judge" in roles:
        judged = dict.fromkeys(labels, 1)  # label → how many it stands for
        if models.finalists is not None:  # known only after the run
            count = min(models.finalists, len([label for label in labels if label != CLOSED_BOOK]))
            judged = {f"{count} finalists": count}
        found = judge_lines(
            list(judged),
            models.judge_profile,
            models.judged,
            samples,
            questions=asked,
            answered="llm" in roles,
            repeats=models.repeats,
        )
        lines += [line.times(judged[line.label]) for line in found]
    return lines


def _speed(home: Home, endpoint: Endpoint) -> Speed:
    """From the ledger of earlier calls to the same model at the same address."""
    if not home.calls.is_file():
        return Speed(ASSUMED_SECONDS, 0)
    query = """SELECT count(*), sum(seconds), sum(tokens_in), sum(tokens_out) FROM calls
    WHERE endpoint = ? AND model = ? AND outcome = 'ok'"""
    with closing(sqlite3.connect(f"file:{home.calls}?mode=ro", uri=True)) as connection:
        calls, seconds, tokens_in, tokens_out = connection.execute(
            query, (endpoint.base_url, endpoint.model)
        ).fetchone()
    work = PROMPT_WEIGHT * (tokens_in or 0) + (tokens_out or 0)
    return Speed(seconds / work, calls) if work else Speed(ASSUMED_SECONDS, 0)


def _summary_lines(
    options: GraphOptions, benchmark: Benchmark, strategies: Mapping[str, Strategy], home: Home
) -> tuple[list[Line], list[str]]:
    """A line per label that has communities summed up, and a warning where there is no graph to count them in."""
    from hopbench.eval.answering.estimate import summary_line

    summing = {label: strategy for label, strategy in strategies.items() if strategy.name == SUMMING}
    if not summing:
        return [], []
    from hopbench.flows.graph.build import open_index

    home.prepare()
    try:
        plan = options.graph_plan(benchmark, home)
        record = options.open_store(plan, home).record()
        index = open_index(options, plan, home) if record and record["build_key"] == plan.build_key else None
    except StoreError as error:
        return [], [f"{NOT_COUNTED} ({error})"]
    if index is None:
        return [], [f"{NOT_COUNTED}: build the graph ({options.build_command()}), and they are"]
    question = benchmark.questions[0].question
    lines = [summary_line(label, strategy, index, question) for label, strategy in summing.items()]
    return [line for line in lines if line.calls], []
