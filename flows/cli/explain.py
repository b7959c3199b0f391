"""`hopbench explain QUESTION`: why each gold passage of one question was found or lost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def explain_command(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="A question's id, or any question in words.")],
    strategy: Annotated[str, typer.Option(help="The label to explain: NAME, NAME:tuned, NAME[field=value].")],
    against: Annotated[str | None, typer.Option(help="A second label to put beside it.")] = None,
    run: Annotated[Path | None, typer.Option(help="A run's --out folder: its benchmark, settings and ranking.")] = None,
    dataset: Annotated[str | None, typer.Option(help="The benchmark (default: the run's, else hopworld).")] = None,
    top: Annotated[int, typer.Option(min=1, max=100, help="How many hits to print; the k that counts as found.")] = 10,
    cypher: Annotated[bool, typer.Option("--cypher", help="Print the Cypher for a Neo4j browser instead.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON instead.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Also draw the traversal into this SVG file.")] = None,
    store: Annotated[str, typer.Option(help="Where the graph is kept.")] = "kglite",
    embedder: Annotated[str, typer.Option(help="The embedder the graph was built with.")] = "wordllama",
    extractor: Annotated[str, typer.Option(help="The extractor the graph was built with.")] = "rules",
    triples: Annotated[Path | None, typer.Option(help="The triples the graph was built from.")] = None,
    llm: Annotated[
        str | None,
        typer.Option("--llm", help="Model of the strategies, MODEL[@URL]; without it the run's, as far as the cache."),
    ] = None,
) -> None:
    """Explain one question: entities linked, hits with paths, and every gold passage's fate.

    The strategy is run again for this question, also with each of its limits relaxed, so that the limit that lost a
    passage can be named. The graph must have been built. The model of a --run is not asked again: its replies come
    from the cache, unless --llm names a model to ask.
    """
    from flows.cli.explain_json import explanation_json
    from flows.cli.explain_model import with_model
    from flows.cli.explain_print import print_explanation, print_versus
    from flows.cli.explain_target import open_target
    from flows.options import GraphOptions

    asked = GraphOptions(
        dataset=dataset or "hopworld", store=store, embedder=embedder, extractor=extractor, triples=triples, llm=llm
    )
    target = open_target(question, asked, run, dataset)
    with with_model(target, llm) as model:
        if cypher:
            typer.echo("\n\n".join(target.cypher(label) for label in (strategy, against) if label))
            return
        first = target.examine(strategy, top)
        second = target.examine(against, top) if against else None
        if as_json:
            typer.echo(explanation_json(target, [each for each in (first, second) if each]))
            return
        if model:
            typer.echo(model)
        print_explanation(target, first)
        if svg is not None:
            target.draw(first, svg)
        if second is not None:
            print_explanation(target, second, again=True)
            print_versus(target, first, second)
