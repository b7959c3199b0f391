"""Write the tables of pages anew: parameters of the strategies, and checks of synthetic sets.

    python -m tools.docs.pages parameters docs/strategies.md
    hopbench synthesize --check DATASET --questions 400 --seeds 3 --out DATASET.json
    python -m tools.docs.pages trust docs/synthesize.md DATASET.json [MORE.json ...]

The first replaces the text between `<!-- parameters NAME -->` and `<!-- /parameters -->` for every strategy, and the
sources' own names between `<!-- aliases -->` and `<!-- /aliases -->`; the second the text between `<!-- figures of
trust -->` and `<!-- /figures of trust -->`. A second call changes nothing; a test compares the committed page.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hopbench.eval.files import write_atomically
from hopbench.eval.synthesize.trust import spread
from hopbench.retrieval.strategies.base import Bounds, Strategy
from hopbench.retrieval.strategies.registry import preset, registry
from hopbench.retrieval.support.errors import HopBenchError, InputError

_PARAMETERS = re.compile(r"(<!-- parameters (?P<name>[\w-]+) -->\n).*?(<!-- /parameters -->)", re.DOTALL)
_ALIASES = re.compile(r"(<!-- aliases -->\n).*?(<!-- /aliases -->)", re.DOTALL)
SCHEMA = "hopbench.synthesize-check/1"
_TRUST = re.compile(r"(<!-- figures of trust -->\n).*?(<!-- /figures of trust -->)", re.DOTALL)
_TRUST_HEAD = ("data set", "passages", "questions: real / synthetic", "tau", "same verdict", "regret", "chosen", "best")


def as_markdown(head: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table; what cells hold cannot end them."""
    rows = (head, ("---",) * len(head), *lines)
    return "\n".join(f"| {' | '.join(map(in_a_line, row))} |" for row in rows) + "\n"


def in_a_line(text: str) -> str:
    """Text of users as a part of a line, or of a table's cell: without breaks, bars and comments."""
    return " ".join(text.split()).replace("|", "\\|").replace("<!--", "&lt;!--")


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


def run_command(main: Callable[[], None]) -> None:
    """Run a command of this package; what it refuses is one message, with the exit code that `hopbench` gives."""
    try:
        main()
    except HopBenchError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


def parameter_table(strategy: type[Strategy]) -> str:
    """Markdown: a row per parameter with default, tuned value where it differs, bounds and meaning; then the edges."""
    second = preset(strategy.name)
    tuned = second.parameters if second else {}
    titles = ["parameter", "default", *(["tuned"] if tuned else []), "bounds", "meaning"]
    rows = [" | ".join(titles), " | ".join("---" for _ in titles)]
    for name, spec in strategy.parameters().items():
        bounds: Bounds = spec.metadata["bounds"]
        changed = [_shown(tuned[name]) if name in tuned else ""] if tuned else []
        limits, meaning = _limits(bounds, spec.default), bounds.help.replace("|", "\\|")
        rows.append(" | ".join([f"`{name}`", _shown(spec.default), *changed, limits, meaning]))
    return "\n".join(f"| {row} |" for row in rows) + "\n" + _edges(strategy)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value) or "(empty)"


def _limits(bounds: Bounds, default: object) -> str:
    return bounds.describe() or ("true or false" if isinstance(default, bool) else "text")


def _edges(strategy: type[Strategy]) -> str:
    """Which edges the strategy follows, and the setting that takes each away."""
    if not strategy.edges:
        return ""
    listed = [f"{edge} ({_setting(strategy.ablations.get(edge, {}))})" for edge in strategy.edges]
    return f"\nEdges, each with what its ablation sets: {'; '.join(listed)}.\n"


def _setting(changes: Mapping[str, object]) -> str:
    return ", ".join(f"`{name}={_shown(value)}`" for name, value in changes.items()) or "no ablation"


def alias_table(strategies: Iterable[type[Strategy]]) -> str:
    """Markdown: a row per parameter that its source document calls by another name."""
    rows = ["source | its name | here | default | bounds", "--- | --- | --- | --- | ---"]
    for strategy in strategies:
        source = strategy.summary.partition(":")[0]
        for name, spec in strategy.parameters().items():
            bounds: Bounds = spec.metadata["bounds"]
            if bounds.aliases:
                theirs = ", ".join(f"`{alias}`" for alias in bounds.aliases)
                limits = _limits(bounds, spec.default)
                rows.append(f"{source} | {theirs} | `{strategy.name}.{name}` | {_shown(spec.default)} | {limits}")
    return "".join(f"| {row} |\n" for row in rows)


def with_parameters(text: str) -> str:
    """The page with all its tables written anew; InputError for a block whose strategy is not registered."""
    known = registry()
    listed = alias_table(known.get(name) for name in known.names())
    page = _ALIASES.sub(lambda block: f"{block[1]}{listed}{block[2]}", text)
    return _PARAMETERS.sub(lambda block: f"{block[1]}{parameter_table(known.get(block['name']))}{block[3]}", page)


def with_trust(page: str, checks: Sequence[Mapping[str, Any]]) -> str:
    """The page with the table of the checks. Raises InputError for a page without the place for it."""
    if not _TRUST.search(page):
        raise InputError("the page has no <!-- figures of trust --> … <!-- /figures of trust -->: add them")
    table = as_markdown(_TRUST_HEAD, [_trust_row(check) for check in checks])
    return _TRUST.sub(lambda found: f"{found[1]}{table}\n{found[2]}", page)


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


def _trust_row(check: Mapping[str, Any]) -> tuple[str, ...]:
    first = check["agreements"][0]
    cells = []
    for field in ("tau", "verdicts", "regret"):
        mean, least, most = spread([float(each[field]) for each in check["agreements"]])
        cells.append(f"{mean:.3f} [{least:.3f}, {most:.3f}]")
    chosen = ", ".join(dict.fromkeys(f"`{each['chosen']}`" for each in check["agreements"]))
    counts = f"{first['real']:,} / {first['synthetic']:,}"
    return (check["benchmark"], f"{check['passages']:,}", counts, *cells, chosen, f"`{first['best']}`")


def write_trust(files: Sequence[str | Path]) -> None:
    """Rewrite the table of checks in the first file, a page, from the other files."""
    page, *checks = map(Path, files)
    text = with_trust(read_page(page), [read_check(file) for file in checks])
    write_atomically(page, text.encode())


def main() -> None:
    """Rewrite a page: its tables of parameters, or its table of checks."""
    parser = argparse.ArgumentParser(description="Write the tables of a page.")
    tables = parser.add_subparsers(dest="tables", required=True)
    tables.add_parser("parameters", help="the parameters of the strategies").add_argument("page", type=Path)
    trust = tables.add_parser("trust", help="the checks that hopbench synthesize --check wrote")
    trust.add_argument("page", type=Path)
    trust.add_argument("checks", type=Path, nargs="+")
    given = parser.parse_args()
    if given.tables == "trust":
        write_trust([given.page, *given.checks])
    else:
        write_atomically(given.page, with_parameters(read_page(given.page)).encode())


if __name__ == "__main__":
    run_command(main)
