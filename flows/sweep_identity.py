"""Which sweep an --out folder belongs to: another one, or the same with changed settings, is refused there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.files import write_atomically
from retrieval.errors import InputError

FILE = "sweep.json"


@dataclass(frozen=True)
class Identity:
    """All that decides a sweep's outcome, by name; `sweep.json` in its --out folder holds it."""

    file: Path

    def hold(self, settings: Mapping[str, Any]) -> str:
        """Add settings; returns the sweep's id. Raises InputError where one is there with another value."""
        known = json.loads(self.file.read_text(encoding="utf-8")) if self.file.is_file() else {}
        wanted = json.loads(json.dumps(settings))
        changed = {name: (known[name], value) for name, value in wanted.items() if known.get(name, value) != value}
        if changed:
            told = "; ".join(f"{name} was {_short(old)}, is {_short(new)}" for name, (old, new) in changed.items())
            raise InputError(
                f"{self.file.parent} holds a sweep with other settings, and trials of both must not be mixed: {told}. "
                "Name another --out (equal trials are still reused), or delete that folder"
            )
        write_atomically(self.file, json.dumps({**known, **wanted}, indent=1, ensure_ascii=False).encode())
        return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
