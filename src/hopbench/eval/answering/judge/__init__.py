"""Judges: language models that score contexts and answers by RAGAS's metrics (docs/judging.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hopbench.eval.answering.judge.sample import Limits
    from hopbench.eval.answering.judge.schedule import JudgementStore, Judging
    from hopbench.retrieval.embedding.base import Embedder
    from hopbench.retrieval.llm import LLM

__all__ = ["open_judge"]


def open_judge(
    profile: str, llm: LLM, embedder: Embedder, store: JudgementStore, limits: Limits | None = None
) -> Judging:
    """A judge of the profile `full` or `compact` over a model."""
    from hopbench.eval.answering.judge.profiles import CompactJudge, FullJudge
    from hopbench.eval.answering.judge.sample import LIMITS, model_asker
    from hopbench.eval.answering.judge.schedule import Judging

    limits = limits or LIMITS[profile]
    scorer = (FullJudge if profile == "full" else CompactJudge)(model_asker(llm, limits), embedder)
    return Judging(llm, scorer, embedder, store, limits)
