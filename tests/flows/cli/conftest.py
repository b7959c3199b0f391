"""The real entry point in this process, a benchmark of a dozen passages, and one finished run of it."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hopbench.flows.cli.main import main

SERVERS = (
    *("MLFLOW_TRACKING_URI", "PREFECT_API_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    *("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD"),
)

PASSAGES = {
    "p01": ("Ed Wood (film)", "Ed Wood is a 1994 film directed by Tim Burton. It stars Johnny Depp as Ed Wood."),
    "p02": ("Tim Burton", "Tim Burton was born in Burbank, California. He directed Beetlejuice in 1988."),
    "p03": ("Burbank, California", "Burbank is a city in Los Angeles County. The Walt Disney Company sits there."),
    "p04": ("Johnny Depp", "Johnny Depp is an actor born in Owensboro, Kentucky. He lived in Los Angeles County."),
    "p05": ("Owensboro, Kentucky", "Owensboro lies on the Ohio River. It is known for barbecue festivals."),
    "p06": ("Beetlejuice", "Beetlejuice stars Michael Keaton. Tim Burton made it for Geffen Company."),
    "p07": ("Michael Keaton", "Michael Keaton was born in Coraopolis. He played Batman for Tim Burton."),
    "p08": ("Ohio River", "The Ohio River flows past Coraopolis and Owensboro, Kentucky to the Mississippi River."),
    "p09": ("Mississippi River", "The Mississippi River is long. Steamboats once ran on it."),
    "p10": ("Geffen Company", "Geffen Company was founded by David Geffen in Los Angeles County."),
    "p11": ("David Geffen", "David Geffen is a producer. He collects paintings and steamboats."),
    "p12": ("Coraopolis", "Coraopolis is a borough on the Ohio River."),
}
QUESTIONS: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "q1",
        "In which county is the birthplace of the director of Ed Wood?",
        "bridge",
        "Los Angeles County",
        ("p02", "p03"),
    ),
    ("q2", "Which river flows past the birthplace of Johnny Depp?", "bridge", "Ohio River", ("p04", "p05")),
    ("q3", "Who founded the company that made Beetlejuice?", "bridge", "David Geffen", ("p06", "p10")),
    (
        "q4",
        "Which is longer, the Ohio River or the Mississippi River?",
        "comparison",
        "Mississippi River",
        ("p08", "p09"),
    ),
)


def lines(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_benchmark(folder: Path) -> Path:
    """The benchmark in BEIR layout."""
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": key, "title": title, "text": text} for key, (title, text) in PASSAGES.items()]
    corpus[1] |= {"metadata": {"page_number": 12, "document_name": "directors.pdf"}}
    asked = [
        {"_id": key, "text": text, "metadata": {"type": kind, "answer": answer}}
        for key, text, kind, answer, _ in QUESTIONS
    ]
    gold = "".join(f"{key}\t{passage}\t1\n" for key, *_, passages in QUESTIONS for passage in passages)
    (folder / "corpus.jsonl").write_text(lines(corpus), encoding="utf-8")
    (folder / "queries.jsonl").write_text(lines(asked), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{gold}", encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Done:
    """What a command left: its exit code and what it wrote to both streams."""

    code: int
    out: str
    err: str


Hopbench = Callable[..., Done]


def call(*arguments: object, home: Path, environment: Mapping[str, str] | None = None) -> Done:
    """`hopbench ARGUMENTS` through the real entry point; the environment is as before afterwards."""
    before, argv = dict(os.environ), sys.argv
    for name in SERVERS:
        os.environ.pop(name, None)
    os.environ.update({"HOPBENCH_HOME": str(home), **(environment or {})})
    out, err, code = io.StringIO(), io.StringIO(), 0
    try:
        sys.argv = ["hopbench", *map(str, arguments)]
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 0 if exit_.code is None else 1
    finally:
        sys.argv = argv
        os.environ.clear()
        os.environ.update(before)
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny benchmark."""
    return write_benchmark(tmp_path_factory.mktemp("bench") / "tiny")


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The HOPBENCH_HOME in which the benchmark's graph is built."""
    return tmp_path_factory.mktemp("cli-home")


@pytest.fixture(scope="session")
def finished(bench: Path, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of one run of four labels; every file of it must be left as it is."""
    out = tmp_path_factory.mktemp("cli-runs") / "first"
    labels = "vector,bm25,graph_expansion,pagerank"
    done = call("run", "--dataset", bench, "--strategies", labels, "--out", out, "--no-prefect", home=home)
    assert (done.code, done.err) == (0, "")
    before = {file: file.read_bytes() for file in sorted(out.rglob("*")) if file.is_file()}
    yield out
    assert {file: file.read_bytes() for file in sorted(out.rglob("*")) if file.is_file()} == before


@pytest.fixture
def hopbench(home: Path) -> Hopbench:
    """Calls a command in the shared home."""

    def command(*arguments: object, **environment: str) -> Done:
        return call(*arguments, home=home, environment=environment)

    return command
