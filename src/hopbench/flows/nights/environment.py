"""What else changed since an earlier night: code, graph, plug-ins and packages, and whether the machine was busier."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from hopbench.eval.trials.key import plugins_of, source_digests
from hopbench.flows.nights.history import NightlyRecord

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.retrieval.strategies.base import Strategy

# What computes vectors, graphs, rankings or scores; another release may compute something else.
PACKAGES = ("bm25s", "igraph", "ir-measures", "kglite", "neo4j", "numpy", "onnxruntime", "pystemmer", "ragas", "scipy")
MAX_FILES = 5
DIGITS = 12
REBUILD = "hopbench graph build --force makes it anew"


def environment_of(evaluation: Evaluation) -> dict[str, Any]:
    """Everything besides the benchmark that may change a nightly run's scores or latencies."""
    plan, record = evaluation.plan, evaluation.plan.record
    packages = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    return {
        "graph": {"fingerprint": record["fingerprint"], "build_key": record["build_key"]},
        "build": {**record.get("settings", {}), "embedder": record.get("embedder", "")},
        "embedder": plan.index.embedder.name,
        "store": plan.index.store.engine,
        "seed": plan.seed,
        "specs": {label: dict(trial.parameters) for label, trial in evaluation.trials.items()},
        "code": dict(source_digests()),
        "plugins": {label: used for label, one in plan.strategies.items() if (used := _plugins(one))},
        "packages": packages,
        "machine": f"{platform.node()} ({platform.machine()}, Python {platform.python_version()})",
    }


def _plugins(strategy: Strategy) -> dict[str, Any]:
    return {one.distribution: {"version": one.version, "files": dict(one.files)} for one in plugins_of(strategy)}


def changed(
    now: Mapping[str, Any], then: Mapping[str, Any], labels: Sequence[str], replaced: Mapping[str, str] | None = None
) -> list[str]:
    """Describe what differs, the likeliest cause of a worse score first: specs of `labels`, graph, code, the rest.

    `replaced` maps labels to their names on the earlier night. What that night did not record is left out.
    """
    changes = []
    for label in labels:
        known_as = (replaced or {}).get(label, label)
        before, after = then.get("specs", {}).get(known_as), now["specs"].get(label)
        if before is not None and after is not None and before != after:
            changes.append(f"the spec of {known_as} ({', '.join(_differences(after, before))})")
    after, before = now["graph"], then["graph"]
    if after["fingerprint"] != before["fingerprint"]:
        settings = _differences(now.get("build", {}), then.get("build", {})) if then.get("build") else []
        how = f"built otherwise: {', '.join(settings) or 'by another builder'}"
        if after["build_key"] == before["build_key"]:
            how = f"built alike, so its content was changed afterwards; {REBUILD}"
        prints = f"{before['fingerprint'][:DIGITS]} → {after['fingerprint'][:DIGITS]}"
        changes.append(f"the graph's fingerprint ({prints}; {how})")
    changes += _code("the code", now.get("code", {}), then.get("code", {}))
    changes += _plugin_code(now, then, labels)
    for name in ("embedder", "store", "seed"):
        if name in then and then[name] != now[name]:
            changes.append(f"the {name} ({then[name]} → {now[name]})")
    packages = _differences(now.get("packages", {}), then.get("packages", {})) if then.get("packages") else []
    if packages:
        changes.append(f"packages ({', '.join(packages)})")
    if "machine" in then and then["machine"] != now["machine"]:
        changes.append(f"the machine ({then['machine']} → {now['machine']})")
    return changes


def _code(what: str, now: Mapping[str, str], then: Mapping[str, str]) -> list[str]:
    files = sorted(name for name in {*now, *then} if now.get(name) != then.get(name)) if then else []
    if not files:
        return []
    more = f" and {len(files) - MAX_FILES} more files" if len(files) > MAX_FILES else ""
    return [f"{what} ({', '.join(files[:MAX_FILES])}{more})"]


def _plugin_code(now: Mapping[str, Any], then: Mapping[str, Any], labels: Sequence[str]) -> list[str]:
    """The plug-ins of these labels whose code has changed, each once."""
    lines = []
    for label in labels:
        before = then.get("plugins", {}).get(label, {})
        for name, plugin in now.get("plugins", {}).get(label, {}).items():
            if (old := before.get(name)) is not None:
                same = plugin["version"] == old["version"]
                shown = plugin["version"] if same else f"{old['version']} → {plugin['version']}"
                lines += _code(f"the code of plug-in {name} {shown}".rstrip(), plugin["files"], old["files"])
    return list(dict.fromkeys(lines))


