"""A Neo4j server of the tests' own, which may be killed, starved and locked, and the command line against it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.flows.cli.conftest import call
from tests.support.build_to_kill import WORDS, corpus
from tests.support.places import ROOT

from hopbench.flows.neo4j_server.__main__ import announce
from hopbench.flows.neo4j_server.server import Neo4jServer, start
from hopbench.flows.settings.home import Home
from hopbench.retrieval.graph.stores.neo4j.connection import Connection
from hopbench.retrieval.graph.stores.neo4j.store import Neo4jStore

HOPBENCH = [sys.executable, "-m", "tests.support.untracked"]
# These servers live for seconds: what the second compiler would gain later, its work at the start would cost twice.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
WATCHED = {"db.transaction.monitor.check.interval": "50ms"}  # how soon a query over its limit is noticed


@dataclass
class Machine:
    """The server as it stands now, and how to reach it."""

    home: Home
    server: Neo4jServer

    @classmethod
    def start(cls, home: Home) -> Machine:
        machine = cls(home, start(home, os.getpid(), **WATCHED))
        announce(home, machine.server)
        return machine

    def connection(self, **changes: object) -> Connection:
        values = {"uri": self.server.uri, "password": self.server.password, **changes}
        return Connection(**values)  # type: ignore[arg-type]

    def store(self, namespace: str = "ring", **changes: object) -> Neo4jStore:
        return Neo4jStore(self.connection(**changes), namespace)

    def restart(self, **settings: str) -> None:
        self.server.kill()
        self.server = self.server.restarted(self.home, **WATCHED, **settings)
        announce(self.home, self.server)

    def restarting(self) -> threading.Thread:
        """Kill it now; the thread brings it back."""
        self.server.kill()
        thread = threading.Thread(target=self.restart)
        thread.start()
        return thread

    def command(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        """`hopbench WORDS`, started; `environment` wins over the server's own."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("NEO4J_")}
        env |= {"HOPBENCH_HOME": str(self.home.root), **self.server.environment(), **environment}
        return subprocess.Popen(
            [*HOPBENCH, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )

    def said(self, *words: str, **environment: str) -> tuple[int, str]:
        """`hopbench WORDS` in this process: its exit code and what it says of errors."""
        done = call(*words, home=self.home.root, environment={**self.server.environment(), **environment})
        return done.code, " ".join(done.err.split())


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=300)
    return process.returncode, " ".join(errors.split())


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
