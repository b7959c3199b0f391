"""Make flags of settings in groups of the help, declare a command's own, and read `--config` files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic import BaseModel
from rich.markup import escape

from hopbench.flows.settings.setting import EXECUTION, ORDER, OUTPUT, flags_of
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.input_files import read_yaml


def option(panel: str, *names: str, help: str, values: str = "", **more: Any) -> Any:
    """An option in the group `panel`; `help` is plain text, brackets and all, `values` are offered to a shell."""
    return typer.Option(
        *names, help=escape(help), rich_help_panel=panel, autocompletion=_completion(values) if values else None, **more
    )


def argument(*, help: str, values: str = "", **more: Any) -> Any:
    """An argument of a command; `help` is plain text."""
    return typer.Argument(help=escape(help), autocompletion=_completion(values) if values else None, **more)


def _completion(values: str) -> Callable[[str], list[str]]:
    def offered(incomplete: str) -> list[str]:
        from hopbench.flows.settings.values import complete

        return complete(values, incomplete)

    return offered


def with_flags(
    *models: type[BaseModel], only: Sequence[str] = (), without: Sequence[str] = (), **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of settings as options, which it receives in its `**` parameter.

    The command is the same function with another signature. Help shows all by group, in the order of `ORDER`, a
    command's own first. `only` and `without` choose fields; `defaults` are this command's, where they differ.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        declared = signature(command, eval_str=True).parameters.values()
        parameters = [one for one in declared if one.kind is not Parameter.VAR_KEYWORD]
        for name, field, flag in flags_of(*models, without=without):
            if only and name not in only:
                continue
            kind: Any = field.annotation
            default = defaults.get(name, Parameter.empty if field.is_required() else field.default)
            form = " Comma-separated." if flag.commas else ""
            if get_origin(kind) is tuple:
                kind, form = list[str], " May be repeated."
                default = list(default) or None if isinstance(default, tuple) else default
            if default is None and NoneType not in get_args(kind):
                kind = kind | None
            bounds = {"ge": "min", "le": "max"}
            limits = {
                bounds[a]: getattr(one, a) for one in field.metadata for a in bounds if flag.ranged and hasattr(one, a)
            }
            # The flag is named here, since Typer would add --no-NAME to one that is true or false.
            text, dashed = f"{field.description}{form}", flag.name or f"--{name.replace('_', '-')}"
            annotation = Annotated[kind, option(flag.group, dashed, help=text, values=flag.values, **limits)]
            parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
        place: dict[str | None, int] = {None: -1} | {group: number for number, group in enumerate(ORDER)}
        placed: list[tuple[int, int, Parameter]] = []  # arguments, which have no group, come first
        for one in parameters:
            group = next((about.rich_help_panel for about in get_args(one.annotation)[1:]), None)
            placed.append((place[group], len(placed), one.replace(kind=Parameter.KEYWORD_ONLY)))
        parameters = [one for _, _, one in sorted(placed)]
        command.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return decorate


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
Json = Annotated[bool, option(OUTPUT, "--json", help="Print JSON for machines.")]
Csv = Annotated[bool, option(OUTPUT, "--csv", help="Print CSV, with a heading.")]
