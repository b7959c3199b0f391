"""A night's latencies beside the yardstick's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.made_up_nights import METRIC, Tonight, judged, night, scores

from hopbench.flows.nights.environment import PACE, WALL, Latencies, Slower, judge_latencies
from hopbench.flows.nights.history import nights
from hopbench.flows.nights.publish import lines


def paced(own: float, wall: float, yardstick: float = 1.0, version: float = 1.0, **engine: float) -> dict[str, Any]:
    pace = {"version": version, "own_ms": own, "yardstick_ms": yardstick, "to_yardstick": own / yardstick}
    return {METRIC: 0.5, WALL: wall, PACE: {**pace, **engine}}


@pytest.mark.parametrize(
    ("then", "now", "again", "found"),
    [
        (paced(1.1, 1.1), paced(3.3, 3.3), paced(3.2, 3.2), "slower"),  # three times as long beside the same yardstick
        (paced(1.1, 1.1), paced(4.2, 30.0, 1.3), paced(4.1, 30.0, 1.3), "slower"),  # and on a busy machine
        (paced(1.1, 1.1), paced(3.3, 3.3), paced(1.2, 1.2), ""),  # on the first measuring only
        (
            paced(1.1, 1.1),
            paced(1.4, 7.9, 1.3),
            None,
            "busy",
        ),  # the machine: seven times as long, not beside the yardstick
        (paced(20.0, 20.0), paced(70.0, 70.0, 3.0), None, "busy"),  # a slower machine slows the yardstick too
        (paced(1.1, 30.0), paced(3.3, 3.3), paced(3.3, 3.3), "slower"),  # the earlier night was the busy one
        (paced(0.1, 0.1), paced(0.3, 0.3), None, ""),  # three times, but by .2 ms
        (paced(20.0, 20.0), paced(36.0, 36.0), None, ""),  # within the factor of 2
        # the server's load: seven times beside our own yardstick, as long as ever beside the server's
        (paced(2.0, 2.0, to_engine=1.0), paced(14.0, 14.0, to_engine=1.1), None, "busy"),
        (paced(2.0, 2.0, to_engine=1.0), paced(14.0, 14.0, to_engine=6.0), paced(14.0, 14.0, to_engine=6.0), "slower"),
        (paced(2.0, 2.0), paced(14.0, 14.0, version=2.0), None, "with another yardstick"),
        ({METRIC: 0.5, WALL: 2.0}, paced(14.0, 14.0), None, "without a yardstick"),  # an older home
    ],
)
def test_latency_is_judged_beside_the_yardstick(
    tmp_path: Path, then: dict[str, Any], now: dict[str, Any], again: dict[str, Any] | None, found: str
) -> None:
    night(tmp_path, "made-01:00", {"a": scores(0.5)}, circumstances={"machine": "m"}, labels={"a": then})
    (earlier,) = nights(tmp_path)

    def second(_: str) -> Mapping[str, float]:
        assert again is not None, "measured a second time without a reason"
        return dict(again[PACE])

    judgement = judge_latencies({"a": now}, {"a": (earlier, "a")}, "m", 2.0, second)
    said = "slower" if judgement.slower else "busy" if judgement.busy else "".join(judgement.unknown)
    assert found in said
    assert bool(found) == bool(said)
    elsewhere = judge_latencies({"a": now}, {"a": (earlier, "a")}, "another", 2.0, second)
    assert list(elsewhere.unknown.values()) == [["a"]]


def test_what_the_machine_explains_is_a_warning_and_no_alarm(tmp_path: Path) -> None:
    night(tmp_path, "made-01:00", {"hybrid": scores(0.5)})
    busy = Latencies(busy=[Slower("hybrid", 1.1, 7.9, 1.2)], unknown={"made-01:00 ran on another machine": ["bm25"]})
    verdict = judged(Tonight({"hybrid": scores(0.5)}), tmp_path, latency=busy)
    assert verdict.outcome == "good"
    assert lines(verdict)[1:] == [
        "warning: the machine was busier than then: p50 latency hybrid 1.1 → 7.9 ms; beside the yardstick they took at "
        "most 1.2 times as long, so the code is not to blame",
        "latency not compared, since made-01:00 ran on another machine: bm25",
    ]
