"""Commands that share flags: a dataclass holds them once, and each command takes it as one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from inspect import Parameter, signature
from typing import Any, get_args, get_type_hints

from hopbench.flows.cli.flags.panels import ORDER


def takes(flags: type[Any], **defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make the fields of the dataclass `flags` options of a command, whose first parameter gets them as one value.

    The fields are annotated as a command's own parameters are. Help shows all of them by group, in the order of
    `panels.ORDER`, a command's own before the shared ones. `defaults` are this command's, where they are not the
    dataclass's own.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(flags, include_extras=True)  # a field's names mean what they mean where it is declared
        shared = [_parameter(one, hints[one.name]) for one in fields(flags)]
        _, *own = signature(command, eval_str=True).parameters.values()

        def called(**given: Any) -> None:
            group = flags(**{one.name: given.pop(one.name) for one in shared})
            command(group, **given)

        called.__name__, called.__module__, called.__doc__ = command.__name__, command.__module__, command.__doc__
        taken = [one.replace(default=defaults.get(one.name, one.default)) for one in shared]
        together = sorted((one.replace(kind=Parameter.KEYWORD_ONLY) for one in (*own, *taken)), key=_place)
        called.__signature__ = signature(command).replace(parameters=together)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in together}
        return called

    return decorate


def _parameter(one: Field[Any], hint: Any) -> Parameter:
    default = Parameter.empty if one.default is MISSING else one.default
    return Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _place(one: Parameter) -> int:
    """The place of a parameter's group; arguments, which have none, come first."""
    panels = (getattr(about, "rich_help_panel", None) for about in get_args(one.annotation)[1:])
    return next((ORDER.index(panel) for panel in panels if panel in ORDER), -1)
