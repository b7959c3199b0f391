"""Decides whether a label became slower or the machine was only busier.

A label's pace is its time beside a yardstick that ran between its calls (`trials.latency`). Tonight's pace over
that of the last good night is what the machine does not explain. With several yardsticks (a graph on a server has its
own) the most lenient one counts: load on the server slows only that part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hopbench.flows.nights.history import NightlyRecord

LEAST_MS = 0.25
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
    return grown is not None and grown > factor and (grown - 1) * then["own_ms"] > LEAST_MS


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
    if night.circumstances.get("machine") != machine:
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