def _differences(after: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} {before.get(name, 'none')} → {after.get(name, 'none')}"
        for name in {**after, **before}
        if after.get(name) != before.get(name)
    ]


MIN_GROWTH_MS = 0.25
"""A label slower by less of its own time than this is not called slower, whatever the factor."""
NOTABLE_MS = 5.0
"""A longer wait than this is worth a warning, though the machine explains it."""
WALL = "latency_ms_p50"
PACE = "latency_pace"

Pace = Mapping[str, float]


@dataclass(frozen=True)
class Slower:
    """A label's p50 latency then and now (wall time, ms), and how much slower it is beside the yardstick."""

    label: str
    then: float
    now: float
    growth: float


@dataclass(frozen=True)
class Latencies:
    """`slower`: labels whose slowdown the machine's load does not explain, measured twice; `busy`: those it explains.

    `unknown`: labels whose latency could not be compared, by reason.
    """

    slower: Sequence[Slower] = ()
    busy: Sequence[Slower] = ()
    unknown: Mapping[str, Sequence[str]] = field(default_factory=dict)


def growth(now: Pace, then: Pace) -> float | None:
    """Tonight's pace divided by the earlier one; None where the two were not measured with the same yardstick."""
    if not now or now.get("version") != then.get("version"):
        return None
    both = [name for name in now if name.startswith("to_") and then.get(name)]
    return min((now[name] / then[name] for name in both), default=None)


def judge_latencies(
    tonight: Mapping[str, Mapping[str, Any]],
    before: Mapping[str, tuple[NightlyRecord, str]],
    machine: str,
    factor: float,
    again: Callable[[str], Pace],
) -> Latencies:
    """Compare each label's latency tonight (`WALL`, `PACE`) with that of the label and the night in `before`.

    A label beyond the factor is measured again (`again`) before it is reported.
    """
    slower, busy = [], []
    unknown: dict[str, list[str]] = {}

    def slowdown(now: Pace, then: Pace) -> tuple[float, bool]:
        """How much slower, and whether by more than `factor` and by enough of the label's own time to matter."""
        found = growth(now, then)
        late = found is not None and found > factor and (found - 1) * then["own_ms"] > MIN_GROWTH_MS
        return 1.0 if found is None else round(found, 2), late

    for label, measured in tonight.items():
        if label not in before or measured.get(WALL) is None or PACE not in measured:
            continue
        night, known_as = before[label]
        then = night.labels[known_as]
        if why := _incomparable(measured, then, night, machine):
            unknown.setdefault(why, []).append(label)
            continue
        grown, late = slowdown(measured[PACE], then[PACE])
        if late:
            second, late = slowdown(again(label), then[PACE])
            grown = min(grown, second)
        found = Slower(label, then[WALL], measured[WALL], grown)
        if late:
            slower.append(found)
        elif found.now > factor * found.then and found.now - found.then > NOTABLE_MS:
            busy.append(found)
    return Latencies(tuple(slower), tuple(busy), unknown)


def _incomparable(tonight: Mapping[str, Any], then: Mapping[str, Any], night: NightlyRecord, machine: str) -> str:
    """Why two latencies cannot be compared; "" if they can."""
    if then.get(WALL) is None:
        return f"{night.name} has none"
    if night.environment.get("machine") != machine:
        return f"{night.name} ran on another machine"
    if not then.get(PACE):
        return f"{night.name} was measured without a yardstick"
    if growth(tonight.get(PACE, {}), then[PACE]) is None:
        return f"{night.name} was measured with another yardstick"
    return ""


def lines(latencies: Latencies) -> list[str]:
    """Lines about latency to print with the regressions."""
    results = []
    if latencies.busy:
        shown = ", ".join(f"{slow.label} {slow.then:g} → {slow.now:g} ms" for slow in latencies.busy)
        most = max(slow.growth for slow in latencies.busy)
        results.append(
            f"warning: the machine was busier than then: p50 latency {shown}; beside the yardstick they took at most "
            f"{most:g} times as long, so the code is not to blame"
        )
    for reason, labels in latencies.unknown.items():
        results.append(f"latency not compared, since {reason}: {', '.join(labels)}")
    return results
