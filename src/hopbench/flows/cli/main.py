"""The command `hopbench`: Typer commands, and errors as one plain message with the right exit code."""

from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from hopbench.flows.cli.annotate import annotate_command
from hopbench.flows.cli.check_data import check_data_command
from hopbench.flows.cli.compare import compare_command, recommend_command
from hopbench.flows.cli.doctor import doctor_command
from hopbench.flows.cli.explain import explain_command
from hopbench.flows.cli.export import export_command
from hopbench.flows.cli.graph import app as graph_app
from hopbench.flows.cli.lists import benchmarks_command, metrics_command, strategies_command
from hopbench.flows.cli.nightly import nightly_command, serve_command
from hopbench.flows.cli.output import reserved
from hopbench.flows.cli.overview import history_command, ls_command, open_command
from hopbench.flows.cli.run import report_command, run_command
from hopbench.flows.cli.studies import judge_check_command, synthesize_command, train_app
from hopbench.flows.cli.sweep import sweep_command
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, InputError, exhausted
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
COMMANDS: dict[str, Any] = {
    "run": run_command,
    "nightly": nightly_command,
    "sweep": sweep_command,
    "serve": serve_command,
    "graph": graph_app,
    "train": train_app,
    "explain": explain_command,
    "compare": compare_command,
    "export": export_command,
    "recommend": recommend_command,
    "judge-check": judge_check_command,
    "report": report_command,
    "ls": ls_command,
    "open": open_command,
    "history": history_command,
    "strategies": strategies_command,
    "benchmarks": benchmarks_command,
    "metrics": metrics_command,
    "check-data": check_data_command,
    "annotate": annotate_command,
    "synthesize": synthesize_command,
    "doctor": doctor_command,
}
for _name, _command in COMMANDS.items():
    if isinstance(_command, typer.Typer):
        app.add_typer(_command, name=_name)
    else:
        _more = {"allow_extra_args": True, "ignore_unknown_options": True} if _name == "serve" else {}
        app.command(_name, context_settings=_more)(reserved(_command))


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

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
    for name, descriptor in (("stdout", STDOUT), ("stderr", STDERR)):
        stream = getattr(sys, name)
        if stream is not None and stream is getattr(sys, f"__{name}__"):  # else somebody collects it
            raw = io.BufferedWriter(Output(descriptor, "w", closefd=False))
            lines = stream.line_buffering
            setattr(sys, name, io.TextIOWrapper(raw, stream.encoding, "backslashreplace", line_buffering=lines))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        refuse_undecodable_arguments(sys.argv[1:])
        try:
            app()  # exits by itself: 2 for usage errors, 130 for Ctrl-C
        except SystemExit as end:
            if end.code == INTERRUPTED:
                _fail("interrupted; the same command goes on from what is kept", INTERRUPTED)
            if sys.stdout is not None:
                sys.stdout.flush()  # while an error of that can still be reported
            raise
    except Exception as error:
        known = plain(error)
        if known is None:
            raise
        _fail(str(known), known.exit_code)


def _fail(message: str, code: int) -> NoReturn:
    message = LONG_WORD.sub(lambda word: f"{word[0][:100]}…{word[0][-50:]}", message)
    # No markup: messages quote what users wrote, brackets and all.
    Console(stderr=True).print(f"hopbench: {harmless(message)}", markup=False, highlight=False, soft_wrap=True)
    with suppress(SystemExit, IncompleteError):  # this message says more
        if sys.stdout is not None:
            sys.stdout.flush()
    sys.exit(code)


STDOUT, STDERR = 1, 2
NO_READER = 128 + 13  # as a shell reports a command that SIGPIPE ended

# Errors about a path, not about the program.
_OF_PATHS = {
    errno.EACCES: "allow it, or name another",
    errno.EPERM: "allow it, or name another",
    errno.EROFS: "name a folder that can be written",
    errno.EISDIR: "a folder stands where a file belongs: move it away, or name another",
    errno.ENOTDIR: "a file stands where a folder belongs: move it away, or name another",
    errno.EEXIST: "move it away, or name another",
    errno.ENOTEMPTY: "move it away, or name another",
    errno.ELOOP: "its links lead in a circle: name the place itself",
    errno.ENAMETOOLONG: "the system takes names of at most 255 bytes: choose a shorter one",
    errno.ENXIO: "nobody reads that pipe: name a file",
}


def plain(error: Exception) -> HopBenchError | None:
    """The error as a HopBenchError; None where it is a defect of the program."""
    if isinstance(error, HopBenchError):
        return error
    if (lacking := exhausted(error)) is not None:
        return lacking
    if isinstance(error, OSError) and error.filename is not None and error.errno in _OF_PATHS:
        named = os.fsdecode(error.filename) if isinstance(error.filename, bytes | str) else error.filename
        return InputError(f"cannot use {named}: {error.strerror}: {_OF_PATHS[error.errno]}")
    if isinstance(error, OSError) and error.errno == errno.EIO:
        return IncompleteError(f"the disk cannot be read or written ({error}): check it, then run the same command")
    return None


def refuse_undecodable_arguments(words: list[str]) -> None:
    """Raise InputError for arguments or a working folder that are no UTF-8: no file of results could name them."""
    try:
        here = str(Path.cwd())
    except OSError as error:
        raise InputError("the folder that this was started in is gone: change to another one") from error
    for what, text in (*(("argument", word) for word in words), ("working folder", here)):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{what} {text.encode(errors='backslashreplace').decode()}: its name is no UTF-8, which no file of "
                "results could hold: rename it, or use a link with another name"
            ) from error
        if "\0" in text:
            raise InputError(f"{what} {text!r}: no name of a file holds NUL: remove it")


class Output(io.FileIO):
    """Standard output or error of this process, whose reader may leave (`| head -1`) and whose disk may be full.

    Without a reader the command ends as others do, by the exit code of SIGPIPE; messages nobody reads stop no work.
    """

    def write(self, content: Any) -> int:
        """See `io.FileIO.write`. Raises SystemExit without a reader, IncompleteError where it cannot be written."""
        try:
            return super().write(content)
        except OSError as error:
            with open(os.devnull, "wb") as nowhere:  # for what is still buffered
                os.dup2(nowhere.fileno(), self.fileno())
            if self.fileno() == STDERR:
                return len(content)
            if isinstance(error, BrokenPipeError):
                raise SystemExit(NO_READER) from None
            raise IncompleteError(
                f"standard output cannot be written ({error.strerror}): send it elsewhere; files are not affected"
            ) from error


if __name__ == "__main__":
    main()
