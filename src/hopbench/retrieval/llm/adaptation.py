"""What an endpoint takes of a request: a parameter that it refuses by name is replaced or left out from then on.

Known by endpoint and model for the life of the process. No list of models: new ones come, and a deployment has a name
of its owner's. A refused `json_schema` falls back to `json_object`, then to the prompt alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

from hopbench.retrieval.llm.faults import LLMError
from hopbench.retrieval.llm.replies import LIMIT_FLAG, LIMITS, schema_of

FORMS = ("json_schema", "json_object", "the prompt")
"""Ways to ask for JSON, the strictest first; all but the first show the schema in the prompt."""

SCHEMA_PROMPT = "Answer with one JSON object of this JSON schema, and nothing else:\n"
_FIXED = frozenset({"model", "messages"})
_FORMAT = re.compile(
    r"response.?format|json.?(schema|object|mode)|structured.?output|guided|grammar|output.?format|\bschema\b",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"unsupported|(\bno|\bnot|n't)\b.{0,40}\bsupport|unavailable|not (available|allowed|permitted|implemented|recogni)|"
    r"unknown|unrecogni|unexpected|deprecated|extra (input|field)|instead|invalid.*(parameter|argument|field)",
    re.IGNORECASE,
)
SYSTEM, MERGED = "the system role", "its text begins the user's message"
_SYSTEM_REFUSED = re.compile(r"\bsystem\b.{0,20}\b(role|message|prompt)|\brole\b.{0,30}\bsystem\b", re.IGNORECASE)
_SIZE = re.compile(
    r"too (large|big|high|long|many)|at most|maximum|exceed|context|less than|limit was reached", re.IGNORECASE
)


class Adapted(TypedDict, total=False):
    """What an endpoint refuses of requests, in words; empty where it refuses nothing."""

    adapted: str


@dataclass(frozen=True)
class Adaptation:
    """How requests are sent to an endpoint: `form` counts into `FORMS`, `instead` has for each refused parameter the
    one that takes its place, if any. `proven`: a structured reply was usable.
    """

    form: int = 0
    instead: Mapping[str, str | None] = field(default_factory=dict)
    proven: bool = False

    def applied(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The request as it is sent."""
        sent = dict(request)
        for name, other in self.instead.items():
            if name in sent:
                value = sent.pop(name)
                sent |= {other: value} if other else {}
        if SYSTEM in self.instead:  # the system's text goes to the beginning of the first of the other messages
            system = [one["content"] for one in sent["messages"] if one["role"] == "system"]
            first, *others = [one for one in sent["messages"] if one["role"] != "system"]
            sent["messages"] = [{**first, "content": "\n\n".join([*system, first["content"]])}, *others]
        schema = schema_of(request)
        if schema is None or not self.form:
            return sent
        *earlier, last = sent["messages"]
        shown = f"{last['content']}\n\n{SCHEMA_PROMPT}{json.dumps(schema, ensure_ascii=False)}"
        sent["messages"] = [*earlier, {**last, "content": shown}]
        del sent["response_format"]
        return sent | ({"response_format": {"type": "json_object"}} if self.form == 1 else {})

    def after(self, fault: LLMError, request: Mapping[str, Any]) -> Adaptation | None:
        """What to try after a refusal of a request; None where it refuses no parameter."""
        sent = self.applied(request)
        names = _refused(fault, sent)
        if not (names or self.proven or fault.named or _SIZE.search(str(fault))) and fault.status in (400, 422):
            names = ["response_format"]  # the endpoint names nothing: the likeliest
        changed = self
        for name in names:
            if name == "response_format":
                changed = changed.with_next_form(request) or changed
            else:
                instead: dict[str, str | None] = {name: None}
                if name in LIMITS:  # by its other name, unless that is refused too
                    other = LIMITS[1 - LIMITS.index(name)]
                    instead = {other: None} if self.instead.get(other) == name else {name: other}
                changed = replace(changed, instead={**changed.instead, **instead})
        return None if changed == self else changed

    def with_next_form(self, request: Mapping[str, Any]) -> Adaptation | None:
        """The next way to ask for JSON, if there is one."""
        if schema_of(request) is None or self.form + 1 == len(FORMS):
            return None
        return replace(self, form=self.form + 1)

    def merged(self, other: Adaptation) -> Adaptation:
        """What both know."""
        return Adaptation(max(self.form, other.form), {**self.instead, **other.instead}, self.proven or other.proven)

    @property
    def description(self) -> str:
        """The changes in words; empty where requests are sent as they are."""
        parts = []
        for name, other in self.instead.items():
            replaced = f"{other} in its place" if other else "left out"
            parts.append(f"{name} ({MERGED if name == SYSTEM else replaced})")
        if self.form:
            forms = ("json_object and the schema in the prompt", "the schema in the prompt")
            parts.append(f"json_schema ({forms[self.form - 1]} in its place)")
        return f"refuses or ignores {', '.join(parts)}" if parts else ""


def _refused(fault: LLMError, sent: Mapping[str, Any]) -> list[str]:
    """The parameters of a request that a fault refuses: named as such, or in its message."""
    if fault.status is None or (fault.status not in (400, 422) and not _UNSUPPORTED.search(str(fault))):
        return []
    if fault.kind not in ("bad request", "server error", "refused") or fault.status in (401, 403):
        return []
    message = str(fault)
    roles = {one["role"] for one in sent["messages"]}
    if "system" in roles and len(roles) > 1 and _SYSTEM_REFUSED.search(message):
        return [SYSTEM]
    known = [name for name in sent if name not in _FIXED]
    names = [name for name in known if any(one == name or one.startswith(f"{name}.") for one in fault.named)]
    names = names or [name for name in known if _mentions(message, name)]
    too_large = _SIZE.search(message) and not _UNSUPPORTED.search(message)
    return [name for name in names if not (name in LIMITS and too_large)]


def with_remedy(fault: LLMError) -> LLMError:
    """The fault; where it is about the size of the limit of completion tokens, with the flag that sets that."""
    message = str(fault)
    if _SIZE.search(message) and any(_mentions(message, name) for name in LIMITS):
        fault.args = (f"{message}; {LIMIT_FLAG} sets that limit",)
    return fault


def _mentions(message: str, name: str) -> bool:
    if name == "response_format":
        return _FORMAT.search(message) is not None
    return re.search(rf"(?<![\w]){name.replace('_', '[_ .-]')}(?!\w)", message, re.IGNORECASE) is not None


_KNOWN: dict[tuple[str, str], Adaptation] = {}


def known(url: str, model: str) -> Adaptation | None:
    """What this process knows of a model at an address; None before its first answer."""
    return _KNOWN.get((url, model))


def remember(url: str, model: str, found: Adaptation) -> str:
    """Add to what is known; the new description where that has changed, else empty."""
    before = _KNOWN.get((url, model), Adaptation())
    _KNOWN[url, model] = after = before.merged(found)
    return "" if after.description == before.description else after.description
