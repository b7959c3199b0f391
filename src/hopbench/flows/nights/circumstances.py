"""The circumstances of a night, and how they differ from an earlier night's: possible causes of a regression."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from hopbench.eval.trials.key import plugins_of, source_digests

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.retrieval.strategies.base import Strategy

# What computes vectors, graphs, rankings or scores; another release may compute something else.
PACKAGES = ("bm25s", "igraph", "ir-measures", "kglite", "neo4j", "numpy", "onnxruntime", "pystemmer", "ragas", "scipy")
MOST_FILES = 5
DIGITS = 12
REBUILD = "hopbench graph build --force makes it anew"


def circumstances(evaluation: Evaluation) -> dict[str, Any]:
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
    more = f" and {len(files) - MOST_FILES} more files" if len(files) > MOST_FILES else ""
    return [f"{what} ({', '.join(files[:MOST_FILES])}{more})"]


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
