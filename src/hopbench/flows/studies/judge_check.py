"""`hopbench judge-check`: compares the compact judge profile with the full one on the user's own model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.models import ModelOptions

if TYPE_CHECKING:
    from hopbench.eval.answering.judge.outcome import Agreement
    from hopbench.eval.answering.judge.sample import Sample
    from hopbench.retrieval.llm import LLM

CHECK_FILE = "judge-check.json"
SCHEMA = "hopbench.judge-check/1"


@dataclass(frozen=True)
class Checked:
    """A finished check: the judge, the reader whose answers were judged, and the agreement by metric."""

    judge: str
    reader: str
    agreements: Sequence[Agreement]
    file: Path


def judge_check(options: GraphOptions, models: ModelOptions, samples: int, out: Path, seed: int = 0) -> Checked:
    """Answer `samples` questions over BM25's contexts, judge them in both profiles, compare, write the file.

    Calls are made one at a time and bypass the reply cache, so that the seconds are the model's own. Judgements of a
    killed check are read from `out`.
    """
    home = Home.resolve()
    home.apply_environment()
    models.check(answered=True)
    models.reach(home)
    benchmark = options.benchmark()
    embedder = options.open_embedder(home)
    home.prepare()
    from hopbench.eval.answering.estimate import typical_samples
    from hopbench.eval.answering.judge import open_judge
    from hopbench.eval.answering.judge.outcome import check
    from hopbench.eval.answering.judge.schedule import JudgementStore
    from hopbench.eval.files import refuse_unwritable, write_atomically
    from hopbench.retrieval.llm import LLM, CallLedger

    refuse_unwritable(out / CHECK_FILE)
    endpoints = models.endpoints()
    judge = endpoints["judge"]
    with ExitStack() as stack:
        ledger = CallLedger(home.calls, models.budget)
        stack.callback(ledger.close)
        reader = stack.enter_context(LLM(endpoints.get("llm", judge), home.replies, ledger))
        answered = _answered(reader, typical_samples(benchmark, samples))
        llm = stack.enter_context(LLM(judge, None, ledger))
        store = stack.enter_context(JudgementStore.open(out / "judge-check.db"))
        full, compact = (open_judge(profile, llm, embedder, store) for profile in ("full", "compact"))
        full.workers = compact.workers = 1
        agreements = check(full, compact, answered, models.judged, seed)
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "judge": judge.name,
        "reader": reader.endpoint.name,
        "benchmark": benchmark.name,
        "samples": len(answered),
        "agreement": [agreement.plain() for agreement in agreements],
    }
    write_atomically(out / CHECK_FILE, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())
    return Checked(judge.name, reader.endpoint.name, agreements, out / CHECK_FILE)


def _answered(reader: LLM, samples: Sequence[Sample]) -> list[Sample]:
    """The samples with the reader's answers; without a reader, only the metrics that need no answer apply."""
    from hopbench.eval.answering.answers import reader_call
    from hopbench.retrieval.llm import ask

    calls = [
        reader_call(reader, sample.question_id, sample.question, "\n\n".join(sample.contexts)) for sample in samples
    ]
    replies = ask(reader, calls)
    return [
        replace(one, response=None if reply.failure is not None else reply.value["statement"])
        for one, reply in zip(samples, replies, strict=True)
    ]
