"""Define a flow: a Prefect flow whose parameters are declared where the command line's flags are.

Keys and passwords come from Prefect's Secret blocks, because parameters are shown to everyone who sees its pages.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from hashlib import sha256
from inspect import Signature
from itertools import count
from json import dumps
from pathlib import Path
from reprlib import Repr
from typing import Any, TypeVar

from prefect import Flow
from prefect.exceptions import ParameterTypeError
from prefect.utilities.callables import ParameterSchema
from pydantic.fields import FieldInfo

from hopbench.flows.orchestration.runtime import START_SECONDS, inside_flow_run
from hopbench.flows.settings.parameters import docstring, signature_of
from hopbench.retrieval.support.errors import InputError

Parameters = Mapping[str, FieldInfo]
_shown = Repr()
_shown.maxstring = _shown.maxother = 100


def refusal(flow: str, parameters: Parameters, values: Mapping[str, Any]) -> str | None:
    """What is wrong with the values sent to a flow, and the remedy; None where each fits its parameter."""
    reasons = []
    for name, value in values.items():
        if name not in parameters:
            near = get_close_matches(name, parameters, n=1)
            instead = f"did you mean {near[0]}?" if near else f"there are {', '.join(parameters)}"
            reasons.append(f"parameter {name} (sent: {_shown.repr(value)}) is unknown, {instead}")
    for name, field in parameters.items():
        if name not in values:
            if field.is_required():
                reasons.append(f"parameter {name} is missing: {field.description}")
        elif limits := _misfits(field.annotation, values[name]):
            about = str(field.description).rstrip(".")
            reasons.append(f"parameter {name}={_shown.repr(values[name])}: {', or '.join(limits)} ({about})")
    if not reasons:
        return None
    return f"{flow} did not run: {'; '.join(reasons)}. Correct the parameters and start it again"


def _misfits(kind: Any, value: Any) -> list[str]:
    from pydantic import ConfigDict, TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError

    try:
        adapter = TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:  # a model's own configuration holds
        adapter = TypeAdapter(kind)
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        return list(dict.fromkeys(part["msg"] for part in error.errors()))
    return []


VARIABLES = (
    *("OPENAI_API_KEY", "JUDGE_API_KEY"),
    *("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD"),
    "HOPBENCH_WEBHOOK",
)
_log = logging.getLogger(__name__)


def block_of(variable: str) -> str:
    """The name of a variable's Secret block."""
    return variable.lower().replace("_", "-")


def load_secrets() -> list[str]:
    """Set the variables that are not set and have a block; returns their names, which are logged, unlike values."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

    loaded = []
    with get_client(sync_client=True) as client:
        for variable in (name for name in VARIABLES if not os.environ.get(name)):
            # By name: what other secrets the server holds is none of this process's business.
            try:
                found = client.read_block_document_by_name(block_of(variable), "secret")
            except ObjectNotFound:
                continue
            except PrefectHTTPStatusError as error:
                _log.warning("Secret blocks cannot be read: %s", error)
                break
            if value := str(found.data.get("value", "")):
                os.environ[variable] = value
                loaded.append(variable)
    if loaded:
        _log.info("from Secret blocks: %s", ", ".join(sorted(loaded)))
    return loaded


T = TypeVar("T")
DIGITS = 8


def deployable(
    name: str, parameters: Mapping[str, FieldInfo], shown: str
) -> Callable[[Callable[..., T]], Flow[..., T]]:
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
        body.__signature__ = Signature(signature_of(parameters))  # type: ignore[attr-defined]
        about = " ".join((function.__doc__ or "").split())
        flow = CheckedFlow(
            body,
            name=name,
            description=about,
            flow_run_name=shown,
            retries=0,
            timeout_seconds=None,
            persist_result=False,
            on_crashed=[explain_crash],
        )
        flow.described = parameters
        return flow

    return decorate


class CheckedFlow(Flow[..., T]):
    """A flow that refuses what does not fit its parameters with an InputError, which is the failed run's message."""

    described: Mapping[str, FieldInfo] = {}

    def __call__(self, *arguments: Any, **parameters: Any) -> Any:
        """See `Flow.__call__`.

        A server that Prefect starts for it may take longer than 20 s, reports to no one, and answers no site's pages.
        """
        from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_ANALYTICS_ENABLED, temporary_settings
        from prefect.settings import PREFECT_SERVER_CORS_ALLOWED_ORIGINS as ORIGINS
        from prefect.settings import PREFECT_SERVER_CSRF_PROTECTION_ENABLED as TOKENS
        from prefect.settings import PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS as PATIENCE

        if PREFECT_API_URL.value():
            return super().__call__(*arguments, **parameters)
        own = {PATIENCE: max(PATIENCE.value(), START_SECONDS), PREFECT_SERVER_ANALYTICS_ENABLED: False}
        own |= {ORIGINS: "http://127.0.0.1", TOKENS: True}
        with temporary_settings(own):
            return super().__call__(*arguments, **parameters)

    def with_options(self, **options: Any) -> Flow[..., T]:
        """See `Flow.with_options`; the copy refuses the same."""
        copy = super().with_options(**options)
        copy.__class__ = CheckedFlow
        copy.described = self.described  # type: ignore[attr-defined]
        return copy

    def validate_parameters(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """See `Flow.validate_parameters`."""
        try:
            return super().validate_parameters(parameters)
        except ParameterTypeError as error:
            raise InputError(refusal(self.name, self.described, parameters) or str(error)) from error


def explain_crash(flow: Flow[..., Any], flow_run: Any, state: Any) -> None:
    """Give a run that crashed because of unknown or missing parameters the reason as its state, FAILED.

    Prefect binds the parameters of a run before its own checks, and a server without the closed schema of `hopbench
    serve` schedules such a run. The process that ran it has ended by then; this is called by the one that started it.
    """
    from prefect.client.orchestration import get_client
    from prefect.states import Failed

    reason = refusal(flow.name, flow.described, flow_run.parameters) if isinstance(flow, CheckedFlow) else None
    if reason is not None:
        with get_client(sync_client=True) as client:
            client.set_flow_run_state(flow_run.id, Failed(message=reason), force=True)


def refuse_others(deployment: Any) -> None:
    """Have the server refuse parameters that the flow of a deployment does not have, too."""
    schema = deployment._parameter_openapi_schema
    deployment._parameter_openapi_schema = ClosedSchema(**schema.model_dump(exclude_unset=True))


class ClosedSchema(ParameterSchema):
    """A flow's parameters in JSON Schema, and no others."""

    additionalProperties: bool = False  # noqa: N815 (the name in JSON Schema)

    def __init__(self, **fields: Any) -> None:
        super().__init__(**{**fields, "additionalProperties": False})  # set, since what is unset is not sent


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
