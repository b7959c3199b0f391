"""`hopbench explain QUESTION`: why each gold passage of one question was retrieved or lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hopbench.flows.cli.flags import Config, argument, option, with_flags
from hopbench.flows.cli.output import echo
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.setting import DATA, OUTPUT, STRATEGIES

if TYPE_CHECKING:
    from hopbench.eval.explain.examine import Examiner
    from hopbench.flows.explain.target import Target


@contextmanager
def with_model(target: Target, asked: GraphOptions) -> Iterator[str]:
    """Give the strategies their model; yields a line that names it, empty without one.

    A run's model is not called: its replies come from the cache, and a missing one raises an error with the remedy.
    """
    from hopbench.flows.settings.home import Home
    from hopbench.flows.settings.models import ModelOptions

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


@with_flags(GraphOptions, without=("dataset",))
def explain_command(
    question: Annotated[str, argument(metavar="QUESTION", help="A question's id, or any question in words.")],
    strategy: Annotated[
        str,
        option(STRATEGIES, help="The label to explain: NAME, NAME:tuned, NAME[field=value].", values="label"),
    ],
    against: Annotated[str | None, option(STRATEGIES, help="A second label to put beside it.", values="label")] = None,
    run: Annotated[
        Path | None, option(DATA, help="A run's --out folder: its benchmark, graph, settings and ranking.")
    ] = None,
    dataset: Annotated[
        str | None,
        option(DATA, help="The benchmark (default: the run's, else hopworld).", values="datasets"),
    ] = None,
    top: Annotated[
        int, option(OUTPUT, min=1, max=100, help="How many hits to print; the k that counts as found.")
    ] = 10,
    cypher: Annotated[bool, option(OUTPUT, "--cypher", help="Print the Cypher for a Neo4j browser instead.")] = False,
    as_json: Annotated[bool, option(OUTPUT, "--json", help="Print everything as JSON instead.")] = False,
    svg: Annotated[Path | None, option(OUTPUT, help="Also draw the traversal into this SVG file.")] = None,
    config: Config = None,
    **flags: Any,
) -> None:
    """Explain one question: entities linked, hits with paths, and the outcome of every gold passage.

    The strategy is run again for this question, also with each of its limits relaxed, so that the limit that lost a
    passage can be named. The graph must have been built. The model of a --run is not called again: its replies come
    from the cache, unless --llm names a model to call.
    """
    from hopbench.flows.explain.target import open_target
    from hopbench.retrieval.strategies.registry import canonical_label

    labels = [canonical_label(label) for label in (strategy, against) if label]
    asked = GraphOptions(dataset=dataset or "hopworld", **flags)
    target = open_target(question, asked, run, dataset)
    with with_model(target, asked) as model:
        if cypher:
            echo("\n\n".join(map(target.cypher, labels)))
        else:
            _explain(target, [target.examine(label, top) for label in labels], "" if as_json else model, as_json, svg)


def _explain(target: Target, examined: list[Examiner], model: str, as_json: bool, svg: Path | None) -> None:
    from hopbench.flows.cli._explain_printing import print_explanation, print_versus
    from hopbench.flows.explain.words import explanation_json

    if as_json:
        echo(explanation_json(target, examined))
        return
    if model:
        echo(model)
    first, *others = examined
    print_explanation(target, first)
    if svg is not None:
        target.draw(first, svg)
    for second in others:
        print_explanation(target, second, again=True)
        print_versus(target, first, second)
