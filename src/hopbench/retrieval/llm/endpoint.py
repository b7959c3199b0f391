"""Endpoints of language models: address and key (`MODEL` or `MODEL@URL`), whether one answers, schemas, and prices.

Prices change, so the table has a date; a model that is not in it has no price, not price 0. HOPBENCH_PRICES names a
YAML file with the user's own prices, which come first, in US dollars for a million tokens:
    MODEL: {input: 0.4, cached: 0.1, output: 1.6}
Without `cached` a cached token costs what a fresh one does.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import read_yaml

DEFAULT_URL = "https://api.openai.com/v1"
_SPEC = re.compile(r"(?P<model>\S+?)(?:@(?P<url>https?://\S+))?")
# "@cf/llama" is a model's name; these are addresses that lack their beginning, or a name.
_BARE = re.compile(r"@(https?:|[^\s/]*:[^\s/]*@|localhost\b|[\w.\[\]-]+:\d+\b|\S+/v\d+/?$)")
_KEYS = {"llm": ("OPENAI_API_KEY",), "judge": ("JUDGE_API_KEY", "OPENAI_API_KEY")}
_WORD = re.compile(r"[a-z]+")
CONNECT_SECONDS = 3.0
Role = Literal["llm", "judge"]


class Asked(TypedDict, total=False):
    """How a model is asked, where a user says so."""

    reasoning_effort: str
    completion_tokens: int


def asked_of(record: Mapping[str, Any]) -> Asked:
    """How a model was asked, from a record or settings of it; what is not set there is left out."""
    asked: Asked = {}
    if (effort := record.get("reasoning_effort")) is not None:
        asked["reasoning_effort"] = effort
    if (tokens := record.get("completion_tokens")) is not None:
        asked["completion_tokens"] = tokens
    return asked


@dataclass(frozen=True)
class Endpoint:
    """A model behind an OpenAI-compatible address. The key never shows in `repr` and is no part of `name`.

    `reasoning_effort` is sent with every call where it is set; `completion_tokens` then replaces each call's own limit.
    """

    model: str
    base_url: str = DEFAULT_URL
    api_key: str = field(default="", repr=False)
    reasoning_effort: str | None = None
    completion_tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse an address that carries credentials (it is logged and kept, a key is not), and unusable settings."""
        if self.reasoning_effort is not None and not _WORD.fullmatch(self.reasoning_effort):
            raise InputError(
                f"--reasoning-effort {self.reasoning_effort!r}: a word such as none, low, medium or high is wanted"
            )
        if self.completion_tokens is not None and self.completion_tokens < 1:
            raise InputError(f"--completion-tokens {self.completion_tokens}: a reply needs at least 1")
        try:
            address = urlsplit(self.base_url)
            _ = address.port
        except ValueError as error:
            raise InputError(
                f"the address of {self.model!r} is none: {self.base_url!r}: {error}: correct it"
            ) from error
        if address.scheme not in ("http", "https") or not address.hostname:
            raise InputError(
                f"the address of {self.model!r} must be http(s)://HOST/v1, as in http://localhost:8000/v1: "
                f"check OPENAI_BASE_URL or what follows '@'"
            )
        if "@" in address.netloc or address.query:
            raise InputError(
                f"the address of {self.model!r} at {address.hostname} carries credentials or a query: put the key into "
                "OPENAI_API_KEY (the judge's into JUDGE_API_KEY)"
            )
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))

    @property
    def name(self) -> str:
        """`MODEL@URL`: its name in results, caches and reports."""
        return f"{self.model}@{self.base_url}"

    @property
    def asked(self) -> Asked:
        """What is set of effort and budget: part of whatever identifies the model's replies."""
        return asked_of(vars(self))

    @property
    def identity(self) -> str:
        """`name` with effort and budget where they are set."""
        return " ".join([self.name, *(f"{name} {value}" for name, value in self.asked.items())])

    @classmethod
    def parse(
        cls, text: str, role: Role = "llm", environment: Mapping[str, str] | None = None, **asked: Unpack[Asked]
    ) -> Endpoint:
        """The endpoint that `--llm` or `--judge` names: `MODEL` (at OPENAI_BASE_URL, else OpenAI's own) or `MODEL@URL`.

        The key is OPENAI_API_KEY's, for the judge JUDGE_API_KEY's if that is set. Raises InputError for a text that
        is neither, and where OpenAI's own endpoint has no key.
        """
        known = os.environ if environment is None else environment
        match = _SPEC.fullmatch(text.strip())
        if match is None:
            raise InputError(
                f"--{role} {text!r}: MODEL or MODEL@URL is wanted, as in qwen3:8b@http://localhost:11434/v1"
            )
        if match["url"] is None and _BARE.search(match["model"]):  # not repeated: it may carry a key
            raise InputError(
                f"--{role}: what follows '@' is no address: MODEL@URL with http:// or https:// is wanted, as in "
                "qwen3:8b@http://localhost:11434/v1"
            )
        url = match["url"] or known.get("OPENAI_BASE_URL") or DEFAULT_URL
        key = next((known[name] for name in _KEYS[role] if known.get(name)), "")
        endpoint = cls(match["model"], url, key, **asked)
        if not key and urlsplit(endpoint.base_url).hostname == "api.openai.com":
            raise InputError(
                f"--{role} {endpoint.model}: {endpoint.base_url} needs a key: set {' or '.join(_KEYS[role])}, or name "
                f"another endpoint with --{role} MODEL@URL or OPENAI_BASE_URL"
            )
        return endpoint


