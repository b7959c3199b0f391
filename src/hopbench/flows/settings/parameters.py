"""The parameters of Prefect's flows by name, from the same declarations as the command line's flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, WithJsonSchema
from pydantic.fields import FieldInfo

from hopbench.flows.settings.setting import flags_of
from hopbench.flows.settings.values import schema_of
from hopbench.retrieval.strategies.label import split_labels


def parameters_of(*models: type[BaseModel], without: Sequence[str] = (), **defaults: Any) -> dict[str, FieldInfo]:
    """The flags of these settings as parameters; `defaults` are the flow's own, where they differ."""
    result = {}
    for name, field, flag in flags_of(*models, without=without):
        if not flag.form:
            continue
        default, limits = defaults.get(name, field.get_default(call_default_factory=True)), field.metadata
        if flag.commas:
            kind: Any = Annotated[offering(list[str], flag.values), BeforeValidator(_as_list)]
            default, limits = _as_list(default), []
        elif get_origin(field.annotation) is tuple:
            kind = offering(list[str], flag.values)
            default = list(default) if isinstance(default, tuple) else default
        else:
            kind = offering(field.annotation, flag.values)
        about = f"{field.description}{_limits_in_words(field)}"
        result[name] = FieldInfo(annotation=_limited(kind, limits), default=default, description=about)
    return result


def fields_of(model: type[BaseModel], offers: Mapping[str, str], **defaults: Any) -> dict[str, FieldInfo]:
    """The fields of a pydantic model as parameters, with its bounds and descriptions.

    `offers` names lists of values by field. A field among `defaults` may be left out, so its bounds are left to the
    model.
    """
    result = {}
    for name, field in model.model_fields.items():
        default = defaults.get(name, field.get_default(call_default_factory=True))
        kind = _limited(offering(field.annotation, offers.get(name, "")), [] if name in defaults else field.metadata)
        result[name] = FieldInfo(annotation=kind, default=default, description=field.description)
    return result


def offering(kind: Any, values: str) -> Any:
    """The type with the offered values in its JSON Schema: of a text, of one that may be left out, or of a list's."""
    if not values:
        return kind
    shown = WithJsonSchema(schema_of(values))
    if get_origin(kind) is list:
        return list[Annotated[str, shown]]
    if NoneType in get_args(kind):
        return Annotated[str, shown] | None
    return Annotated[kind, shown]


def _limited(kind: Any, metadata: Sequence[Any]) -> Any:
    return Annotated[(kind, *metadata)] if metadata else kind


def _limits_in_words(field: FieldInfo) -> str:
    """The limits where the description does not say them: the form only says that a value is not valid."""
    limits = {name: getattr(one, name) for one in field.metadata for name in ("ge", "le", "gt") if hasattr(one, name)}
    if "gt" in limits:
        return f" Above {limits['gt']:g}."
    if "ge" not in limits or f"{limits['ge']:g}.." in str(field.description):
        return ""
    return f" At least {limits['ge']:g}" + (f", at most {limits['le']:g}." if "le" in limits else ".")


def docstring(first: str, parameters: Mapping[str, FieldInfo]) -> str:
    """A docstring in Google's style, where Prefect finds the descriptions of parameters."""
    lines = [f"    {name}: {' '.join(str(field.description).split())}" for name, field in parameters.items()]
    return "\n".join([first, "", "Args:", *lines])


def signature_of(parameters: Mapping[str, FieldInfo]) -> list[Parameter]:
    """The parameters as a function has them."""
    return [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.is_required() else field.default,
            annotation=field.annotation,
        )
        for name, field in parameters.items()
    ]


def from_flags(values: Mapping[str, Any], parameters: Mapping[str, FieldInfo]) -> dict[str, Any]:
    """The arguments of a flow that differ from its defaults, from the command line's flags, as plain values."""
    result = {}
    for name, field in parameters.items():
        value = values.get(name)
        if isinstance(field.default, list):
            value = list(_as_list(value or ()))
        elif not (isinstance(value, (bool, int, float)) or value is None):
            value = str(value)
        if name in values and value != field.default:
            result[name] = value
    return result


def _as_list(given: Any) -> Any:
    return list(split_labels(given)) if isinstance(given, str) else given
