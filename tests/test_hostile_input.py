"""Corpora and questions that an attacker or a careless export wrote: one message with file, place and limit."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.flows.cli.conftest import write_benchmark

from hopbench.eval.benchmarks import load_benchmark, load_triples
from hopbench.eval.benchmarks.files import DEPTH_LIMIT, LINE_LIMIT
from hopbench.eval.benchmarks.questions import read_qrels
from hopbench.flows.cli.output import Grid, console
from hopbench.retrieval.strategies.hoprank.weights import load as load_weights
from hopbench.retrieval.support.errors import InputError

DEEP = DEPTH_LIMIT + 1


def question(**changes: object) -> str:
    return json.dumps({"_id": "q1", "text": "Who?", **changes}) + "\n"


FAULTS = {
    "NUL in an id": ("queries.jsonl", question(_id="q\x001"), r"line 1: field '_id' is 'q\\x001': an id with"),
    "escape in an id": ("queries.jsonl", question(_id="q\x1b[2J"), "other control character"),
    "a long id": ("queries.jsonl", question(_id="q" * 3000), "has 3,000 characters, over the limit of 2,000"),
    "NaN": ("queries.jsonl", question(metadata={"x": float("nan")}), "NaN is no number of JSON"),
    "infinity": ("queries.jsonl", question(metadata={"x": float("-inf")}), "-Infinity is no number of JSON"),
    "digits": ("queries.jsonl", '{"_id": ' + "1" * 5000 + "}\n", "line 1: not JSON that can be read"),
    "deep": ("queries.jsonl", '{"_id": ' + "[" * 100_000 + "\n", f"nested too deeply, over {DEPTH_LIMIT} levels"),
    "rather deep": (
        "queries.jsonl",
        question(metadata={"x": json.loads("[" * DEEP + "]" * DEEP)}),
        "nested too deeply",
    ),
    "surrogate": ("queries.jsonl", question(metadata={"x": ["\ud800"]}), "metadata.'x'' holds a lone surrogate"),
    "surrogate in a text": ("queries.jsonl", question(text="\ud800"), "lone surrogate"),
    "a long line": ("queries.jsonl", "x" * (LINE_LIMIT + 1), f"line 1: over {LINE_LIMIT:,} bytes long"),
    "twice": ("queries.jsonl", question() * 2, "duplicate question '_id' 'q1'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_hostile_record_is_named(tmp_path: Path, fault: str) -> None:
    file, content, said = FAULTS[fault]
    folder = write_benchmark(tmp_path / "made")
    (folder / file).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=said) as told:
        load_benchmark(folder)
    assert str(folder / file) in str(told.value)
    assert len(str(told.value)) < 600


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
@pytest.mark.parametrize("what", ["a device", "a pipe", "a folder"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, name: str, what: str) -> None:
    folder = write_benchmark(tmp_path / "made")
    place = folder / name
    place.unlink(missing_ok=True)
    match what:
        case "a device":
            place.symlink_to("/dev/zero")
        case "a pipe":
            os.mkfifo(place)
        case _:
            place.mkdir()
    with pytest.raises(InputError, match=f"{place.name}: is {what}, not a file"):
        load_benchmark(folder)


def test_endless_files_of_other_kinds_are_refused() -> None:
    zero = Path("/dev/zero")
    for read in (
        lambda: load_benchmark("/dev/zero"),
        lambda: load_triples(zero, ["p"]),
        lambda: list(read_qrels(zero)),
        lambda: load_weights("/dev/zero"),
    ):
        with pytest.raises(InputError, match="/dev/zero"):
            read()


def test_carriage_returns_and_byte_order_marks_are_read(tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "made")
    plain = load_benchmark(folder)
    for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))
    assert plain.digest == load_benchmark(folder).digest


def test_a_name_too_long_for_files_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has 200 bytes, over the limit of 150: it goes into names of files: rename"):
        load_benchmark(write_benchmark(tmp_path / ("é" * 100)))


def test_titles_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    rows = Grid("title")
    rows.add_row("A\x1b[31mB\x9b2J\u202e")
    console().print(rows)
    assert ["title", r"A\x1b[31mB\x9b2J\u202e"] == [line.strip() for line in capsys.readouterr().out.splitlines()]
