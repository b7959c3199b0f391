"""The scope of a call: whom the ledger charges, and which of several equal requests it is in the cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Scope:
    """One sample's calls for one purpose, with their totals (an answer from the cache counts like a fresh one).

    `version` is the prompt's; `repeat` numbers repetitions that must not share answers.
    """

    purpose: str = "other"
    sample: str = ""
    repeat: int = 0
    version: str = ""
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    _seen: Counter[str] = field(default_factory=Counter)

    def occurrence(self, request: str) -> int:
        """How often this scope has sent the same request before: 0, 1, …"""
        self._seen[request] += 1
        return self._seen[request] - 1

    def charge(self, tokens_in: int, tokens_out: int) -> None:
        """Count a call."""
        self.calls += 1
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out


_CURRENT: ContextVar[Scope | None] = ContextVar("hopbench_llm_scope", default=None)


@contextmanager
def calling(*, purpose: str, sample: str = "", repeat: int = 0, version: str = "") -> Iterator[Scope]:
    """Calls made inside (also by tasks started inside) belong to this purpose, sample, repeat and prompt version."""
    scope = Scope(purpose, sample, repeat, version)
    token = _CURRENT.set(scope)
    try:
        yield scope
    finally:
        _CURRENT.reset(token)


def current_scope() -> Scope:
    """The innermost `calling`; a scope of its own for a call outside any."""
    return _CURRENT.get() or Scope()
