"""`--config FILE`: any flag of a command from YAML, so that a schedule is one file; flags on the line win."""

from __future__ import annotations

from pathlib import Path

import typer

from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.yaml_file import read_yaml


def read_config(context: typer.Context, file: Path | None) -> Path | None:
    """Make the file's values the defaults of the command's flags; names are the flags' own, with - or _."""
    if file is None:
        return None
    content = read_yaml(file, f"--config {file}")
    if not isinstance(content, dict):
        raise InputError(f"--config {file}: a mapping of flags to values is wanted, not {type(content).__name__}")
    flags = {option.lstrip("-").replace("-", "_"): p for p in context.command.params for option in p.opts}
    values = {}
    for name, value in content.items():
        parameter = flags.get(str(name).replace("-", "_"))
        if parameter is None or parameter.name is None:
            raise UnknownNameError(f"flag in {file}", str(name), flags)
        # A flag that may be repeated takes a list; click would take a text apart, letter by letter.
        values[parameter.name] = [value] if parameter.multiple and not isinstance(value, list) else value
    context.default_map = {**(context.default_map or {}), **values}
    return file
