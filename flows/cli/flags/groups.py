"""Commands that share flags: a dataclass declares them once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from inspect import Parameter, signature
from typing import Any, get_args, get_type_hints

from hopbench.flows.cli.flags.panels import ORDER


def with_flags(flags: type[Any], **defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of the dataclass `flags` as options, which it receives in its `**` parameter.

    The command is the same function with another signature. The fields are annotated as a command's own parameters
    are. Help shows all of them by group, in the order of `panels.ORDER`, a command's own before the shared ones.
    `defaults` are this command's, where they are not the dataclass's own.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(flags, include_extras=True)  # resolved in the module that declares each field
        shared = [_parameter(one, hints[one.name]) for one in fields(flags)]
        declared = signature(command, eval_str=True).parameters.values()
        own = [parameter for parameter in declared if parameter.kind is not Parameter.VAR_KEYWORD]
        options = [one.replace(default=defaults.get(one.name, one.default)) for one in shared]
        together = sorted((one.replace(kind=Parameter.KEYWORD_ONLY) for one in (*own, *options)), key=_place)
        command.__signature__ = signature(command).replace(parameters=together)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in together}
        return command

    return decorate


def _parameter(one: Field[Any], hint: Any) -> Parameter:
    default = Parameter.empty if one.default is MISSING else one.default
    return Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _place(one: Parameter) -> int:
    """The place of a parameter's group; arguments, which have none, come first."""
    panels = (getattr(about, "rich_help_panel", None) for about in get_args(one.annotation)[1:])
    return next((ORDER.index(panel) for panel in panels if panel in ORDER), -1)
