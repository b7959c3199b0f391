"""The identity of a trial: everything that decides its outcome, and the digest under which it is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NotRequired, TypedDict, Unpack

from hopbench.eval.trials.version import code_version, plugin_settings
from hopbench.retrieval.llm.endpoint import Asked

if TYPE_CHECKING:
    from hopbench.retrieval.context import Budget
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.strategies.base import Strategy

ID_LENGTH = 16


class ReaderSettings(Asked):
    """Who answers the questions: the model and the version of the prompt."""

    llm: str
    prompt: str


class JudgeModel(Asked):
    """The judge's model: endpoint, sampling limits, and profile."""

    url: str
    model: str
    limits: Mapping[str, float]
    profile: str


class JudgeEmbedder(TypedDict, total=False):
    """The embedder, where a judged metric uses one."""

    embedder: str


class JudgingSettings(JudgeModel, JudgeEmbedder):
    """Everything that decides a judgement besides the sample; `versions` are those of the prompts by metric."""

    versions: Mapping[str, str]


class JudgeSettings(JudgingSettings):
    """Who judges a trial; `repeats` is how many scores each question gets."""

    repeats: int


class ReadingSettings(TypedDict, total=False):
    """The language models that read a trial's contexts; empty without any."""

    reader: ReaderSettings
    judge: JudgeSettings


class Variations(ReadingSettings, total=False):
    """Settings that are part of a key only where they differ from the default (false, 0, None or empty).

    `label` is a run's name for the strategy. `latency` and `ragas`: measured too. `repeat` tells equal trials apart.
    `batch`: questions in a batch, which decides the number of round trips. `night`: the nightly run that did it.
    `metrics`: those measured beside the ones that run by default.
    """

    label: str
    latency: bool
    ragas: bool
    repeat: int
    batch: int | None
    night: str
    metrics: Sequence[str]


class TrialSettings(Variations):
    """What decides a trial's outcome, as the ledger stores it in JSON.

    `dataset` is the benchmark's digest, `questions` their ids in order, `fingerprint` the graph's, `budget` the chunks
    and tokens of a context, `code` HopBench's own version; `plugins` are versions by distribution, and `process` marks
    a trial whose plug-in could not be read, which no other process may reuse. `model` fills in for the rules that
    recognise entities.
    """

    strategy: str
    parameters: Mapping[str, object]
    dataset: str
    questions: Sequence[str]
    fingerprint: str
    store: str
    embedder: str
    search: str
    budget: Sequence[int]
    seed: int
    code: str
    plugins: NotRequired[Mapping[str, str]]
    process: NotRequired[str]
    model: NotRequired[str]


@dataclass(frozen=True)
class TrialKey:
    """The identity of a trial. Two trials with equal keys have equal outcomes."""

    settings: TrialSettings

    @classmethod
    def of(
        cls,
        strategy: Strategy,
        index: Index,
        *,
        dataset: str,
        questions: Sequence[str],
        fingerprint: str,
        budget: Budget,
        seed: int,
        parameters: Mapping[str, object] | None = None,
        **variations: Unpack[Variations],
    ) -> TrialKey:
        """The key of a strategy's trial on these questions; `parameters` default to the strategy's own identity."""
        varied: dict[str, object] = {"model": index.services.model, **variations}
        settings: TrialSettings = {
            "strategy": strategy.name,
            "parameters": strategy.identity() if parameters is None else parameters,
            "dataset": dataset,
            "questions": list(questions),
            "fingerprint": fingerprint,
            "store": index.store.engine,
            "embedder": index.embedder.name,
            "search": index.search,
            "budget": [budget.chunks, budget.tokens],
            "seed": seed,
            "code": code_version(),
            **plugin_settings(strategy, variations.get("metrics", ())),
            **{name: value for name, value in varied.items() if value},  # type: ignore[typeddict-item]
        }
        return cls(settings)

    @property
    def digest(self) -> str:
        """SHA-256 of the settings as JSON with sorted names, in 64 hexadecimal digits."""
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    @property
    def id(self) -> str:
        """The trial id, which the ledger and MLflow use: the first 16 digits of the digest."""
        return self.digest[:ID_LENGTH]
