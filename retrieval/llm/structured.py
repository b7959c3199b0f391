"""JSON schemas as endpoints take them: closed objects, bounded texts where the endpoint knows such bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

# OpenAI's strict mode refuses these; llama.cpp, vLLM and Ollama keep to them, and small models need them to end.
_REFUSED_BY_OPENAI = frozenset({"maxLength"})
_NAMES = "properties", "$defs"  # below these, keys are the schema's own names


def wire_schema(schema: Mapping[str, Any], base_url: str) -> dict[str, Any]:
    """The schema with `additionalProperties: false` at every object, without what the endpoint would refuse."""
    dropped = _REFUSED_BY_OPENAI if urlsplit(base_url).hostname == "api.openai.com" else frozenset()
    return dict(_wired(schema, dropped))


def _wired(schema: Any, dropped: frozenset[str]) -> Any:
    if isinstance(schema, list):
        return [_wired(one, dropped) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    inner = {}
    for name, value in schema.items():
        if name in _NAMES:
            inner[name] = {key: _wired(part, dropped) for key, part in value.items()}
        elif name not in dropped:
            inner[name] = _wired(value, dropped)
    return inner | {"additionalProperties": False} if schema.get("type") == "object" else inner
