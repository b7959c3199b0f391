"""How commands declare flags and arguments: in groups of the help, shared through dataclasses, and read from YAML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.markup import escape

from hopbench.flows.cli import complete
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.options import RunSettings
from hopbench.flows.settings.setting import (
    EXECUTION,
    ORDER,
    Declared,
    declared,
    required,
)
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.input_files import read_yaml

Complete = Callable[[str], list[str]]


def option(panel: str, *names: str, help: str, complete: Complete | None = None, **more: Any) -> Any:
    """An option in the group `panel`; `help` is plain text, brackets and all, `complete` offers values to a shell."""
    more["autocompletion"] = complete
    return typer.Option(*names, help=escape(help), rich_help_panel=panel, **more)


def argument(*, help: str, complete: Complete | None = None, **more: Any) -> Any:
    """An argument of a command; `help` is plain text."""
    return typer.Argument(help=escape(help), autocompletion=complete, **more)


def with_flags(
    *groups: type[Any], without: Sequence[str] = (), **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the settings of dataclasses as options, which it receives in its `**` parameter.

    The command is the same function with another signature. Help shows all by group, in the order of `ORDER`, a
    command's own first. `without` leaves fields out; `defaults` are this command's, where they differ.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        declared = signature(command, eval_str=True).parameters.values()
        own = [parameter for parameter in declared if parameter.kind is not Parameter.VAR_KEYWORD]
        shared = [parameter for group in groups for parameter in _options(group) if parameter.name not in without]
        options = [parameter.replace(default=defaults.get(parameter.name, parameter.default)) for parameter in shared]
        together = sorted((one.replace(kind=Parameter.KEYWORD_ONLY) for one in (*own, *options)), key=_place)
        command.__signature__ = signature(command).replace(parameters=together)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in together}
        return command

    return decorate


def _options(group: type[Any]) -> Iterator[Parameter]:
    for one in declared(group):
        kind: Any = one.kind
        annotation = Annotated[kind, setting_option(one)]
        default = Parameter.empty if required(one.default) else one.default
        yield Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def setting_option(one: Declared) -> Any:
    """The option of a field that is declared with a `Setting`."""
    setting = one.setting
    limits = {"min": setting.low, "max": setting.high} if setting.flag_limits and setting.low is not None else {}
    offered = getattr(complete, setting.values) if setting.values else None
    # The flag is named here, since Typer would add --no-NAME to one that is true or false.
    flag = setting.flag or f"--{one.name.replace('_', '-')}"
    form = " Comma-separated." if setting.commas else " May be repeated." if "list" in str(one.kind) else ""
    return option(setting.group, flag, help=setting.help + form, complete=offered, **limits)


def _place(one: Parameter) -> int:
    """The place of a parameter's group; arguments, which have none, come first."""
    panels = (getattr(about, "rich_help_panel", None) for about in get_args(one.annotation)[1:])
    return next((ORDER.index(panel) for panel in panels if panel in ORDER), -1)


def read_config(context: typer.Context, file: Path | None) -> Path | None:
    """Make the file's values the defaults of the command's flags; names are the flags' own, with - or _."""
    if file is None:
        return None
    content = read_yaml(file, f"--config {file}")
    if not isinstance(content, dict):
        raise InputError(f"--config {file}: a mapping of flags to values is wanted, not {type(content).__name__}")
    flags = {option.lstrip("-").replace("-", "_"): p for p in context.command.params for option in p.opts}
    values = {}
    for name, value in content.items():
        parameter = flags.get(str(name).replace("-", "_"))
        if parameter is None or parameter.name is None:
            raise UnknownNameError(f"flag in {file}", str(name), flags)
        # A flag that may be repeated takes a list; click would take a text apart, letter by letter.
        values[parameter.name] = [value] if parameter.multiple and not isinstance(value, list) else value
    context.default_map = {**(context.default_map or {}), **values}
    return file


Config = Annotated[
    Path | None,
    option(
        EXECUTION, "--config", callback=read_config, is_eager=True, help="YAML file with any of these flags; flags win."
    ),
]


_FLAG = {one.name: setting_option(one) for group in (GraphOptions, RunSettings) for one in declared(group)}

Dataset = Annotated[str, _FLAG["dataset"]]
Embedder = Annotated[str, _FLAG["embedder"]]
Llm = Annotated[str | None, _FLAG["llm"]]
ReasoningEffort = Annotated[str | None, _FLAG["reasoning_effort"]]
CompletionTokens = Annotated[int | None, _FLAG["completion_tokens"]]
NoPrefect = Annotated[bool, _FLAG["no_prefect"]]
Judge = Annotated[str | None, _FLAG["judge"]]
JudgeMetrics = Annotated[str, _FLAG["judge_metrics"]]
DryRun = Annotated[bool, _FLAG["dry_run"]]
BudgetUsd = Annotated[float | None, _FLAG["budget"]]
Runner = Annotated[str, _FLAG["runner"]]
Workers = Annotated[int | None, _FLAG["workers"]]
MinGrade = Annotated[int | None, _FLAG["min_grade"]]
Strict = Annotated[bool | None, _FLAG["strict"]]
Batch = Annotated[int | None, _FLAG["batch"]]
