"""What strategies keep of a large corpus in files, made by a process of its own before a run ranks.

    python -m hopbench.flows.run.beforehand PARENT

Making it takes minutes and gigabytes of small objects, and a process that has done so ranks slower ever after: after
linking a million passages `graph_expansion` takes a third longer (docs/scale.md). A `RunJob` is read from standard
input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from subprocess import PIPE
from tempfile import TemporaryFile
from threading import Lock
from typing import TYPE_CHECKING

from hopbench.eval.trials.trial import prepare
from hopbench.eval.trials.version import plugin_code
from hopbench.flows.graph.build import EMBEDDED_PASSAGES, open_index
from hopbench.flows.run.worker import RunJob
from hopbench.flows.settings.foreign import of_ours
from hopbench.flows.settings.home import Home
from hopbench.retrieval.foreign.base import Foreign
from hopbench.retrieval.index import Batch
from hopbench.retrieval.support.collector import collector_paused
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError
from hopbench.retrieval.support.forked import end_with
from hopbench.retrieval.support.mapped_pages import MANY, give_back_memory, reading_whole_files
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.resources import exhausted
from hopbench.retrieval.types import Counters

if TYPE_CHECKING:
    from hopbench.flows.settings.options import RunOptions
    from hopbench.retrieval.graph.build.plan import GraphPlan
    from hopbench.retrieval.strategies.base import Strategy

LARGE = EMBEDDED_PASSAGES  # passages: of fewer, all is made in less time than a process takes to begin
NO_GRAPH = 3  # exit code of a process that has made what the chunks alone decide: the graph is not built yet
# Its heap in pages of 2 MB, where Linux has them: 200,000 chunks are linked in a fifth less time; no ranking is faster.
LARGE_PAGES = "glibc.malloc.hugetlb=1"


@dataclass
class Beforehand:
    """Has another process rank some of a run's questions, for what strategies keep on the way; once for each graph."""

    job: RunJob
    _lock: Lock = field(default_factory=Lock)
    _done: bool = False

    def __call__(self) -> None:
        """Wait until all is made. Where the process fails, this one makes what is missing, with its own errors.

        Raises IncompleteError where it lacks disk, memory or the store.
        """
        with self._lock:
            if self._done:
                return
            code, said = self._ran()
            self._done = code != NO_GRAPH
        if code == IncompleteError.exit_code:
            raise IncompleteError(said)
        if code not in (0, NO_GRAPH):
            notice(f"the process that makes what strategies keep ended early ({said}): this one makes what is missing")

    def _ran(self) -> tuple[int, str]:
        """The process' exit code and the last line that it wrote; its notices are told as they come."""
        command = [sys.executable, "-P", "-m", "hopbench.flows.run.beforehand", str(os.getpid())]
        environment = {"GLIBC_TUNABLES": LARGE_PAGES, **os.environ, "HOPBENCH_HOME": str(self.job.home)}
        with TemporaryFile("w+", encoding="utf-8") as given, TemporaryFile("w+", encoding="utf-8") as written:
            json.dump(self.job.as_json(), given)
            given.seek(0)
            with subprocess.Popen(
                command, stdin=given, stdout=written, stderr=PIPE, text=True, encoding="utf-8", env=environment
            ) as process:
                assert process.stderr is not None
                try:
                    for line in process.stderr:  # by this process, which may show a bar on the same terminal
                        sys.stderr.write(line)
                except BaseException:
                    process.kill()
                    raise
            written.seek(0)
            said = written.read().strip().splitlines()
        return process.returncode, said[-1] if said else f"exit code {process.returncode}"


def beforehand(
    options: RunOptions, strategies: Mapping[str, Strategy], graph: GraphPlan, home: Home
) -> Beforehand | None:
    """What makes in another process all that a run's strategies will keep; None for a corpus that is not large."""
    if len(graph.passages) <= LARGE:
        return None
    foreign = [label for label, strategy in strategies.items() if isinstance(strategy, Foreign)]
    ours = replace(options, changes=of_ours(options.changes, foreign), runs=(), retrievers=(), functions={})
    return Beforehand(RunJob("", ours.absolute(), home.root, graph.namespace, graph.build_key, code={}))


def _made(job: RunJob) -> bool:
    """Open the index and, where its graph is built, rank questions with each label that is HopBench's own.

    (What a plug-in does or costs is not known.) Returns whether the graph is.
    """
    options, home = job.options, Home(job.home)
    home.apply_environment()
    benchmark = options.benchmark(home)
    index = open_index(options, options.graph_plan(benchmark, home), home)
    if (index.store.record() or {}).get("build_key") != job.build_key:
        return False
    batch = Batch(index, [question.question for question in benchmark.questions[:MANY]])
    prepare([batch])
    for strategy in options.labels().values():
        if not plugin_code([strategy]):
            _rank(strategy, batch)
    return True


def _rank(strategy: Strategy, batch: Batch) -> None:
    """Rank a batch for what that leaves behind. Raises IncompleteError; other failures are told and left to the run."""
    try:
        with reading_whole_files(len(batch.questions)), collector_paused():
            strategy.rank(batch, Counters())
    except Exception as error:
        if (lacking := exhausted(error)) is not None:
            raise lacking from error
        notice(f"what {strategy.name} keeps is left to the run, since here it failed: {error!r}")
    give_back_memory()


def _code_of(error: Exception) -> int:
    """Say what is wrong, as the last line of the output, and return the exit code."""
    plain = error if isinstance(error, HopBenchError) else exhausted(error)
    sys.stdout.write(f"\n{' '.join(str(plain or repr(error)).split())}\n")
    return HopBenchError.exit_code if plain is None else plain.exit_code


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    try:
        sys.exit(0 if _made(RunJob.from_json(json.load(sys.stdin))) else NO_GRAPH)
    except Exception as error:
        sys.exit(_code_of(error))
