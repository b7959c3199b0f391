"""One line of `hopbench doctor`."""

from __future__ import annotations

from typing import Literal, NamedTuple

Status = Literal["ok", "warn", "fail", "off"]


class Check(NamedTuple):
    """One line: `off` is optional and not set up; `fail` is required and stops a run."""

    status: Status
    part: str
    finding: str
    remedy: str = ""
