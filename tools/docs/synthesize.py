"""Keeps the figures of docs/synthesize.md true: a table written from checks.

    hopbench synthesize --check DATASET --questions 400 --seeds 3 --out DATASET.json
    python -m tools.docs.synthesize docs/synthesize.md DATASET.json [MORE.json ...]

replaces the text between `<!-- figures of trust -->` and `<!-- /figures of trust -->`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hopbench.eval.files import write_atomically
from hopbench.eval.synthesize.trust import spread
from hopbench.retrieval.support.errors import InputError
from tools.docs.figures_against import as_markdown
from tools.docs.places import read_page, run

SCHEMA = "hopbench.synthesize-check/1"
_BLOCK = re.compile(r"(<!-- figures of trust -->\n).*?(<!-- /figures of trust -->)", re.DOTALL)
_HEAD = ("data set", "passages", "questions: real / synthetic", "tau", "same verdict", "regret", "chosen", "best")


def written(page: str, checks: Sequence[Mapping[str, Any]]) -> str:
    """The page with the table of the checks. Raises InputError for a page without the place for it."""
    if not _BLOCK.search(page):
        raise InputError("the page has no <!-- figures of trust --> … <!-- /figures of trust -->: add them")
    table = as_markdown(_HEAD, [_row(check) for check in checks])
    return _BLOCK.sub(lambda found: f"{found[1]}{table}\n{found[2]}", page)


def read_check(file: Path) -> Mapping[str, Any]:
    """A check that `hopbench synthesize --check` wrote. Raises InputError for any other file."""
    try:
        check = json.loads(file.read_bytes())
        if check["schema"] == SCHEMA and check["agreements"]:
            return check  # type: ignore[no-any-return]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{file}: is no check: write one with hopbench synthesize --check DATASET --out FILE"
        ) from error
    raise InputError(f"{file}: is no check of this version ({SCHEMA}): write it again with hopbench synthesize --check")


def _row(check: Mapping[str, Any]) -> tuple[str, ...]:
    first = check["agreements"][0]
    cells = []
    for field in ("tau", "verdicts", "regret"):
        mean, least, most = spread([float(each[field]) for each in check["agreements"]])
        cells.append(f"{mean:.3f} [{least:.3f}, {most:.3f}]")
    chosen = ", ".join(dict.fromkeys(f"`{each['chosen']}`" for each in check["agreements"]))
    counts = f"{first['real']:,} / {first['synthetic']:,}"
    return (check["benchmark"], f"{check['passages']:,}", counts, *cells, chosen, f"`{first['best']}`")


def main(arguments: Sequence[str] | None = None) -> None:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(description="Write the table of trust into docs/synthesize.md.")
    parser.add_argument("page", type=Path)
    parser.add_argument("checks", type=Path, nargs="+")
    given = parser.parse_args(arguments)
    checks = [read_check(file) for file in given.checks]
    write_atomically(given.page, written(read_page(given.page), checks).encode())


if __name__ == "__main__":
    run(main)
