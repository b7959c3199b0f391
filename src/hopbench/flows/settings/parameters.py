"""The parameters of Prefect's flows, from the same declarations as the command line's flags.

For each, Prefect's form offers values; making these lists loads no model and no graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from hopbench.flows.settings.setting import Declared, Setting, declared, required
from hopbench.retrieval.strategies.label import split_labels

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


@dataclass(frozen=True)
class Offer:
    """Names to choose from and, where the set is open, `others`: what other values are, by title and pattern."""

    names: Sequence[str]
    title: str = "choose"
    others: Mapping[str, str] | None = None

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of one value."""
        closed: dict[str, Any] = {"type": "string", "enum": list(self.names)}
        others = [
            {"type": "string", "title": title, "pattern": pattern} for title, pattern in (self.others or {}).items()
        ]
        every = [*([{**closed, "title": self.title}] if self.names else []), *others]
        return every[0] if len(every) == 1 and self.others else {"anyOf": every} if others else closed


def _datasets() -> Offer:
    from hopbench.eval.benchmarks.loader import shipped_folders

    return Offer(list(shipped_folders()), "shipped", {"folder, file or Hub name": r"^.*[/.~:].*$"})


def _stores() -> Offer:
    from hopbench.flows.settings.home import STORES

    return Offer(STORES)


def _methods() -> Offer:
    from hopbench.retrieval.graph.construction.plan import METHODS

    return Offer(METHODS)


def _extractors() -> Offer:
    from hopbench.retrieval.graph.construction.plan import extractor_names

    return Offer(extractor_names())


def _embedders() -> Offer:
    from hopbench.retrieval.embedding import BUILT_IN, EXAMPLES
    from hopbench.retrieval.plugins.registry import EMBEDDERS, offered_names

    names = list(dict.fromkeys([*BUILT_IN, *offered_names(EMBEDDERS)]))
    alone = [name for name in names if name not in EXAMPLES]
    return Offer(alone, "embedder", {"NAME:MODEL": f"^({_any(names)}):.+$"})


def _labels() -> Offer:
    """Labels, with the words for several of them; parameters in brackets and a reranker may follow a name."""
    from hopbench.retrieval.strategies.label import strategy_names, tuned_names

    names = strategy_names()
    tuned = [f"{name}:tuned" for name in tuned_names()]
    changed = rf"^({_any(names)})(:[^+\[\]]+)?(\[[^\[\]]*\])?(\+[^:+\[\]]+(\[[^\[\]]*\])?)?$"
    return Offer(["all", "all:tuned", *names, *tuned], "label", {"NAME[field=value]+RERANKER": changed})


def _changes() -> Offer:
    from hopbench.retrieval.strategies.label import strategy_names

    return Offer((), others={"strategy.field=value": rf"^({_any(strategy_names())})\.\w+=.+$"})


def _metrics() -> Offer:
    return Offer((), others={"NAME or NAME@K": r"^\S+$"})


def _judge_metrics() -> Offer:
    from hopbench.eval.metrics import all_metrics

    return Offer(["all", *all_metrics("judge")])


def _judge_profiles() -> Offer:
    from hopbench.flows.settings.models import PROFILES

    return Offer(PROFILES)


def _efforts() -> Offer:
    return Offer(EFFORTS, "known", {"a provider's own": r"^[a-z]+$"})


def _judge_on() -> Offer:
    return Offer(("all", "finalists"), "labels", {"finalists:N": r"^finalists:[1-9][0-9]*$"})


def _runners() -> Offer:
    from hopbench.flows.settings.options import RUNNERS

    return Offer(["", *RUNNERS], "here", {"dask=HOST:PORT": r"^dask=.+:[0-9]+$"})


def _sweep_files() -> Offer:
    """The shipped sweep files but those that tuned the presets, which write into the package."""
    from importlib.resources import files

    shipped = sorted(file.name for file in files("hopbench.flows.sweeps").iterdir() if file.name.endswith(".yaml"))
    names = [name.removesuffix(".yaml") for name in shipped if not name.startswith("tune_")]
    return Offer(names, "shipped", {"a file where the flow runs": r"^.+\.ya?ml$"})


def _any(names: Sequence[str]) -> str:
    return "|".join(map(re.escape, names))


OFFERS: Mapping[str, Callable[[], Offer]] = {
    "datasets": _datasets,
    "stores": _stores,
    "methods": _methods,
    "extractors": _extractors,
    "embedders": _embedders,
    "labels": _labels,
    "changes": _changes,
    "metrics": _metrics,
    "judge_metrics": _judge_metrics,
    "judge_profiles": _judge_profiles,
    "efforts": _efforts,
    "judge_on": _judge_on,
    "runners": _runners,
    "sweep_files": _sweep_files,
}
"""The name under which a `Setting` asks for them → the values."""


