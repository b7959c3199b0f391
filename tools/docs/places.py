"""Places in a page, between `<!-- NAME -->` and `<!-- /NAME -->`, whose text is made anew."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from hopbench.eval.files import write_atomically
from hopbench.retrieval.support.errors import HopBenchError, InputError


def filled(page: str, texts: Mapping[str, str]) -> str:
    """The page with the text of each place made anew; InputError where it lacks one."""
    for name, text in texts.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if begin not in page or end not in page.partition(begin)[2]:
            raise InputError(f"the page has no place for what is {name}: write {begin} and {end} where it is to stand")
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{text}{end}{rest.partition(end)[2]}"
    return page


def fill(file: Path, texts: Mapping[str, str]) -> None:
    """Write the file with its places made anew; InputError where it is none."""
    write_atomically(file, filled(read_page(file), texts).encode())


def read_page(file: Path) -> str:
    """The text of a page; InputError where it is none."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the page {file} cannot be read ({error}): name a Markdown file") from error


def run(main: Callable[[], None]) -> None:
    """Run a command of this package; what it refuses is one message, with the exit code that `hopbench` gives."""
    try:
        main()
    except HopBenchError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
