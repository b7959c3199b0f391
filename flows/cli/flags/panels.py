"""Flags and arguments as all commands declare them: each in a named group of the help, its text as it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from rich.markup import escape

DATA = "Data and graph"
STRATEGIES = "Strategies and metrics"
MODELS = "Models and judges"
NIGHT = "The night"
EXECUTION = "Execution"
OUTPUT = "Output"
ORDER = (DATA, STRATEGIES, MODELS, NIGHT, EXECUTION, OUTPUT)

Complete = Callable[[str], list[str]]


def option(panel: str, *names: str, help: str, complete: Complete | None = None, **more: Any) -> Any:
    """An option in the group `panel`; `help` is plain text, brackets and all, `complete` offers values to a shell."""
    more["autocompletion"] = complete
    return typer.Option(*names, help=escape(help), rich_help_panel=panel, **more)


def argument(*, help: str, complete: Complete | None = None, **more: Any) -> Any:
    """An argument of a command; `help` is plain text."""
    return typer.Argument(help=escape(help), autocompletion=complete, **more)
