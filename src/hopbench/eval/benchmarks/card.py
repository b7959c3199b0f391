"""A benchmark's dataset card: the YAML front matter of its README.md, and the role that follows from it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

from hopbench.eval.benchmarks.files import read_lines
from hopbench.eval.types import Role
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.yaml_file import YamlError, parse_yaml

# "hotpotqa-train200" and "hopworld-tune" are for tuning; "fortune" and "constraints" are not.
_TUNING_NAME = re.compile(r"(?<![a-z])(train|training|tune|tuning)(?![a-z])", re.IGNORECASE)


def read_card(folder: Path) -> dict[str, Any]:
    """The front matter of `folder/README.md` (between two `---` lines); empty when there is none.

    Raises
    ------
    InputError
        When the front matter is not YAML with named fields.
    """
    path = folder / "README.md"
    if not path.is_file():
        return {}
    lines = [text for _, text in read_lines(path, blank=True)]
    if not lines or lines[0].strip() != "---" or "---" not in (line.strip() for line in lines[1:]):
        return {}
    end = next(number for number, line in enumerate(lines[1:], start=1) if line.strip() == "---")
    try:
        card = parse_yaml("\n".join(lines[1:end]), str(path))
    except YamlError as error:
        raise InputError(f"{path}, line {error.line + 1}: the front matter is not YAML ({error.problem})") from error
    if card is not None and not isinstance(card, dict):
        raise InputError(f"{path}, line 2: the front matter must hold named fields, such as 'hopbench: {{role: tune}}'")
    return card or {}


def has_card(folder: Path) -> bool:
    """Whether the front matter of `folder/README.md` has a field `hopbench`; a document's own may be anything."""
    try:
        return "hopbench" in read_card(folder)
    except InputError:
        return False


def card_role(folder: Path) -> Role | None:
    """The role that the card states as `hopbench: {role: tune}` or `report`; None when it states none."""
    stated = read_card(folder).get("hopbench")
    if stated is None:
        return None
    role = stated.get("role") if isinstance(stated, dict) else stated
    for known in get_args(Role):
        if role == known:
            return known  # type: ignore[no-any-return] # get_args is untyped
    raise InputError(
        f"{folder / 'README.md'}: field 'hopbench.role' is {role!r}, must be one of {', '.join(get_args(Role))}"
    )


def role_of(name: str, *, has_gold: bool, folder: Path | None = None) -> Role:
    """What a benchmark may be used for.

    The card's word counts first. Else: questions without gold can neither tune nor report (`user`); a name with the
    word `train` or `tune` in it is for tuning; the rest is for reporting.
    """
    stated = card_role(folder) if folder else None
    if stated:
        return stated
    if not has_gold:
        return "user"
    return "tune" if _TUNING_NAME.search(name) else "report"
