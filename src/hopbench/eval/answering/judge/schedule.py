"""Judgements in the order that serves a prefix cache, each stored as soon as it is made: none is paid for twice.

RAGAS's scheduler drops failed rows and starts everything at once, so HopBench has its own. RAGAS's prompts begin with
instructions and examples, so the full profile goes metric by metric; the compact ones begin with the passages, so that
profile goes sample by sample. The key of a stored judgement names everything that decides a score: the judge's
endpoint, model, sampling and prompt version, the metric, the sample's own texts, the embedder where one is used, and
the repeat. Equal samples of two labels are judged once. A failure is recorded, and tried again by the next run.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.answering.judge.sample import EMBEDDING, INPUTS, Limits, Sample
from hopbench.retrieval.llm import LLM, LLMError, calling
from hopbench.retrieval.llm.cache import connect, explained, request_key
from hopbench.retrieval.support.errors import HopBenchError
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.sqlite_files import seal

if TYPE_CHECKING:
    from hopbench.eval.answering.judge.profiles import CompactJudge, FullJudge
    from hopbench.retrieval.embedding.base import Embedder


_TABLE = """CREATE TABLE IF NOT EXISTS judgements (key TEXT PRIMARY KEY, judge TEXT NOT NULL, metric TEXT NOT NULL,
question_id TEXT NOT NULL, repeat INTEGER NOT NULL, value REAL, failure TEXT, calls INTEGER NOT NULL,
tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, seconds REAL NOT NULL, at REAL NOT NULL,
seal INTEGER) STRICT"""
_OWN = ("metric", "question_id", "repeat", "value", "failure", "calls", "tokens_in", "tokens_out", "seconds")


@dataclass(frozen=True, slots=True)
class Judgement:
    """One score of one question, or the reason why there is none, and its cost; each repeat is a judgement.

    `calls` and tokens are those of the judgement alone; `seconds` is how long it took when it was made.
    """

    metric: str
    question_id: str
    repeat: int
    value: float | None = None
    failure: str | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0


class JudgementStore:
    """Judgements by `Judging.key_of` in one SQLite file. Make one with `JudgementStore.open`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        with explained(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = connect(file, _TABLE)

    @classmethod
    @contextmanager
    def open(cls, file: Path) -> Iterator[JudgementStore]:
        """Open or create the file, close it in the end."""
        store = cls(file)
        try:
            yield store
        finally:
            store._connection.close()

    def get(self, key: str) -> Judgement | None:
        """The score stored under `key`; None for a failure, and for a row that fails its checksum."""
        query = f"SELECT {', '.join(_OWN)}, seal FROM judgements WHERE key = ? AND failure IS NULL"
        with explained(self._file), self._lock:
            row = self._connection.execute(query, (key,)).fetchone()
            if row is None or row[-1] == seal(row[:-1]):
                return None if row is None else Judgement(*row[:-1])
            self._connection.execute("DELETE FROM judgements WHERE key = ?", (key,))
        notice(f"{self._file}: a judgement was damaged and is made again")
        return None

    def put(self, key: str, judge: str, judgement: Judgement) -> None:
        """Store a judgement; it is on disk when this returns."""
        content = tuple(getattr(judgement, name) for name in _OWN)
        with explained(self._file), self._lock:
            self._connection.execute(
                "INSERT OR REPLACE INTO judgements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (key, judge, *content, time.time(), seal(content)),
            )


WORKERS = 16  # judgements in progress; how many calls are in flight the gate decides
NO_SCORE = "no score: the judge found nothing to score (NaN)"


@dataclass(frozen=True, slots=True)
class Job:
    """A judgement to be made."""

    sample: Sample
    metric: str
    repeat: int = 0


@dataclass
class Judging:
    """A judge: its model, its profile, the embedder that some metrics use, and the store of its scores.

    `made` and `reused` count the judgements that were new and those from the store."""

    llm: LLM
    scorer: FullJudge | CompactJudge
    embedder: Embedder
    store: JudgementStore
    limits: Limits
    workers: int = WORKERS
    made: int = 0
    reused: int = 0

    @property
    def name(self) -> str:
        """The judge as results name it."""
        return f"{self.llm.endpoint.name} {self.scorer.profile}"

    @property
    def _judge(self) -> dict[str, Any]:
        endpoint = self.llm.endpoint
        return {
            "url": endpoint.base_url,
            "model": endpoint.model,
            "limits": asdict(self.limits),
            "profile": self.scorer.profile,
            **endpoint.asked,
        }

    def settings(self, metrics: Sequence[str]) -> dict[str, Any]:
        """All that decides a judgement of these metrics beside the sample: part of the id of a judged trial."""
        embedded = {"embedder": self.embedder.name} if EMBEDDING & set(metrics) else {}
        return {
            **self._judge,
            **embedded,
            "versions": {metric: self.scorer.version(metric) for metric in metrics},
        }

    def key_of(self, job: Job) -> str:
        """The key under which a job's judgement is stored."""
        return request_key(
            **self._judge,
            version=self.scorer.version(job.metric),
            metric=job.metric,
            inputs=job.sample.inputs(job.metric),
            embedder=self.embedder.name if job.metric in EMBEDDING else None,
            repeat=job.repeat,
        )

    def judge(
        self, jobs: Iterable[Job], on_judgement: Callable[[Judgement], None] = lambda _: None
    ) -> dict[str, Judgement]:
        """The judgement of every job by its key, from the store or made now; `on_judgement` is called for each new one.

        Raises BudgetReached when the cost limit is reached; judgements finished by then are stored.
        """
        judgements: dict[str, Judgement] = {}
        todo: dict[str, Job] = {}
        for job in jobs:
            key = self.key_of(job)
            stored = self.store.get(key)
            if stored is not None:
                judgements[key] = stored
            else:
                todo.setdefault(key, job)
        self.reused += len(judgements)
        future = self.llm.submit(self._all(todo, judgements, on_judgement))
        try:
            future.result()
        except BaseException:  # Ctrl-C reaches this thread, not the one that works
            future.cancel()
            raise
        return judgements

    async def _all(
        self, todo: Mapping[str, Job], judgements: dict[str, Judgement], on_judgement: Callable[[Judgement], None]
    ) -> None:
        units = iter(self._units(todo))
        stops: list[HopBenchError] = []

        async def worker() -> None:
            for unit in units:
                for key in unit:
                    if stops:
                        return
                    try:
                        judgements[key] = await self._one(todo[key])
                    except HopBenchError as stop:  # the others finish what they are at: it may be paid already
                        stops.append(stop)
                        return
                    self.store.put(key, self.name, judgements[key])
                    self.made += 1
                    on_judgement(judgements[key])

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self.workers, len(todo))):
                group.create_task(worker())
        if stops:
            raise stops[0]

    def _units(self, todo: Mapping[str, Job]) -> list[list[str]]:
        """What one worker does in a row: a judgement of the full profile, all of a sample's of the compact one."""
        places = {metric: place for place, metric in enumerate(INPUTS)}
        if self.scorer.profile == "full":
            return [[key] for key in sorted(todo, key=lambda key: places[todo[key].metric])]
        by_sample = sorted(todo, key=lambda key: (_sample_of(todo[key]), places[todo[key].metric]))
        return [list(keys) for _, keys in groupby(by_sample, key=lambda key: _sample_of(todo[key]))]

    async def _one(self, job: Job) -> Judgement:
        started = time.perf_counter()
        value, failure = None, None
        version = self.scorer.version(job.metric)
        purpose = f"judge:{job.metric}"
        with calling(purpose=purpose, sample=job.sample.question_id, repeat=job.repeat, version=version) as scope:
            try:
                value = await self.scorer.score(job.metric, job.sample)
            except LLMError as error:
                failure = str(error)
            except HopBenchError:  # the budget, a disk that is full: no judgement's own failure
                raise
            except Exception as error:  # RAGAS may raise anything; it is this judgement's failure, with its reason
                failure = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        if value is not None and not math.isfinite(value):
            value, failure = None, NO_SCORE
        cost = scope.calls, scope.tokens_in, scope.tokens_out, time.perf_counter() - started
        return Judgement(job.metric, job.sample.question_id, job.repeat, value, failure, *cost)


def _sample_of(job: Job) -> tuple[str, tuple[str, ...], str, int]:
    return job.sample.question_id, job.sample.contexts, job.sample.response or "", job.repeat


def jobs_of(samples: Sequence[Sample], metrics: Sequence[str], repeats: int) -> list[Job]:
    """A job per sample, metric and repeat, where the sample has what the metric needs."""
    return [
        Job(sample, metric, repeat)
        for repeat in range(repeats)
        for sample in samples
        for metric in metrics
        if sample.missing(metric) is None
    ]
