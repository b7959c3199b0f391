"""`hopbench annotate DATASET`: write questions for a corpus on a local page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from hopbench.flows.cli.flags import argument, option, with_flags
from hopbench.flows.cli.output import echo, stdout
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.setting import EXECUTION, OUTPUT, STRATEGIES


@with_flags(GraphOptions, without=("dataset",))
def annotate_command(
    dataset: Annotated[
        str, argument(metavar="DATASET", help="A folder of documents, or any data set.", values="datasets")
    ],
    out: Annotated[
        Path | None,
        option(
            OUTPUT, metavar="DIR", help="The data set to write (default: NAME-annotated); continued where it exists."
        ),
    ] = None,
    strategies: Annotated[
        str | None,
        option(STRATEGIES, help="Labels whose first passages are shown, comma-separated.", values="labels"),
    ] = None,
    port: Annotated[int, option(EXECUTION, min=0, max=65535, help="The page's port on 127.0.0.1 (0: any).")] = 0,
    no_browser: Annotated[bool, option(EXECUTION, "--no-browser", help="Print the address only.")] = False,
    **flags: Any,
) -> None:
    """Write questions of your own: pool the passages of several strategies, mark the evidence, write the answer.

    Every change is saved at once into DIR, an ordinary data set: run it, or continue later with the same command.
    """
    import webbrowser

    from hopbench.flows.annotation.draft import Draft
    from hopbench.flows.annotation.server import LABELS, AnnotationPages
    from hopbench.flows.api.corpus import open_corpus
    from hopbench.flows.settings.locks import LOOPBACK, held, listener_on
    from hopbench.retrieval.strategies.registry import resolve
    from hopbench.retrieval.support.errors import InputError

    labels = list(resolve(strategies or LABELS))
    corpus = open_corpus(GraphOptions(dataset=dataset, **flags))
    folder = (out or Path(f"{corpus.name}-annotated")).absolute()

    def refusal(holder: str) -> InputError:
        return InputError(f"--out {folder}: is being annotated ({holder}): use that page, or name another folder")

    with held(folder.with_name(f".{folder.name}.lock"), corpus.name, refusal):
        pages = AnnotationPages(corpus, Draft.open(corpus.benchmark, folder), labels)
        with listener_on(port) as listener:
            listener.listen()  # a browser may come before the pages are ready
            address = f"http://{LOOPBACK}:{listener.getsockname()[1]}/"
            echo(f"questions are saved in {folder}\nopen {address} and end with Ctrl-C")
            stdout().flush()
            if not no_browser:
                webbrowser.open(address)
            pages.serve(listener)
        echo(f"next: hopbench run --dataset {folder} --strategies all,all:tuned --out first", err=True)
