"""A user's YAML file, or an error that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrieval.errors import InputError


def read_yaml(file: Path, named: str = "") -> Any:
    """What the file says; `named` is how messages call it. Raises InputError where it cannot be read as YAML."""
    import yaml  # naming a model loads none

    class Loader(yaml.SafeLoader):
        """Refuses a key that stands twice in a mapping: YAML itself would forget the first."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen = list[Any]()
            for key, _ in node.value:
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    told = f"{key.value!r} stands twice: keep one"
                    raise yaml.MarkedYAMLError(problem=told, problem_mark=key.start_mark)
                seen.append(key.value)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(file.read_text(encoding="utf-8"), Loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{named or file} cannot be read as YAML: {reason}") from error
