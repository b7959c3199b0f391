"""Which sweep an --out folder belongs to: another one, or the same with changed settings, is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hopbench.eval.files import write_atomically
from hopbench.retrieval.support.errors import InputError


@dataclass(frozen=True)
class Identity:
    """All that decides a sweep's outcome, by name; `sweep.json` in its --out folder holds it."""

    file: Path

    def hold(self, settings: Mapping[str, Any]) -> str:
        """Add settings; returns the sweep's id. Raises InputError where one is there with another value."""
        known = self._known()
        wanted = json.loads(json.dumps(settings))
        changed = [line for name, value in wanted.items() for line in _changes(name, known.get(name, value), value)]
        if changed:
            differences = "; ".join(changed)
            raise InputError(
                f"{self.file.parent} holds a sweep with other settings, and trials of both must not be mixed: "
                f"{differences}. Name another --out (equal trials are still reused), or delete that folder"
            )
        write_atomically(self.file, json.dumps({**known, **wanted}, indent=1, ensure_ascii=False).encode())
        return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]

    def _known(self) -> dict[str, Any]:
        if not self.file.exists():
            return {}
        try:
            known: dict[str, Any] = dict(json.loads(self.file.read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            remedy = "remove it, and the same command goes on with the trials that the ledger keeps"
            raise InputError(f"{self.file} is damaged ({reason}): {remedy}") from error
        return known


def _changes(name: str, old: Any, new: Any) -> list[str]:
    """What differs, down to the setting by itself."""
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        names = [*old, *(key for key in new if key not in old)]
        return [line for key in names for line in _changes(f"{name}.{key}", old.get(key), new.get(key))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and isinstance(old[0], dict):
        pairs = zip(old, new, strict=True)
        return [line for place, pair in enumerate(pairs) for line in _changes(f"{name}.{place}", *pair)]
    return [f"{name} was {_short(old)}, is {_short(new)}"]


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
