"""The command line against a Neo4j server: the one that all tests share, or one that may be killed and starved."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np
from tests.flows.cli.conftest import call
from tests.support.build_to_kill import WORDS, corpus
from tests.support.graphs import graph_tables
from tests.support.places import ROOT
from tools.neo4j_server.__main__ import announce
from tools.neo4j_server.server import start

from hopbench.flows.settings.home import Home
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore

HOPBENCH = [sys.executable, "-m", "tests.support.untracked"]
SIZE = 400
RING = graph_tables(
    {f"c{number}": f"text {number}" for number in range(SIZE)},
    entities=[f"e:{number}" for number in range(SIZE)],
    mentions=[(f"e:{number}", f"c{number}") for number in range(SIZE)],
    related=[(f"e:{number}", f"e:{(number + 1) % SIZE}", 0.5) for number in range(SIZE)],
)
RECORD = {"build_key": "ring"}
LABELS = "bm25,graph_expansion,expansion_queries,entity_expansion,neighborhood,pagerank"


@dataclass
class Client:
    """The command line in a home of its own against a server that others may use too."""

    home: Home
    server: Connection
    mark: str = field(default_factory=lambda: secrets.token_hex(6))  # in the names of all that is written here

    @property
    def port(self) -> int:
        return urlsplit(self.server.uri).port or 7687

    def store(self, **changes: object) -> Neo4jStore:
        """The ring's store."""
        return Neo4jStore(replace(self.server, **changes), f"ring-{self.mark}")  # type: ignore[arg-type]

    @contextmanager
    def with_ring(self) -> Iterator[Self]:
        """The ring is there; what was written meanwhile is dropped at the end."""
        self._write_ring()
        yield self
        self.drop(self.mark)

    def _write_ring(self) -> None:
        store = self.store()
        store.write(RING, RECORD)
        store.close()

    def drop(self, part: str) -> None:
        """Drop the graphs written here that have `part` in their names."""
        store = self.store()
        names = "MATCH (n) WHERE n.namespace CONTAINS $part RETURN DISTINCT n.namespace AS name"
        for row in store.read(names, part=part):
            other = Neo4jStore(self.server, row["name"])
            other.drop()
            other.close()
        store.close()

    def benchmark(self, folder: Path, passages: int) -> str:
        """A benchmark whose graph is nobody else's."""
        return write_benchmark(folder / f"words-{self.mark}", passages)

    def undisturbed(self, benchmark: str, out: Path) -> Path:
        """The folder of a run on the embedded store."""
        assert (0, "") == self.said(*run(benchmark, out, "--store", "kglite"))
        return out

    def environment(self) -> dict[str, str]:
        names = {"NEO4J_URI": self.server.uri, "NEO4J_USERNAME": self.server.username}
        return {**names, "NEO4J_PASSWORD": self.server.password}

    def command(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        """`hopbench WORDS`, started; `environment` wins over the server's own."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("NEO4J_")}
        env |= {"HOPBENCH_HOME": str(self.home.root), **self.environment(), **environment}
        return subprocess.Popen(
            [*HOPBENCH, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )

    def said(self, *words: str, **environment: str) -> tuple[int, str]:
        """`hopbench WORDS` in this process: its exit code and what it says of errors."""
        done = call(*words, home=self.home.root, environment={**self.environment(), **environment})
        return done.code, " ".join(done.err.split())


class Machine(Client):
    """A server of the test's own, which may be killed and started again."""

    def __init__(self, home: Home) -> None:
        self.own = start(home, os.getpid())
        super().__init__(home, Connection.resolve(self.own.environment()))
        announce(home, self.own)

    @contextmanager
    def with_ring(self) -> Iterator[Self]:
        """The ring is there; nothing is dropped, since the server's data go with it."""
        self._write_ring()
        yield self

    def kill(self) -> None:
        self.own.kill()

    def restart(self, **settings: str) -> None:
        """Kill it and start it on the same data, port and password."""
        self.own.kill()
        self.own = self.own.restarted(self.home, **settings)
        announce(self.home, self.own)

    def restarting(self) -> threading.Thread:
        """Kill it now; the thread brings it back."""
        self.own.kill()
        thread = threading.Thread(target=self.restart)
        thread.start()
        return thread


def run(benchmark: str, out: Path, *words: str) -> list[str]:
    """The words of a run of all labels; without `words` on Neo4j."""
    start = ["run", "--no-prefect", "--no-ragas", "--dataset", benchmark, "--out", str(out), "--strategies", LABELS]
    return [*start, *(words or ("--store", "neo4j"))]


def trials(out: Path) -> int:
    """How many labels an unfinished run has behind it."""
    return len(list((out / ".unfinished").glob("*.trial")))


def building(client: Client, store: Neo4jStore) -> bool:
    """Whether a graph of the client's is half written."""
    query = "MATCH (b:Building) WHERE b.namespace CONTAINS $mark MATCH (c:Chunk {namespace: b.namespace}) "
    return bool(store.read(query + "RETURN count(c) AS written", mark=client.mark)[0]["written"])


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=300)
    return process.returncode, " ".join(errors.split())


def stopped_early(client: Client, process: subprocess.Popen[str], out: Path) -> None:
    """The run gave up on its server with exit code 4, a remedy and what it has finished."""
    code, errors = ended(process)
    assert (4, True) == (code, "check NEO4J_URI and that it runs" in errors), errors
    assert "the same command goes on" in errors
    assert client.server.password not in errors
    assert 1 < trials(out) < len(LABELS.split(","))


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, f"the command ended before it could be disturbed: {process.communicate()}"
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def write_benchmark(folder: Path, passages: int, questions: int = 10) -> str:
    """A benchmark of random words in BEIR layout; a question's gold is one passage. Returns the folder."""
    generator = np.random.default_rng(0)
    known = corpus(passages)
    (folder / "qrels").mkdir(parents=True)
    gold = generator.integers(passages, size=questions)
    texts = [" ".join(generator.choice(WORDS, 4)) + f" {known[row].title}?" for row in gold]
    asked = [{"_id": f"q{number}", "text": text} for number, text in enumerate(texts)]
    held = [{"_id": passage.id, "title": passage.title, "text": passage.text} for passage in known]
    for name, rows in (("corpus", held), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    judged = "".join(f"q{number}\tp{row}\t1\n" for number, row in enumerate(gold))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged, encoding="utf-8")
    return str(folder)


def found(out: Path) -> Any:
    """What a run found: results.json without times and the names of the store."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {k: v for k, v in value.items() if "seconds" not in k and "latency" not in k and k != "store"}
            return {k: plain(v) for k, v in kept.items()}
        return [plain(item) for item in value] if isinstance(value, list) else value

    return plain(json.loads((out / "results.json").read_text(encoding="utf-8")))
