"""The sentences and wordings of `templates.yaml`, which describes their slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

_LOADED: Mapping[str, Any] = yaml.load(
    Path(__file__).with_suffix(".yaml").read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
)

Texts = Sequence[str]

ROLES: Mapping[str, Texts] = _LOADED["roles"]
GENRES: Texts = _LOADED["genres"]
THEMES: Texts = _LOADED["themes"]
OPENINGS: Mapping[str, Mapping[str, Texts]] = _LOADED["openings"]
FILLERS: Mapping[str, Texts] = _LOADED["fillers"]
ECHOES: Texts = _LOADED["echoes"]
SUBJECT_SENTENCES: Mapping[str, Texts] = _LOADED["subject_sentences"]
OBJECT_SENTENCES: Mapping[str, Texts] = _LOADED["object_sentences"]

RELATION_LABELS: Mapping[str, str] = _LOADED["relation_labels"]
HOPS: Mapping[str, Texts] = _LOADED["hops"]
INVERSE_HOPS: Mapping[str, Texts] = _LOADED["inverse_hops"]
QUESTIONS: Mapping[str, Texts] = _LOADED["questions"]
INVERSE_QUESTIONS: Mapping[str, Texts] = _LOADED["inverse_questions"]
COMPARISONS: Mapping[str, Mapping[str, Texts]] = _LOADED["comparisons"]
"""By kind and relation ("film released"): wordings that ask for the `smaller` value, and for the `larger` one."""
BRIDGE_COMPARISONS: Mapping[str, Mapping[str, Texts]] = _LOADED["bridge_comparisons"]
"""By kind, first hop and relation compared ("film director birth")."""
