"""What else changed since an earlier night: code, graph, plug-ins and packages, and whether the machine was busier.

Changes of the environment are possible causes of a regression; a busier machine is one of a higher latency.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
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
    return {
        "graph": {"fingerprint": record["fingerprint"], "build_key": record["build_key"]},
        "build": {**record.get("settings", {}), "embedder": record.get("embedder", "")},
        "embedder": plan.index.embedder.name,
        "store": plan.index.store.engine,
        "seed": plan.seed,
        "specs": {label: dict(trial.parameters) for label, trial in evaluation.trials.items()},
        "code": dict(source_digests()),
        "plugins": {label: used for label, one in plan.strategies.items() if (used := _plugins(one))},
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "machine": f"{platform.node()} ({platform.machine()}, Python {platform.python_version()})",
    }


def changed(
    now: Mapping[str, Any], then: Mapping[str, Any], labels: Sequence[str], replaced: Mapping[str, str] | None = None
) -> list[str]:
    """Describe what differs, the likeliest cause of a worse score first: specs of `labels`, graph, code, the rest.

    `replaced` maps labels to their names on the earlier night. What that night did not record is left out.
    """
    known_as = replaced or {}
    changes = [line for label in labels if (line := _spec(label, known_as.get(label, label), now, then))]
    changes += _graph(now, then)
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


def _spec(label: str, known_as: str, now: Mapping[str, Any], then: Mapping[str, Any]) -> str:
    before, after = then.get("specs", {}).get(known_as), now["specs"].get(label)
    if before is None or after is None or before == after:
        return ""
    return f"the spec of {known_as} ({', '.join(_differences(after, before))})"


def _graph(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    after, before = now["graph"], then["graph"]
    if after["fingerprint"] == before["fingerprint"]:
        return []
    prints = f"{before['fingerprint'][:DIGITS]} → {after['fingerprint'][:DIGITS]}"
    if after["build_key"] == before["build_key"]:
        return [f"the graph's fingerprint ({prints}; built alike, so its content was changed afterwards; {REBUILD})"]
    settings = _differences(now.get("build", {}), then.get("build", {})) if then.get("build") else []
    return [f"the graph's fingerprint ({prints}; built otherwise: {', '.join(settings) or 'by another builder'})"]


def _code(what: str, now: Mapping[str, str], then: Mapping[str, str]) -> list[str]:
    files = sorted(name for name in {*now, *then} if now.get(name) != then.get(name)) if then else []
    if not files:
        return []
    more = f" and {len(files) - MAX_FILES} more files" if len(files) > MAX_FILES else ""
    return [f"{what} ({', '.join(files[:MAX_FILES])}{more})"]


def _plugins(strategy: Strategy) -> dict[str, Any]:
    return {one.distribution: {"version": one.version, "files": dict(one.files)} for one in plugins_of(strategy)}


def _plugin_code(now: Mapping[str, Any], then: Mapping[str, Any], labels: Sequence[str]) -> list[str]:
    """The plug-ins of these labels whose code has changed, each once."""
    lines = []
    for label in labels:
        before = then.get("plugins", {}).get(label, {})
        for name, plugin in now.get("plugins", {}).get(label, {}).items():
            old = before.get(name)
            if old is None:
                continue
            version, was = plugin["version"], old["version"]
            shown = version if version == was else f"{was} → {version}"
            lines += _code(f"the code of plug-in {name} {shown}".rstrip(), plugin["files"], old["files"])
    return list(dict.fromkeys(lines))


def _differences(after: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    names = [*after, *(name for name in before if name not in after)]
    return [
        f"{name} {_shown(before, name)} → {_shown(after, name)}"
        for name in names
        if after.get(name) != before.get(name)
    ]


def _shown(values: Mapping[str, Any], name: str) -> str:
    return str(values[name]) if name in values else "none"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


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


def beyond(now: Pace, then: Pace, factor: float) -> bool:
    """Whether a label is slower than `factor` allows, and by enough of its own time to matter."""
    grown = growth(now, then)
    return grown is not None and grown > factor and (grown - 1) * then["own_ms"] > MIN_GROWTH_MS


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
    for label, kept in tonight.items():
        if label not in before or kept.get(WALL) is None or PACE not in kept:
            continue
        night, known_as = before[label]
        then = night.labels[known_as]
        why = _incomparable(kept, then, night, machine)
        if why:
            unknown.setdefault(why, []).append(label)
            continue
        grown, late = _grown(kept[PACE], then[PACE]), beyond(kept[PACE], then[PACE], factor)
        if late:
            second = again(label)
            grown, late = min(grown, _grown(second, then[PACE])), beyond(second, then[PACE], factor)
        found = Slower(label, then[WALL], kept[WALL], grown)
        if late:
            slower.append(found)
        elif found.now > factor * found.then and found.now - found.then > NOTABLE_MS:
            busy.append(found)
    return Latencies(tuple(slower), tuple(busy), unknown)


def _incomparable(kept: Mapping[str, Any], then: Mapping[str, Any], night: NightlyRecord, machine: str) -> str:
    """Why two latencies cannot be compared; "" if they can."""
    if then.get(WALL) is None:
        return f"{night.name} has none"
    if night.environment.get("machine") != machine:
        return f"{night.name} ran on another machine"
    if not then.get(PACE):
        return f"{night.name} was measured without a yardstick"
    if growth(kept.get(PACE, {}), then[PACE]) is None:
        return f"{night.name} was measured with another yardstick"
    return ""


def _grown(now: Pace, then: Pace) -> float:
    found = growth(now, then)
    return 1.0 if found is None else round(found, 2)


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
