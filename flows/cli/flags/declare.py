"""How commands declare flags and arguments: in groups of the help, shared through dataclasses, and read from YAML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from rich.markup import escape

from hopbench.flows.cli.flags import complete
from hopbench.flows.settings.graph_options import Setting
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.yaml_file import read_yaml

DATA = "Data and graph"
STRATEGIES = "Strategies and metrics"
MODELS = "Models and judges"
NIGHTLY = "Nightly runs"
EXECUTION = "Execution"
OUTPUT = "Output"
ORDER = (DATA, STRATEGIES, MODELS, NIGHTLY, EXECUTION, OUTPUT)

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
    """Give a command the fields of dataclasses as options, which it receives in its `**` parameter.

    The command is the same function with another signature. A field is annotated with `option(...)`, as a command's own
    parameters are, or with a `Setting`. Help shows all by group, in the order of `ORDER`, a command's own first.
    `without` leaves fields out; `defaults` are this command's, where they are not the dataclass's own.
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
    hints = get_type_hints(group, include_extras=True)  # resolved in the module that declares each field
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        kind, about = get_args(hints[field.name])
        annotation = (
            Annotated[kind, setting_option(field.name, about)] if isinstance(about, Setting) else hints[field.name]
        )
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def setting_option(name: str, setting: Setting) -> Any:
    """The option of a field of `GraphOptions`."""
    limits = {"min": setting.low, "max": setting.high} if setting.low is not None else {}
    offered = getattr(complete, setting.values) if setting.values else None
    # The flag is named here, since Typer would add --no-NAME to one that is true or false.
    flag = f"--{name.replace('_', '-')}"
    return option(MODELS if setting.model else DATA, flag, help=setting.help, complete=offered, **limits)


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
