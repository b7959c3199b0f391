"""The command `hopbench`: Typer commands, and errors as one plain message with the right exit code."""

from __future__ import annotations

import atexit
import gc
import os
import re
import sys
from contextlib import suppress
from importlib.metadata import version
from typing import Annotated, NoReturn, TextIO, cast

import typer
from rich.console import Console

from hopbench.flows.cli._streams import Reserved, flush_output, plain, prepare_output, refuse_undecodable_arguments
from hopbench.flows.cli.annotate import annotate_command
from hopbench.flows.cli.check_data import check_data_command
from hopbench.flows.cli.compare import compare_command, recommend_command
from hopbench.flows.cli.doctor import doctor_command
from hopbench.flows.cli.explain import explain_command
from hopbench.flows.cli.export import export_command
from hopbench.flows.cli.graph import app as graph_app
from hopbench.flows.cli.lists import benchmarks_command, metrics_command, strategies_command
from hopbench.flows.cli.nightly import nightly_command, serve_command, without_webhook
from hopbench.flows.cli.overview import history_command, ls_command, open_command
from hopbench.flows.cli.run import report_command, run_command
from hopbench.flows.cli.studies import judge_check_command, synthesize_command, train_app
from hopbench.flows.cli.sweep import sweep_command
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError
from hopbench.retrieval.support.notice import harmless

INTERRUPTED = 130
LONG_WORD = re.compile(r"\S{1000,}")
# A run makes millions of small objects that live to its end: with Python's default of 700 the collector looks at them
# again and again, for a tenth of the time of the trials.
COLLECT_AFTER = 100_000

app = typer.Typer(
    name="hopbench",
    help="Measures graph-expansion retrieval for multi-hop questions, and says which differences are real.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("run")(run_command)
app.command("nightly")(nightly_command)
app.command("sweep")(sweep_command)
app.command("serve", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(serve_command)
app.add_typer(graph_app, name="graph")
app.add_typer(train_app, name="train")
app.command("explain")(explain_command)
app.command("compare")(compare_command)
app.command("export")(export_command)
app.command("recommend")(recommend_command)
app.command("judge-check")(judge_check_command)
app.command("report")(report_command)
app.command("ls")(ls_command)
app.command("open")(open_command)
app.command("history")(history_command)
app.command("strategies")(strategies_command)
app.command("benchmarks")(benchmarks_command)
app.command("metrics")(metrics_command)
app.command("check-data")(check_data_command)
app.command("annotate")(annotate_command)
app.command("synthesize")(synthesize_command)
app.command("doctor")(doctor_command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hopbench {version('hopbench')}")
        raise typer.Exit


@app.callback()
def hopbench(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Measures graph-expansion retrieval for multi-hop questions, and says which differences are real."""


def main() -> None:
    """Entry point: exit codes 0 done, 1 unexpected, 2 bad input, 3 regression, 4 incomplete, 130 interrupted."""
    gc.set_threshold(COLLECT_AFTER)
    atexit.register(gc.freeze)  # collecting a last time takes a night over a second, of memory that goes anyway
    prepare_output()
    if sys.stdout is not None:
        sys.stdout = cast("TextIO", Reserved(sys.stdout))
    _hide_webhook()
    try:
        refuse_undecodable_arguments(sys.argv[1:])
        app()  # exits by itself: 2 for usage errors, 130 for Ctrl-C
    except HopBenchError as error:
        _fail(str(error), error.exit_code)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _fail("interrupted; the same command goes on from what is kept", INTERRUPTED)
        _flush()
        raise
    except Exception as error:
        known = plain(error)
        if known is None:
            raise
        _fail(str(known), known.exit_code)


def _hide_webhook() -> None:
    """Begin anew with the webhook's URL in the environment: all users of the machine can read a command line."""
    words = sys.argv[1:]
    if words[:1] not in (["nightly"], ["serve"]) or words[-1] == "--webhook" or sys.orig_argv[-len(words) :] != words:
        return
    rest = without_webhook(words)
    if rest != words:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1 : -len(words)], *rest])


def _flush() -> None:
    """Write what is buffered, while an error of that can still be reported."""
    try:
        flush_output()
    except IncompleteError as error:
        _fail(str(error), error.exit_code)


def _fail(message: str, code: int) -> NoReturn:
    message = LONG_WORD.sub(lambda word: f"{word[0][:100]}…{word[0][-50:]}", message)
    # No markup: messages quote what users wrote, brackets and all.
    Console(stderr=True).print(f"hopbench: {harmless(message)}", markup=False, highlight=False, soft_wrap=True)
    with suppress(SystemExit, IncompleteError):  # this message says more
        flush_output()
    sys.exit(code)


if __name__ == "__main__":
    main()
