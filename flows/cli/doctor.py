"""`hopbench doctor`: what is installed, reachable and writable, with the remedy where something is not."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from rich.text import Text

from hopbench.flows.cli.output import console, print_json, table
from hopbench.flows.cli.panels import OUTPUT, option

Status = Literal["ok", "warn", "fail", "off"]

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red", "off": "dim"}


class Check(NamedTuple):
    """One line: `off` is optional and not set up; `fail` is required and stops a run."""

    status: Status
    part: str
    finding: str
    remedy: str = ""


def doctor_command(
    as_json: Annotated[bool, option(OUTPUT, "--json", help="Print JSON for machines.")] = False,
    repair: Annotated[
        bool, option(OUTPUT, "--repair", help="Heal damaged files of HOPBENCH_HOME; what reads is kept.")
    ] = False,
) -> None:
    """Check what is installed, reachable, writable and sound; exit code 2 where something required fails."""
    from hopbench.flows.cli.doctor_checks import every_check
    from hopbench.flows.home import Home
    from hopbench.retrieval.errors import InputError

    home = Home.resolve()
    home.apply_environment()
    checks = every_check(home, repair)
    if as_json:
        print_json([check._asdict() for check in checks])
    else:
        rows = table("", "part", "finding", "remedy")
        for check in checks:
            rows.add_row(Text(check.status, STYLES[check.status]), *map(Text, check[1:]))
        console().print(rows)
    if failed := [check.part for check in checks if check.status == "fail"]:
        raise InputError(f"required and not there: {', '.join(failed)}. The remedies stand beside them")
