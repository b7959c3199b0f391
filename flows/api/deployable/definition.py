"""How a flow is defined: a Prefect flow whose parameters are declared where the command line's flags are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from inspect import Signature
from itertools import count
from json import dumps
from pathlib import Path
from typing import Any, TypeVar

import prefect
from prefect import Flow

from hopbench.flows.orchestration.flow_run import inside_flow_run
from hopbench.flows.settings.parameters import Described, docstring
from hopbench.flows.settings.secrets import load_secrets

T = TypeVar("T")
DIGITS = 8


def deployable(name: str, parameters: Sequence[Described], shown: str) -> Callable[[Callable[..., T]], Flow[..., T]]:
    """Make a function of keyword arguments the flow `name` with these parameters; `shown` of them names its runs.

    Prefect reads types, bounds and descriptions from signature and docstring. Neither retries nor a timeout: finished
    trials are kept, so that the same flow run again goes on, and how long it takes depends on the corpus. Results are
    not persisted, which would pickle them: they name the folder that holds everything.
    """

    def decorate(function: Callable[..., T]) -> Flow[..., T]:
        def body(**values: Any) -> T:
            with inside_flow_run():
                load_secrets()
                return function(**values)

        body.__name__ = body.__qualname__ = function.__name__
        body.__module__ = function.__module__
        body.__doc__ = docstring(function.__doc__ or "", parameters)
        body.__signature__ = Signature([one.parameter for one in parameters])  # type: ignore[attr-defined]
        about = " ".join((function.__doc__ or "").split())
        return prefect.flow(
            name=name, description=about, flow_run_name=shown, retries=0, timeout_seconds=None, persist_result=False
        )(body)

    return decorate


def same_folder(parent: Path, name: str, arguments: Mapping[str, Any]) -> Path:
    """The folder for these arguments: the same for the same, so that a run that was cancelled is gone on with."""
    text = dumps({key: value for key, value in arguments.items() if key != "out"}, sort_keys=True, default=str)
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).lstrip(".") or "run"
    return parent / f"{safe}-{sha256(text.encode()).hexdigest()[:DIGITS]}"


def unfinished_folder(parent: Path, name: str, arguments: Mapping[str, Any], finished: str) -> Path:
    """As `same_folder`; where that holds the file `finished`, the next one of that name that does not."""
    first = same_folder(parent, name, arguments)
    folders = (first if number == 1 else first.with_name(f"{first.name}-{number}") for number in count(1))
    return next(folder for folder in folders if not (folder / finished).exists())
