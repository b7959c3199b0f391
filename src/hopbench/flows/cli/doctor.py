"""`hopbench doctor`: what is installed, reachable and writable, with the remedy where something is not."""

from __future__ import annotations

from typing import Annotated

from rich.text import Text

from hopbench.flows.cli.flags import Json, option
from hopbench.flows.cli.output import Grid, console, print_json
from hopbench.flows.settings.setting import OUTPUT

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red", "off": "dim"}


def doctor_command(
    as_json: Json = False,
    repair: Annotated[
        bool, option(OUTPUT, "--repair", help="Repair the ledger, replies, judgements and graphs of HOPBENCH_HOME.")
    ] = False,
) -> None:
    """Check what is installed, reachable, writable and sound; exit code 2 where something required fails."""
    from hopbench.flows.cli._doctor_checks import every_check
    from hopbench.flows.settings.home import Home
    from hopbench.retrieval.support.errors import InputError

    home = Home.resolve()
    home.apply_environment()
    checks = every_check(home, repair)
    if as_json:
        print_json([check._asdict() for check in checks])
    else:
        rows = Grid("", "part", "finding", "remedy")
        for check in checks:
            rows.add_row(Text(check.status, STYLES[check.status]), *map(Text, check[1:]))
        console().print(rows)
    if failed := [check.part for check in checks if check.status == "fail"]:
        raise InputError(f"required and not there: {', '.join(failed)}. The remedies stand beside them")
