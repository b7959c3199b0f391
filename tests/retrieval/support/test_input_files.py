"""The one reader of YAML refuses at once what is too deep, too long, unfolds without end, or is no YAML."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import MAX_ALIASES, MAX_BYTES, MAX_DEPTH, read_yaml

# Nine lists, each of nine aliases of the one before: 9**9 = 387,420,489 values.
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
FAULTS = {
    "deep lists": (b"a: " + b"[" * 5000 + b"]" * 5000, f"over {MAX_DEPTH} levels deep"),
    "deep blocks": (b"".join(b" " * i + b"a:\n" for i in range(200)), f"over {MAX_DEPTH} levels deep"),
    "bomb": (BOMB.encode(), "with every alias unfolded"),
    "aliases": (b"a: &a 1\nb: [" + b"*a, " * 300 + b"]\n", f"over {MAX_ALIASES} aliases"),
    "its own alias": (b"a: &a [*a]\n", "stands inside what it names"),
    "unknown alias": (b"a: *nobody\n", "undefined alias"),
    "long": (b"a: " + b"x" * MAX_BYTES, f"over {MAX_BYTES:,} bytes"),
    "many": (b"[" + b"1," * 60_000 + b"]", "over 50,000 values"),
    "twice": (b"a: 1\nb: 2\na: 3\n", "'a' stands twice: keep one, line 3"),
    "python": (b"a: !!python/object/apply:os.system [true]\n", "python/object/apply:os.system"),
    "latin-1": (b"a: 1\nb: caf\xe9\n", "is not UTF-8: save the file as UTF-8, line 2"),
    "nul": (b"a: \x00\n", "special characters are not allowed"),
    "no day": (b"a: 2026-02-31\n", "day is out of range|day .*must be in range"),
    "digits": (b"a: " + b"9" * 5000, "Exceeds the limit"),
    "mapping as key": (b"? {a: 1}\n: 2\n", "unhashable key"),
    "tab": (b"a:\n\tb: 1\n", "cannot start any token"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_file_and_limit(tmp_path: Path, fault: str) -> None:
    content, said = FAULTS[fault]
    file = tmp_path / "a.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=said) as told:
        read_yaml(file)
    assert str(told.value).startswith(str(file))
    assert len(str(told.value)) < 500


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path, "is a folder, not a file"),
        (tmp_path / "pipe", "is a pipe, not a file"),
        (Path("/dev/zero"), "is a device, not a file"),
        (tmp_path / "none", "no such file"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(InputError, match=said):
            read_yaml(path)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"", None),
        (b"# nothing\n", None),
        (b"\xef\xbb\xbfa: 1\r\nb: [x]\r\n", {"a": 1, "b": ["x"]}),
        (b"a: &a {x: 1}\nb: {<<: *a, y: 2}\n", {"a": {"x": 1}, "b": {"x": 1, "y": 2}}),
    ],
)
def test_what_people_write_is_read(tmp_path: Path, content: bytes, value: object) -> None:
    (tmp_path / "a.yaml").write_bytes(content)
    assert value == read_yaml(tmp_path / "a.yaml")
