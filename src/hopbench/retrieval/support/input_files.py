"""Reads files that a user names, up to a size limit: ordinary files alone, and YAML whose errors name the line.

YAML can say much in few bytes: lists in lists deeper than Python recurses, and aliases of aliases that unfold to more
than any memory holds. So a text is looked through, event by event, before anything is built from it.
"""

from __future__ import annotations

import functools
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import yaml


def regular(path: Path, named: str = "") -> Path:
    """The path, if an ordinary file is there. Raises InputError for a folder, a pipe, a device, or nothing."""
    named = named or str(path)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise InputError(f"{named}: no such file") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise unreadable(named, error) from error
    if stat.S_ISREG(mode):
        return path
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    kind = next((words for is_kind, words in kinds.items() if is_kind(mode)), "a device")
    raise InputError(f"{named}: is {kind}, not a file: write what it should give into a file, and name that")


def unreadable(named: str, error: Exception) -> InputError:
    """The error for a file that the system will not open or read."""
    reason = getattr(error, "strerror", None) or error
    return InputError(f"{named}: cannot be read ({reason}): check what it is and who may read it")


def read_bytes(path: Path, limit: int, named: str = "") -> bytes:
    """The content of an ordinary file of at most `limit` bytes. Raises InputError, naming the limit."""
    named = named or str(path)
    try:
        with regular(path, named).open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise unreadable(named, error) from error
    if len(content) > limit:
        raise InputError(f"{named}: over {limit:,} bytes, which is the limit for such a file: shorten it")
    return content


MAX_BYTES = 256 * 1024
MAX_DEPTH = 40
MAX_NODES = 50_000  # with every alias unfolded
MAX_ALIASES = 200


class YamlError(InputError):
    """A text that is no YAML, or more than is taken. `line` counts from 1; 0: there is none."""

    def __init__(self, named: str, problem: str, line: int = 0) -> None:
        place = f", line {line}" if line else ""
        super().__init__(f"{named} cannot be read as YAML: {problem}{place}")
        self.problem, self.line = problem, line


def read_yaml(file: Path, named: str = "") -> Any:
    """The content of a file, which messages call `named`. Raises InputError if it cannot be read as YAML."""
    named = named or str(file)
    content = read_bytes(file, MAX_BYTES, named)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise YamlError(named, f"byte {error.start:,} is not UTF-8: save the file as UTF-8", line) from error
    return parse_yaml(text, named)


def parse_yaml(text: str, named: str) -> Any:
    """The content of `text`; None for an empty one. Only plain values are made, whatever tags it has."""
    import yaml  # naming a model loads none

    if len(text) > MAX_BYTES:
        raise YamlError(named, f"{len(text):,} characters, at most {MAX_BYTES:,} are taken")
    try:
        _refuse_excess(text, named)
        return yaml.load(text, _loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(filter(None, (error.context, error.problem)))
        raise YamlError(named, " ".join(reason.split()), mark.line + 1 if mark else 0) from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:  # ValueError: a date without a day
        raise YamlError(named, " ".join(str(error).split())) from error


def _refuse_excess(text: str, named: str) -> None:
    """Raise YamlError where the text is deeper, longer or has more aliases than a person would write."""
    import yaml

    sizes: dict[str, int] = {}  # an anchor's nodes, aliases unfolded; 0 while it is open
    open_nodes: list[tuple[str | None, int]] = []  # anchor, and the count when it began
    count = aliases = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            aliases += 1
            named_size = sizes.get(str(event.anchor), 1)  # what nothing names is refused when it is built
            count += named_size
            if not named_size:
                raise YamlError(named, f"the alias *{event.anchor} stands inside what it names: write it out", line)
        elif isinstance(event, yaml.NodeEvent):
            count += 1
            if isinstance(event, yaml.ScalarEvent):
                sizes |= {event.anchor: 1} if event.anchor else {}
            else:
                open_nodes.append((event.anchor, count - 1))
                sizes |= {event.anchor: 0} if event.anchor else {}
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            sizes |= {anchor: count - before} if anchor else {}
        counts = (("levels deep", len(open_nodes), MAX_DEPTH), ("aliases", aliases, MAX_ALIASES))
        for what, has, limit in (*counts, ("values, with every alias unfolded", count, MAX_NODES)):
            if has > limit:
                raise YamlError(named, f"over {limit:,} {what}, which is the limit: write it flatter or shorter", line)


@functools.cache
def _loader() -> type[yaml.SafeLoader]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a key that occurs twice in a mapping, where YAML itself drops the first value."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen = set[str]()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    problem = f"{key.value!r} stands twice: keep one"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    return Loader
