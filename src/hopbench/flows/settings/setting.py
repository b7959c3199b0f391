"""How a field of the options is declared once: for a flag, a `--config` file, a flow's parameter and Prefect's form.

A field is annotated `Annotated[TYPE, Setting(...)]`. The command line makes a flag of it (`cli.flags`), a flow
a parameter (`settings.parameters`). This module loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Any, NamedTuple, get_args, get_type_hints

DATA = "Data and graph"
STRATEGIES = "Strategies and metrics"
MODELS = "Models and judges"
NIGHTLY = "Nightly runs"
EXECUTION = "Execution"
OUTPUT = "Output"
ORDER = (DATA, STRATEGIES, MODELS, NIGHTLY, EXECUTION, OUTPUT)


@dataclass(frozen=True)
class Setting:
    """A field as a user sees it: its help, its group, its limits and the values that are offered.

    `values` names the list of values: of a shell's completion (`cli.complete`) and of Prefect's form
    (`settings.parameters`). `flag` is the flag where that is not the field's name. With `flag_limits` the flag itself
    refuses what is beyond `low` and `high`; otherwise the options do, with a message of their own. `above` is a limit
    that is excluded. `commas`: a list, which the command line takes as one text with commas. `page`: whether flows have
    it as a parameter. `builds`: another value makes another graph.
    """

    help: str
    low: float | None = None
    high: float | None = None
    values: str = ""
    group: str = DATA
    flag: str = ""
    flag_limits: bool = True
    above: float | None = None
    commas: bool = False
    page: bool = True
    builds: bool = True


class Declared(NamedTuple):
    """A field with its declaration; `default` is `dataclasses.MISSING` where a value must be given."""

    name: str
    kind: Any
    default: Any
    setting: Setting


def declared(group: type[Any]) -> Iterator[Declared]:
    """The fields of a dataclass that have a `Setting`, in the order of their declaration."""
    hints = get_type_hints(group, include_extras=True)  # resolved in the module that declares each field
    for field in fields(group):
        kind, *about = get_args(hints[field.name]) or (hints[field.name],)
        setting = next((one for one in about if isinstance(one, Setting)), None)
        if setting is not None:
            made = field.default if field.default_factory is MISSING else field.default_factory()
            yield Declared(field.name, kind, made, setting)


def required(default: Any) -> bool:
    """Whether a field with this default must be given."""
    return default is MISSING
