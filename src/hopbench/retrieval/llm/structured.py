"""JSON schemas as endpoints take them: closed objects, bounded texts where the endpoint knows such bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

# OpenAI's strict mode refuses these; llama.cpp, vLLM and Ollama keep to them, and small models need them to end.
_REFUSED_BY_OPENAI = frozenset({"maxLength"})
_NAMES = "properties", "$defs"  # below these, keys are the schema's own names


def wire_schema(
    schema: Mapping[str, Any], base_url: str, items: int | None = None, chars: int | None = None
) -> dict[str, Any]:
    """The schema with `additionalProperties: false` at every object, without keywords that the endpoint refuses.

    `items` and `chars` bound the lists and texts for which the schema itself has no bound.
    """
    bounds: dict[str, dict[str, Any]] = {"object": {"additionalProperties": False}}
    if items is not None:
        bounds["array"] = {"maxItems": items}
    if chars is not None:
        bounds["string"] = {"maxLength": chars}
    dropped = _REFUSED_BY_OPENAI if urlsplit(base_url).hostname == "api.openai.com" else frozenset()
    return dict(_wired(schema, bounds, dropped))


def _wired(schema: Any, bounds: Mapping[str, Mapping[str, Any]], dropped: frozenset[str]) -> Any:
    if isinstance(schema, list):
        return [_wired(one, bounds, dropped) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    kind = schema.get("type")
    own = {} if "enum" in schema or not isinstance(kind, str) else bounds.get(kind, {})
    inner: dict[str, Any] = {}
    for name, value in {**own, **schema}.items():
        if name in _NAMES:
            inner[name] = {key: _wired(part, bounds, dropped) for key, part in value.items()}
        elif name not in dropped:
            inner[name] = _wired(value, bounds, dropped)
    return inner
