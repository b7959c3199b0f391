"""A run's leaderboard as an artifact of its flow run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.metrics import rank_key
from hopbench.eval.runs.results import comparisons, results
from hopbench.flows.orchestration.artifacts import artifact_key, leave, table
from hopbench.flows.orchestration.pages import REPORT, link_in
from hopbench.flows.settings.home import Home

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation

BESIDE = ("recall@5", "nDCG@10", "has_answer@10")


def leave_leaderboard(evaluation: Evaluation, out: Path, home: Home) -> None:
    """Leave the leaderboard, best first, with a link to the report; only inside a flow."""
    found = results(evaluation)
    benchmark, entries = found["benchmark"], found["strategies"]
    primary = benchmark["primary_metric"]
    verdicts = {str(pair["label"]): pair for pair in comparisons(evaluation)}
    measured = {name for entry in entries.values() for name in entry["metrics"]}
    metrics = [name for name in dict.fromkeys([primary, *BESIDE]) if name in measured]
    order = list(entries)
    if primary:
        order.sort(key=lambda label: rank_key(primary, entries[label]["metrics"].get(primary)))
    rows: list[dict[str, Any]] = [
        {
            "label": label,
            "kind": entries[label].get("kind", ""),
            **{name: entries[label]["metrics"].get(name) for name in metrics},
            "against the baseline": verdicts[label]["verdict"] if label in verdicts else "–",
            "p50 ms": entries[label].get("latency_ms_p50"),
            "failures": entries[label].get("failures"),
        }
        for label in order
    ]
    name = str(benchmark["name"])
    head = f"# {name}\n\n{benchmark['questions']} questions · {benchmark['passages']} passages"
    content = f"{head}\n\n{link_in(home, out / REPORT)}\n\n{table(rows)}\n"
    leave(content, artifact_key("leaderboard", name), f"The leaderboard on {name}")
