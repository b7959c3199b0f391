"""Say what a folder is for: the role in the front matter of its README.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from hopbench.eval.benchmarks.card import card_role, read_card
from hopbench.eval.files import write_atomically
from hopbench.eval.types import Role
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.input_files import read_bytes

SETTABLE = tuple(role for role in get_args(Role) if role != "user")
CARD_LIMIT = 16 * 1024 * 1024  # bytes; a README may be a document too
ALSO = {"tuning": "tune", "reporting": "report"}
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_STATED = re.compile(r"^hopbench:.*\n(?:[ \t]+.*\n|\n)*", re.MULTILINE)


def set_role(folder: Path, role: str) -> Path:
    """Write the role into the card of a data set's folder, beside what it says already; returns the card.

    Raises
    ------
    UnknownNameError
        For another role than tune or report.
    InputError
        When the folder has a card that cannot be read, or cannot be written.
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
    front = _FRONT.match(text.replace("\r\n", "\n"))
    if front:
        text = text.replace("\r\n", "\n")
        text = f"---\n{_STATED.sub('', front[1])}{stated}---{text[front.end() :]}"
    else:
        text = f"---\n{stated}---\n{text}"
    write_atomically(path, text.encode())
    if card_role(folder) != role:
        raise InputError(f"{path}: the role could not be written into its front matter: add the lines {stated!r} there")
    return path
