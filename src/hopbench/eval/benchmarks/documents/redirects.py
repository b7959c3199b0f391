"""Read where old addresses of a documentation site lead now, and point links to them at their new places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hopbench.retrieval.graph.construction.hyperlinks import SiteMap, document_of, external, parted
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import parse_yaml, read_bytes
from hopbench.retrieval.types import Link, Passage

FILE_LIMIT = 4 * 1024 * 1024
MAX_CHAIN = 10  # redirects one after another
_REST = re.compile(r"(?:^|(?<=/))(?::\w+\*|:splat|\*)$")  # `/old/:slug*` of Mintlify, `/old/*` of Netlify
_ENDING = re.compile(r"(?:(?:^|/)index)?\.(?:mdx?|html?)$")
_TAG = re.compile(r"(?<=[\s\[,])!{1,2}[\w/:.]+")  # mkdocs.yml names Python's functions by tags
Rules = Mapping[str, str]
"""Old path → new path or address; both without the slashes around them, `*` at the end for what both have there."""


def _mintlify(text: str) -> Iterator[tuple[object, object]]:
    found = json.loads(text)
    listed = found.get("redirects") if isinstance(found, dict) else None
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict):
            yield one.get("source"), one.get("destination")


def _mkdocs(text: str) -> Iterator[tuple[object, object]]:
    found = parse_yaml(_TAG.sub("", text), "mkdocs.yml")
    plugins = found.get("plugins") if isinstance(found, dict) else None
    for plugin in plugins if isinstance(plugins, list) else [plugins]:
        options = plugin.get("redirects") if isinstance(plugin, dict) else None
        maps = options.get("redirect_maps") if isinstance(options, dict) else None
        yield from maps.items() if isinstance(maps, dict) else ()


def _netlify(text: str) -> Iterator[tuple[object, object]]:
    for words in map(str.split, text.splitlines()):
        if len(words) > 1 and not words[0].startswith("#"):
            yield words[0], words[1]


FILES = {"docs.json": _mintlify, "mint.json": _mintlify, "mkdocs.yml": _mkdocs, "_redirects": _netlify}
"""Name of a file with redirects → its reader. It stands in the folder of documents or in the one above."""


def read_redirects(folder: Path) -> tuple[Rules, list[str]]:
    """Read the redirects that files in a folder and in the one above state; name what cannot be read."""
    rules: dict[str, str] = {}
    problems = []
    for place in (folder.resolve().parent, folder):
        for name, read in FILES.items():
            file = place / name
            if not file.is_file():
                continue
            try:
                stated = list(read(read_bytes(file, FILE_LIMIT, name).decode("utf-8-sig")))
            except (InputError, ValueError, RecursionError) as error:
                reason = str(error).partition(": correct")[0].removeprefix(f"{name}: ")
                problems.append(f"{name}: its redirects cannot be read ({reason}): links to old addresses lead nowhere")
                continue
            rules |= {_plain(old): _plain(new) for old, new in stated if isinstance(old, str) and isinstance(new, str)}
    return {old: new for old, new in rules.items() if old and old != new}, problems


def _plain(path: str) -> str:
    if external(path):
        return path
    path, mark, anchor = path.partition("#")
    return _REST.sub("*", _ENDING.sub("", path.partition("?")[0].strip("/"))) + mark + anchor


def redirected(passages: Sequence[Passage], rules: Rules, folder: str) -> list[Passage]:
    """Give links to old addresses the target to which a rule leads; `folder` is the documents' folder on the site."""
    site = SiteMap(passages)

    def led(link: Link, document: str) -> Link:
        path, anchor = parted(link.target)
        candidates = list(site.candidates(path, document))[: 1 if path.startswith("/") else None]
        if external(link.target) or not path or any(site.named(one) is not None for one in candidates):
            return link
        for candidate in candidates:
            for old in (candidate, f"{folder}/{candidate}"):
                if (new := _follow(_plain(old), rules)) is not None:
                    target = new if external(new) else f"/{new}"
                    return replace(link, target=target if "#" in target or not anchor else f"{target}#{anchor}")
        return link

    return [
        replace(one, links=tuple(led(link, document_of(one)) for link in one.links)) if one.links else one
        for one in passages
    ]


def _follow(path: str, rules: Rules) -> str | None:
    found = None
    for _ in range(MAX_CHAIN):
        new = rules.get(path)
        if new is None:
            parts = path.split("/")
            rests = (("/".join([*parts[:end], "*"]), "/".join(parts[end:])) for end in range(len(parts) - 1, -1, -1))
            new = next((rules[old].replace("*", rest) for old, rest in rests if old in rules), None)
        if new is None or new == path:
            break
        found, path = new, new.partition("#")[0]
    return found
