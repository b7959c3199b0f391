"""The language model of an explanation: --llm's, or cached replies of the run's own model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hopbench.flows.settings.home import Home
from hopbench.flows.settings.models import ModelOptions

if TYPE_CHECKING:
    from hopbench.flows.explain.target import Target


@contextmanager
def with_model(target: Target, named: str | None) -> Iterator[str]:
    """Give the strategies their model; yields a line that names it, empty without one.

    A run's model is not called: its replies come from the cache, and a missing one raises an error with the remedy.
    """
    recorded = target.run.results.get("reader", {}).get("llm") if target.run is not None else None
    if named is None and recorded is None:
        yield ""
        return
    from hopbench.retrieval.llm import LLM, CallLedger, Endpoint, Settings
    from hopbench.retrieval.question.model import QuestionModel

    home = Home.resolve()
    if named is not None:
        ModelOptions(llm=named).reach(home)
    endpoint = Endpoint.parse(named) if named else Endpoint(*str(recorded).rsplit("@", 1))
    ledger = CallLedger(home.calls)
    try:
        with LLM(endpoint, home.replies, ledger, Settings(send=named is not None)) as llm:
            QuestionModel(llm).install(target.index)
            yield f"language model: {endpoint.name}" + ("" if named else "; its replies in the run (--llm asks it)")
    finally:
        ledger.close()
