"""Commands that share flags: a dataclass holds them once, and each command takes it as one value."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any


def takes(flags: type[Any], **defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make the fields of the dataclass `flags` options of a command, whose first parameter gets them as one value.

    The fields are annotated as a command's own parameters are, and follow them in its help. `defaults` are this
    command's, where they are not the dataclass's own.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        shared = signature(flags, eval_str=True)
        _, *own = signature(command, eval_str=True).parameters.values()

        def called(**given: Any) -> None:
            group = flags(**{name: given.pop(name) for name in shared.parameters})
            command(group, **given)

        called.__name__, called.__module__, called.__doc__ = command.__name__, command.__module__, command.__doc__
        taken = [one.replace(default=defaults.get(name, one.default)) for name, one in shared.parameters.items()]
        together = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in (*own, *taken)]
        called.__signature__ = signature(command).replace(parameters=together)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in together}
        return called

    return decorate
