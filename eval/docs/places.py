"""Places in a page, between `<!-- NAME -->` and `<!-- /NAME -->`, whose text is made anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hopbench.eval.files import write_atomically
from hopbench.retrieval.support.errors import InputError


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
    if not file.is_file():
        raise InputError(f"there is no page {file}: name docs/hoprank.md")
    write_atomically(file, filled(file.read_text(encoding="utf-8"), texts).encode())
