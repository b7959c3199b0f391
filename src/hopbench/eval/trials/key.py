"""The identity of a trial: everything that decides its outcome, code included, and its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from hopbench.eval.metrics import metric_code
from hopbench.retrieval.plugins.code import PluginCode, PluginSettings, code_of, settings_of, unreadable_lines

if TYPE_CHECKING:
    from hopbench.retrieval.context import Budget
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.strategies.base import Strategy

_ROOT = Path(__file__).resolve().parents[2]
ID_LENGTH = 16


@cache
def source_digests() -> Mapping[str, str]:
    """File → SHA-256 of the source and learned weights that compute rankings and scores (not reports, flows or docs).

    So two versions can be compared file by file.
    """
    core, evaluation = _ROOT / "retrieval", _ROOT / "eval"
    files = [*core.rglob("*.py"), *core.rglob("weights.json"), *(evaluation / "metrics").rglob("*.py")]
    return {
        file.relative_to(_ROOT).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()[:12]
        for file in sorted([*files, evaluation / "trials" / "trial.py"])
    }


@cache
def code_version(*, weights: bool = True) -> str:
    """Return the release and a digest of the source that computes rankings and scores, with or without learned weights.

    Weights say without which weights they were learned: else no training could give the bytes of those that ship.
    """
    used = [item for item in source_digests().items() if weights or not item[0].endswith(".json")]
    return f"{version('hopbench')}+{hashlib.sha256(json.dumps(used).encode()).hexdigest()[:12]}"


def plugins_of(strategy: Strategy) -> tuple[PluginCode, ...]:
    """List the plug-ins that a strategy comes from; none for a built-in strategy."""
    found = (code for kind in strategy.implementations() for code in code_of(kind))
    return tuple({code.distribution: code for code in found}.values())


def plugin_settings(strategy: Strategy, metrics: Iterable[str] = ()) -> PluginSettings:
    """Make the part of a trial's key that names its plug-ins: those that rank, and those that score every trial.

    `metrics` are names of further metrics that score this trial. Empty where everything is built in.
    """
    return settings_of([*plugins_of(strategy), *metric_code(metrics)])


def plugin_code(strategies: Iterable[Strategy]) -> dict[str, str]:
    """Collect version and digest of every plug-in that these strategies use, by distribution."""
    used = (plugin_settings(strategy).get("plugins", {}) for strategy in strategies)
    return dict(sorted({name: code for codes in used for name, code in codes.items()}.items()))


def plugin_warnings(strategies: Iterable[Strategy]) -> list[str]:
    """List warnings about the plug-ins that these strategies use, and those that score every trial."""
    return unreadable_lines([*metric_code(), *(plugin for one in strategies for plugin in plugins_of(one))])


class ReadingSettings(TypedDict, total=False):
    """The language models that read a trial's contexts; empty without any.

    `reader` has its model (`llm`) and the version of its `prompt`; `judge` everything that decides a judgement besides
    the sample: `model`, `url`, `limits`, `profile`, `versions` of the prompts by metric, `embedder` where a metric uses
    one, and `repeats`. Both say how the model is asked where that was set.
    """

    reader: Mapping[str, Any]
    judge: Mapping[str, Any]


class Variations(ReadingSettings, total=False):
    """Settings that are part of a key only where they differ from the default (false, 0, None or empty).

    `label` is a run's name for the strategy. `latency` and `ragas`: measured too. `repeat` tells equal trials apart.
    `batch`: questions in a batch, which decides the number of round trips. `night`: the nightly run that did it.
    `metrics`: those measured in addition to the default ones.
    """

    label: str
    latency: bool
    ragas: bool
    repeat: int
    batch: int | None
    night: str
    metrics: Sequence[str]


TrialSettings: TypeAlias = dict[str, Any]
"""What decides a trial's outcome, as the ledger stores it in JSON: the `Variations`, and

`strategy` with its `parameters`, `dataset` (the benchmark's digest), `questions` (their ids in order), `fingerprint`
(the graph's), `store`, `embedder`, `search`, `budget` (chunks and tokens of a context), `seed`, `code` (HopBench's own
version); `plugins` (versions by distribution), `process` for a trial whose plug-in could not be read, which no other
process may reuse, and the `model` that fills in for the rules that recognise entities.
"""


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
        """Make the key of a strategy's trial on these questions; `parameters` default to the strategy's identity."""
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
            **{name: value for name, value in varied.items() if value},
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
