"""The language model of an explanation: --llm's, or cached replies of the run's own model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hopbench.flows.settings.home import Home
from hopbench.flows.settings.models import ModelOptions

if TYPE_CHECKING:
    from hopbench.flows.explain.target import Target
    from hopbench.flows.settings.graph_options import GraphOptions


@contextmanager
def with_model(target: Target, asked: GraphOptions) -> Iterator[str]:
    """Give the strategies their model; yields a line that names it, empty without one.

    A run's model is not called: its replies come from the cache, and a missing one raises an error with the remedy.
    """
    models = ModelOptions(**asked.model_settings())
    if models.asked:
        models.check()  # effort or budget without a model
    named, recorded = asked.llm, target.run.results.get("reader") if target.run is not None else None
    if named is None and recorded is None:
        yield ""
        return
    from hopbench.retrieval.llm import LLM, CallLedger, Endpoint, Settings
    from hopbench.retrieval.llm.endpoint import asked_of
    from hopbench.retrieval.question.model import QuestionModel

    home = Home.resolve()
    if named is not None:
        models.reach(home)
        endpoint = models.endpoints()["llm"]
    else:
        assert recorded is not None
        model, _, url = recorded["llm"].rpartition("@")
        endpoint = Endpoint(model, url, **asked_of(recorded))
    ledger = CallLedger(home.calls)
    try:
        with LLM(endpoint, home.replies, ledger, Settings(send=named is not None)) as llm:
            QuestionModel(llm).install(target.index)
            yield f"language model: {endpoint.name}" + ("" if named else "; its replies in the run (--llm asks it)")
    finally:
        ledger.close()
