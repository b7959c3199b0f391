"""Read a data set's card, the YAML front matter of its README.md, and write the role that it states."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast, get_args

from hopbench.eval.benchmarks.files import read_lines
from hopbench.eval.files import write_atomically
from hopbench.eval.types import Role
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.input_files import YamlError, parse_yaml, read_bytes

# "hotpotqa-train200" and "hopworld-tune" are for tuning; "fortune" and "constraints" are not.
_TUNING_NAME = re.compile(r"(?<![a-z])(train|training|tune|tuning)(?![a-z])", re.IGNORECASE)


def read_card(folder: Path) -> dict[str, Any]:
    """Read the front matter of `folder/README.md` (between two `---` lines); empty when there is none.

    Raises InputError when the front matter is not YAML with named fields.
    """
    path = folder / "README.md"
    if not path.is_file():
        return {}
    lines = [text for _, text in read_lines(path, blank=True)]
    rules = [number for number, line in enumerate(lines) if line.strip() == "---"]
    if len(rules) < 2 or rules[0] != 0:
        return {}
    try:
        card = parse_yaml("\n".join(lines[1 : rules[1]]), str(path))
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


def role_of(name: str, *, has_gold: bool, folder: Path | None = None) -> Role:
    """Decide what a benchmark may be used for.

    The word of the folder's card counts first (`hopbench: {role: tune}` or `report`). Else: questions without gold can
    neither tune nor report (`user`); a name with the word `train` or `tune` in it is for tuning; the rest is for
    reporting.
    """
    stated = read_card(folder).get("hopbench") if folder else None
    if stated is not None:
        role = stated.get("role") if isinstance(stated, dict) else stated
        if role not in get_args(Role):
            raise InputError(
                f"{folder}/README.md: field 'hopbench.role' is {role!r}, must be one of {', '.join(get_args(Role))}"
            )
        return cast(Role, role)
    if not has_gold:
        return "user"
    return "tune" if _TUNING_NAME.search(name) else "report"


SETTABLE = tuple(role for role in get_args(Role) if role != "user")
CARD_LIMIT = 16 * 1024 * 1024  # bytes; a README may be a document too
ALSO = {"tuning": "tune", "reporting": "report"}
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_STATED = re.compile(r"^hopbench:.*\n(?:[ \t]+.*\n|\n)*", re.MULTILINE)


def set_role(folder: Path, role: str) -> Path:
    """Write the role into the card of a data set's folder, keeping its other fields; return the card's path.

    Raises UnknownNameError for another role than tune or report, and InputError when the folder has a card that cannot
    be read, or cannot be written.
    """
    role = ALSO.get(role, role)
    if role not in SETTABLE:
        raise UnknownNameError("role", role, SETTABLE)
    path = folder / "README.md"
    stated = f"hopbench:\n  role: {role}\n"
    if path.is_symlink():
        raise InputError(f"{path}: is a link, and what it leads to is not changed: put a file there")
    try:
        text = read_bytes(path, CARD_LIMIT).decode("utf-8-sig") if path.exists() else ""
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 at byte {error.start:,}: save it as UTF-8") from error
    card = read_card(folder)
    if not isinstance(card.get("hopbench", {}), dict) or set(card.get("hopbench", {})) - {"role"}:
        raise InputError(f"{path}: field 'hopbench' says more than a role: change `role` there by hand")
    plain = text.replace("\r\n", "\n")
    if front := _FRONT.match(plain):
        text = f"---\n{_STATED.sub('', front[1])}{stated}---{plain[front.end() :]}"
    else:
        text = f"---\n{stated}---\n{text}"
    write_atomically(path, text.encode())
    if role_of("", has_gold=False, folder=folder) != role:
        raise InputError(f"{path}: the role could not be written into its front matter: add the lines {stated!r} there")
    return path