@dataclass(frozen=True)
class Described:
    """A flow's parameter with the sentence that Prefect's form and `help()` show."""

    parameter: Parameter
    about: str

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self.parameter.name


@dataclass(frozen=True)
class Offered:
    """Puts the offered values into the JSON Schema of a text, or of a list's items."""

    values: str

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Pydantic's hook."""
        schema, offer = handler(core), OFFERS[self.values]().schema()
        if schema.get("type") == "array":
            return {**schema, "items": offer}
        return {**{key: value for key, value in schema.items() if key != "type"}, **offer}


def parameters_of(*groups: type[Any], without: Iterable[str] = (), **defaults: Any) -> list[Described]:
    """The settings of these dataclasses as parameters; `defaults` are the flow's own, where they differ."""
    left_out = set(without)
    settings = [one for group in groups for one in declared(group) if one.setting.page and one.name not in left_out]
    return [_parameter(one, defaults.get(one.name, one.default)) for one in settings]


def fields_of(model: type[BaseModel], offers: Mapping[str, str], **defaults: Any) -> list[Described]:
    """The fields of a pydantic model as parameters, with its bounds and descriptions.

    `offers` names lists of values by field. A field among `defaults` may be left out, so its bounds are left to the
    model.
    """
    result = []
    for name, field in model.model_fields.items():
        about = [*(() if name in defaults else field.metadata)]
        about += [Offered(offers[name])] if name in offers else []
        kind: Any = Annotated[(field.annotation, *about)] if about else field.annotation
        usual = Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
        result.append(Described(_keyword(name, defaults.get(name, usual), kind), field.description or ""))
    return result


def own(name: str, kind: Any, default: Any, about: str) -> Described:
    """A parameter that only one flow has."""
    return Described(_keyword(name, default, kind), about)


def docstring(first: str, parameters: Sequence[Described]) -> str:
    """A docstring in Google's style, where Prefect finds the descriptions of parameters."""
    lines = [f"    {one.name}: {' '.join(one.about.split())}" for one in parameters]
    return "\n".join([first, "", "Args:", *lines])


def as_flags(values: Mapping[str, Any], *groups: type[Any]) -> dict[str, Any]:
    """A flow's arguments as the command line's flags give them: lists as text with commas, and what no flow has."""
    result = {}
    for one in (one for group in groups for one in declared(group)):
        value = values.get(one.name, one.default)
        result[one.name] = ",".join(value) if one.setting.commas and not isinstance(value, str) else value
    return result


def from_flags(values: Mapping[str, Any], parameters: Sequence[Described]) -> dict[str, Any]:
    """The arguments of a flow that differ from its defaults, from the command line's flags, as plain values."""
    result = {}
    for one in parameters:
        if one.name not in values:
            continue
        value = _plain(values[one.name], one.parameter)
        if value != one.parameter.default:
            result[one.name] = value
    return result


def _plain(value: Any, parameter: Parameter) -> Any:
    if isinstance(parameter.default, list) or _is_list(parameter.annotation):
        return list(_as_list(value or ()))
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)


def _as_list(given: Any) -> Any:
    return list(split_labels(given)) if isinstance(given, str) else given


def _parameter(one: Declared, default: Any) -> Described:
    setting = one.setting
    kind: Any = one.kind
    if setting.commas:
        kind, default = Annotated[list[str], BeforeValidator(_as_list)], _as_list(default)
    elif _is_list(kind):
        kind, default = list[str], [] if default is None else default
    default = Parameter.empty if required(default) else default
    return Described(_keyword(one.name, default, _bounded(kind, setting)), f"{setting.help}{_limits(setting)}")


def _limits(setting: Setting) -> str:
    """The limits in words, where the help does not say them: the form only says that a value is not valid."""
    if setting.above is not None:
        return f" Above {setting.above:g}."
    if setting.low is None or f"{setting.low:g}.." in setting.help:
        return ""
    return f" At least {setting.low:g}{'' if setting.high is None else f', at most {setting.high:g}'}."


def _bounded(kind: Any, setting: Setting) -> Any:
    """The type with its limits and offered values; the limits are those of a number that may be left out, too."""
    limits = {"ge": setting.low, "le": setting.high, "gt": setting.above}
    given: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
    bare, optional = _without_none(kind)
    if given:
        bare = Annotated[bare, Field(**given)]
    if setting.values:
        bare = Annotated[bare, Offered(setting.values)]
    return bare | None if optional else bare


def _without_none(kind: Any) -> tuple[Any, bool]:
    if get_origin(kind) is UnionType or (get_args(kind) and NoneType in get_args(kind)):
        left = [one for one in get_args(kind) if one is not NoneType]
        if len(left) == 1:
            return left[0], True
    return kind, False


def _is_list(kind: Any) -> bool:
    bare, _ = _without_none(kind)
    bare = get_args(bare)[0] if get_origin(bare) is Annotated else bare
    return get_origin(bare) is list


def _keyword(name: str, default: Any, kind: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