def refusal(url: str) -> str | None:
    """Why no connection to an http(s) address can be made; None where one was made, or where that is not known.

    A closed port is known in milliseconds, so callers ask before work begins.

    An address that does not answer in `CONNECT_SECONDS`, or is reached through a proxy, is left to the first request.
    """
    address = urlsplit(url)
    host, port = address.hostname or "", address.port or (443 if address.scheme == "https" else 80)
    if address.scheme in getproxies() and not proxy_bypass(host):
        return None
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except TimeoutError:
        return None
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that cannot be one
        return getattr(error, "strerror", None) or str(error)
    return None


PRICES_FILE = "HOPBENCH_PRICES"
_EXAMPLE = "MODEL: {input: 0.4, cached: 0.1, output: 1.6}, in US dollars for a million tokens"
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens: of the prompt, of a prompt's part the endpoint had cached, of the completion."""

    fresh: float
    cached: float
    completion: float

    def of(self, tokens_in: int, tokens_cached: int, tokens_out: int) -> float:
        """Dollars for a call: Price(2.5, 1.25, 10).of(1000, 200, 100) = (800·2.5 + 200·1.25 + 100·10)/1e6 = .00325."""
        fresh = tokens_in - tokens_cached
        return (fresh * self.fresh + tokens_cached * self.cached + tokens_out * self.completion) / 1e6


# https://platform.openai.com/docs/pricing, standard tier, September 2025
PRICES = {
    "gpt-5": Price(1.25, 0.125, 10.0),
    "gpt-5-mini": Price(0.25, 0.025, 2.0),
    "gpt-5-nano": Price(0.05, 0.005, 0.4),
    "gpt-4.1": Price(2.0, 0.5, 8.0),
    "gpt-4.1-mini": Price(0.4, 0.1, 1.6),
    "gpt-4.1-nano": Price(0.1, 0.025, 0.4),
    "gpt-4o": Price(2.5, 1.25, 10.0),
    "gpt-4o-2024-05-13": Price(5.0, 5.0, 15.0),
    "gpt-4o-mini": Price(0.15, 0.075, 0.6),
    "o3": Price(2.0, 0.5, 8.0),
    "o3-mini": Price(1.1, 0.55, 4.4),
    "o4-mini": Price(1.1, 0.275, 4.4),
}


def price_of(model: str) -> Price | None:
    """The price of a model by its name, with or without the date of its snapshot; None where it is not known.

    Raises InputError for a price file that cannot be used.
    """
    file = os.environ.get(PRICES_FILE)
    known = {**PRICES, **(_own_prices(Path(file)) if file else {})}
    return known.get(model) or known.get(_DATED.sub("", model))


@cache
def _own_prices(file: Path) -> Mapping[str, Price]:
    content = read_yaml(file, f"{PRICES_FILE}: {file}")
    if not isinstance(content, dict):
        raise InputError(f"{PRICES_FILE}: {file}: models with their prices are wanted: {_EXAMPLE}")
    prices = {}
    for model, fields in content.items():
        where = f"{PRICES_FILE}: {file}: {model}"
        if not isinstance(fields, dict) or not {"input", "output"} <= set(fields) <= {"input", "cached", "output"}:
            raise InputError(f"{where}: {fields!r} is no price; wanted is {_EXAMPLE}")
        for name, value in fields.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
                raise InputError(f"{where}.{name}: {value!r} is no price; dollars from 0 to 1,000,000 are wanted")
        cached = fields["cached" if "cached" in fields else "input"]
        prices[str(model)] = Price(float(fields["input"]), float(cached), float(fields["output"]))
    return prices


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
