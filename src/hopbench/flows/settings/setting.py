"""Settings: pydantic models whose fields are command-line flags, YAML keys, flows' parameters and API keywords.

A field is declared once, as `name: TYPE = flag(DEFAULT, "What it is.", ge=1)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from hopbench.retrieval.support.errors import ParameterError, UnknownNameError

DATA = "Data and graph"
STRATEGIES = "Strategies and metrics"
MODELS = "Models and judges"
NIGHTLY = "Nightly runs"
EXECUTION = "Execution"
OUTPUT = "Output"
ORDER = (DATA, STRATEGIES, MODELS, NIGHTLY, EXECUTION, OUTPUT)


@dataclass(frozen=True)
class Flag:
    """Makes a field a flag in the group `group` of the help, and a parameter of flows unless `form` is false.

    `values` names the list of values that completion and Prefect's form offer (`settings.values`), `name` the flag
    where it is not the field's name. `commas`: one text with commas on the command line, a list in a form. `builds`:
    another value makes another graph. `ranged`: the command line shows the bounds, and refuses what is beyond them.
    """

    group: str = DATA
    values: str = ""
    name: str = ""
    commas: bool = False
    form: bool = True
    builds: bool = True
    ranged: bool = True


def flag(default: Any, help: str, group: str = DATA, **more: Any) -> Any:
    """A field that is a flag: `...` is the default of one that must be given, `more` are bounds and `Flag`'s fields."""
    extra: Any = {"flag": Flag(group, **{one.name: more.pop(one.name) for one in fields(Flag) if one.name in more})}
    return Field(default, description=help, json_schema_extra=extra, **more)


Commas = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else ",".join(value))]
"""Names in one text, with commas; a list of names is joined."""


BOUNDS = ("gt", "ge", "le")
RANGED = ("greater_than_equal", "less_than_equal")
LIMITS = {
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "missing": "must be given",
}
"""Pydantic's kinds of errors, in the words of the other messages."""


class Settings(BaseModel):
    """Base of all settings: immutable, no unknown fields; None stands for a field's default."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        """Raise UnknownNameError for a keyword that is no setting, ParameterError for a value that does not fit."""
        try:
            super().__init__(**{name: value for name, value in values.items() if value is not None})
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else ""
            if first["type"] == "extra_forbidden":
                raise UnknownNameError("setting", name, type(self).model_fields) from None
            value = "" if first["type"] == "missing" else f" {first['input']}"
            field = type(self).model_fields[name] if name in type(self).model_fields else FieldInfo()
            bounds = {bound: getattr(one, bound) for one in field.metadata for bound in BOUNDS if hasattr(one, bound)}
            limit = LIMITS.get(first["type"], first["msg"].lower()).format(**bounds)
            if first["type"] in RANGED and {"ge", "le"} <= bounds.keys():
                limit = f"must be {bounds['ge']:g}..{bounds['le']:g}"
            raise ParameterError(f"{flag_name(name, type(self))}{value}: {limit}") from None

    def changed(self, **values: Any) -> Self:
        """The same settings with other values; None is a field's default."""
        return type(self)(**{**dict(self), **values})


def flags_of(*models: type[BaseModel], without: Sequence[str] = ()) -> list[tuple[str, FieldInfo, Flag]]:
    """The fields that are flags, in the order of their groups, then of their declaration."""
    found: list[tuple[str, FieldInfo, Flag]] = []
    for name, field in {name: field for model in models for name, field in model.model_fields.items()}.items():
        extra: Any = field.json_schema_extra or {}
        if "flag" in extra and name not in without:
            found.append((name, field, extra["flag"]))
    return sorted(found, key=lambda each: ORDER.index(each[2].group))


def flag_name(name: str, *models: type[BaseModel]) -> str:
    """The flag of a field."""
    given = next((flag.name for known, _, flag in flags_of(*models) if known == name), "")
    return given.partition("/")[0] or f"--{name.replace('_', '-')}"


def values_for(model: type[Settings], values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that are fields of the model."""
    return {name: value for name, value in values.items() if name in model.model_fields}


def named_flags(names: Iterable[str]) -> str:
    """The flags of fields, with commas: `--llm, --gleaning`."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)
