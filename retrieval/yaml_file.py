"""A user's YAML file, or an error that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrieval.errors import InputError


def read_yaml(file: Path, named: str = "") -> Any:
    """What the file says; `named` is how messages call it. Raises InputError where it cannot be read as YAML."""
    import yaml  # naming a model loads none

    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{named or file} cannot be read as YAML: {reason}") from error
