"""The order of judgements: our own scheduler, since RAGAS's drops failed rows and starts everything at once.

The order serves a local server's prefix cache. RAGAS's prompts begin with instructions and examples, so the full
profile goes metric by metric; the compact ones begin with the passages, so that profile goes sample by sample.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from hopbench.eval.answering.judge.asker import Limits
from hopbench.eval.answering.judge.sample import EMBEDDING, INPUTS, Sample
from hopbench.eval.answering.judge.store import Judgement, JudgementStore, judgement_key
from hopbench.retrieval.llm import LLM, LLMError, calling
from hopbench.retrieval.support.errors import HopBenchError

if TYPE_CHECKING:
    from hopbench.eval.trials.key import JudgeEmbedder, JudgeModel, JudgingSettings
    from hopbench.retrieval.embedding.base import Embedder

WORKERS = 16  # judgements in progress; how many calls are in flight the gate decides
NO_SCORE = "no score: the judge found nothing to score (NaN)"


class Scorer(Protocol):
    """A profile: full or compact."""

    profile: str

    def version(self, metric: str) -> str:
        """Changes with the metric's prompts."""
        ...

    async def score(self, metric: str, sample: Sample) -> float:
        """The score of a sample, or an exception that says why there is none."""
        ...


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
    scorer: Scorer
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
    def _judge(self) -> JudgeModel:
        endpoint = self.llm.endpoint
        return {
            "url": endpoint.base_url,
            "model": endpoint.model,
            "limits": asdict(self.limits),
            "profile": self.scorer.profile,
            **endpoint.asked,
        }

    def settings(self, metrics: Sequence[str]) -> JudgingSettings:
        """All that decides a judgement of these metrics beside the sample: part of the id of a judged trial."""
        embedded: JudgeEmbedder = {"embedder": self.embedder.name} if EMBEDDING & set(metrics) else {}
        return {
            **self._judge,
            **embedded,
            "versions": {metric: self.scorer.version(metric) for metric in metrics},
        }

    def key_of(self, job: Job) -> str:
        """The key under which a job's judgement is stored."""
        return judgement_key(
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
        plain = Judgement(job.metric, job.sample.question_id, job.repeat)
        begun = time.perf_counter()
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
        return replace(
            plain,
            value=value,
            failure=failure,
            calls=scope.calls,
            tokens_in=scope.tokens_in,
            tokens_out=scope.tokens_out,
            seconds=time.perf_counter() - begun,
        )


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
