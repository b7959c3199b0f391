"""A run's tags in MLflow: what it was made with, its kind, its verdict and its targets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hopbench.eval.runs.results import results
from hopbench.eval.runs.targets import TargetResult, check_targets
from hopbench.eval.trials.key import code_version
from hopbench.flows.tracking.names import Tag, target_tag

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation


def common_tags(evaluation: Evaluation) -> dict[str, str]:
    """Graph, code and data: what a run and its labels were made with."""
    record = evaluation.plan.record
    return {
        Tag.GRAPH_FINGERPRINT: str(record["fingerprint"]),
        Tag.BUILD_KEY: str(record["build_key"]),
        Tag.CODE_VERSION: code_version(),
        Tag.BENCHMARK_DIGEST: evaluation.plan.benchmark.digest,
        Tag.ROLE: evaluation.plan.benchmark.role,
    }


def targets_tag(evaluation: Evaluation) -> dict[str, str]:
    """`targets` of the whole run: pass, or fail where a label misses one."""
    if not evaluation.plan.targets:
        return {}
    found = check_targets(evaluation.plan.targets, results(evaluation)["strategies"])
    return {Tag.TARGETS: "pass" if all(item.passed for item in found) else "fail"}


def target_tags(targets: Sequence[TargetResult], label: str) -> dict[str, str]:
    """`targets`: pass or fail of all of a label's targets; `target.METRIC` of each, with limit and value."""
    own = [target for target in targets if target.label == label]
    if not own:
        return {}
    lines: dict[str, list[str]] = {}
    for one in own:
        lines.setdefault(target_tag(one.target.metric), []).append(one.words.partition(": ")[2])
    verdict = "pass" if all(one.passed for one in own) else "fail"
    return {Tag.TARGETS: verdict} | {name: "; ".join(words) for name, words in lines.items()}


def plugin_tags(plugins: Mapping[str, str] | None) -> dict[str, str]:
    """The tag `plugins`: version and digest of each plug-in that a trial used."""
    return {Tag.PLUGINS: ", ".join(f"{name} {code}" for name, code in plugins.items())} if plugins else {}


def kind_tags(entry: Mapping[str, Any]) -> dict[str, str]:
    """What kind of label it is, and on which of the sets that chose its numbers it was scored."""
    here = entry["in_sample"]
    return {Tag.KIND: str(entry["kind"]), **({Tag.IN_SAMPLE: ",".join(here["sets"])} if here else {})}


def verdict_tags(verdict: Mapping[str, Any] | None) -> dict[str, str]:
    """The comparison with the baseline, in a word and in full."""
    return {} if verdict is None else {Tag.VERDICT: str(verdict["verdict"]), Tag.COMPARISON: json.dumps(verdict)}
