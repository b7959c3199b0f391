"""Which metric decides on a benchmark: asked by headlines, comparisons, nights and champions; nobody else chooses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hopbench.eval.metrics.registry import PRIMARY, get_metric
from hopbench.eval.types import Benchmark

PRIMARIES = (PRIMARY, "has_answer@10")
"""The primary metric is the first of these that applies to a question of the benchmark."""

ADD_GOLD = (
    "gold passages go into qrels/test.tsv beside queries.jsonl (query-id, corpus-id, score; tab-separated, with that "
    "heading)"
)
ADD_ANSWERS = "answers into queries.jsonl (metadata.answer, metadata.answer_aliases)"


def primary_metric(benchmark: Benchmark) -> str | None:
    """The benchmark's primary metric: by gold passages, else by answers that a text can contain, else none."""
    return _first(name for name in PRIMARIES if any(map(get_metric(name).applies, benchmark.questions)))


def primary_of(results: Mapping[str, Any]) -> str | None:
    """The primary metric of the benchmark of a results.json; of one from before it said so, by what was measured."""
    told = results["benchmark"]
    if "primary_metric" in told:
        return None if told["primary_metric"] is None else str(told["primary_metric"])
    measured = {name for entry in (results.get("strategies") or {}).values() for name in entry["metrics"]}
    return _first(name for name in PRIMARIES if name in measured)


def lacking(primary: str | None) -> str:
    """What a benchmark with this primary metric lacks and how it is added; empty where it lacks nothing."""
    if primary == PRIMARY:
        return ""
    if primary is not None:
        return f"no question has gold passages, so {primary} decides; to know whether evidence was found: {ADD_GOLD}"
    return (
        "no question has gold passages or an answer that a text can show, so nothing says which strategy is better, "
        f"and none is ahead here: {ADD_GOLD}, {ADD_ANSWERS}; a judge can score without gold (--llm with --judge)"
    )


def _first(names: Iterable[str]) -> str | None:
    return next(iter(names), None)
