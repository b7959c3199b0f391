"""The night's verdict, what it is measured against, and what is kept; on made-up scores, without a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hopbench.eval.trials.ledger import TrialRecord
from hopbench.flows.nights import retention
from hopbench.flows.nights.circumstances import changed
from hopbench.flows.nights.history import NightlyRecord, last_good, nights, started_as, unfinished, write_night
from hopbench.flows.nights.latency import PACE, WALL, Latencies, Slower, judge_latencies
from hopbench.flows.nights.lock import only_nightly
from hopbench.flows.nights.matching import match_labels, strategy_of
from hopbench.flows.nights.publish import lines, markdown
from hopbench.flows.nights.review import default_out
from hopbench.flows.nights.run import NightlyOptions
from hopbench.flows.nights.verdict import Verdict, as_dict, judge
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.home_version import VERSION
from hopbench.retrieval.support.errors import IncompleteError, InputError, ParameterError

METRIC = "all_gold@10"
DIGEST = "d" * 64


def scores(share: float, n: int = 200) -> pd.DataFrame:
    """Rows of n questions, the first `share` of them answered."""
    index = pd.Index([f"q{i:03}" for i in range(n)], name="question_id", dtype=object)
    return pd.DataFrame({METRIC: (np.arange(n) < share * n).astype(float), "failure": None}, index=index)


@dataclass
class Tonight:
    """As much of an evaluation as a verdict reads."""

    rows: Mapping[str, pd.DataFrame]
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fingerprint: str = "f1"
    build_key: str = "b1"

    @property
    def plan(self) -> Any:
        record = {"fingerprint": self.fingerprint, "build_key": self.build_key, "settings": {}, "embedder": "e"}
        index = SimpleNamespace(embedder=SimpleNamespace(name="e"), store=SimpleNamespace(engine="kglite"))
        return SimpleNamespace(
            record=record, index=index, seed=0, primary=METRIC, in_sample=lambda _: None, strategies={}
        )

    @property
    def trials(self) -> Mapping[str, Any]:
        return {
            label: SimpleNamespace(strategy=strategy_of(label), parameters=self.parameters.get(label, {}))
            for label in self.rows
        }


def night(
    folder: Path,
    name: str,
    rows: Mapping[str, pd.DataFrame],
    outcome: str = "good",
    circumstances: Mapping[str, Any] | None = None,
    **content: Any,
) -> None:
    written = {
        "started": name[-5:],
        "benchmark": {"name": "made", "digest": DIGEST, "questions": 200},
        "outcome": outcome,
        "labels": {label: {METRIC: 0.5, "latency_ms_p50": 2.0} for label in rows},
        "circumstances": {"graph": {"fingerprint": "f1", "build_key": "b1"}, "specs": {}, **(circumstances or {})},
        "namespace": "",
        "tracking_key": "",
        **content,
    }
    table = pd.concat([one.rename_axis("question_id").reset_index().assign(strategy=k) for k, one in rows.items()])
    write_night(folder / name, written, table)


def judged(tonight: Tonight, folder: Path, champion: TrialRecord | None = None, **more: Any) -> Verdict:
    specs = {label: trial.parameters for label, trial in tonight.trials.items()}
    found = match_labels(specs, nights(folder), more.get("selection", ("all",)))
    latency = more.get("latency", Latencies())
    return judge(tonight, found, champion, latency, more.get("incomplete", ()))  # type: ignore[arg-type]


def test_the_first_night_is_the_baseline(tmp_path: Path) -> None:
    verdict = judged(Tonight({"bm25": scores(0.5)}), tmp_path)
    assert (verdict.outcome, verdict.regressions) == ("baseline", [])
    assert lines(verdict) == ["first good night: recorded as the baseline"]


def test_an_unchanged_night_is_good_and_a_significant_drop_is_none(tmp_path: Path) -> None:
    night(tmp_path, "made-01:00", {"bm25": scores(0.5), "pagerank": scores(0.8)})
    same = judged(Tonight({"bm25": scores(0.5), "pagerank": scores(0.8)}), tmp_path)
    assert (same.outcome, lines(same)) == ("good", ["compared with made-01:00: no regression, 2 of 2 labels compared"])
    # 40 of 200 questions lost, none won: p = 2^-39
    worse = judged(Tonight({"bm25": scores(0.5), "pagerank": scores(0.6)}), tmp_path)
    assert (worse.outcome, worse.regressions) == ("regression", ["pagerank"])
    assert lines(worse)[1].startswith("pagerank: all_gold@10 -0.200 [-0.2")
    assert lines(worse)[2] == "nothing that was recorded has changed since then"
    assert json.loads(json.dumps(as_dict(worse)))["regressions"] == ["pagerank"]
    assert "| pagerank | -0.200 |" in markdown("made", "tonight", worse, "The report: x")


def test_all_labels_are_one_family(tmp_path: Path) -> None:
    # 6 of 200 lost, none won: p = 2/2^6 = .031, below .05 alone, above it when corrected for two labels
    labels = {"a": scores(0.5), "b": scores(0.5)}
    night(tmp_path, "made-01:00", labels)
    assert judged(Tonight({"a": scores(0.47)}), tmp_path).regressions == ["a"]
    assert judged(Tonight({"a": scores(0.47), "b": scores(0.5)}), tmp_path).regressions == []


def test_each_label_is_measured_against_the_last_good_night_that_had_it(tmp_path: Path) -> None:
    night(tmp_path, "made-01:00", {"bm25": scores(0.5), "pagerank": scores(0.8)})
    night(tmp_path, "made-02:00", {"pagerank": scores(0.4)}, outcome="regression")
    night(tmp_path, "made-03:00", {"bm25": scores(0.5)})
    verdict = judged(Tonight({"bm25": scores(0.5), "pagerank": scores(0.8), "new": scores(0.1)}), tmp_path)
    assert verdict.previous == {"bm25": "made-03:00", "pagerank": "made-01:00"}
    assert lines(verdict)[0] == (
        "compared with made-03:00 (pagerank with made-01:00): no regression, 2 of 3 labels compared"
    )
    found = last_good(nights(tmp_path), "pagerank")
    assert found is not None
    assert found.name == "made-01:00"


def champion(share: float, strategy: str = "pagerank", **parameters: Any) -> TrialRecord:
    settings = {"strategy": strategy, "parameters": parameters, "dataset": DIGEST}
    return TrialRecord("c" * 16, settings, {}, scores(share), 0, 1.0, 0.0, 0.0)


def test_slow_drift_shows_against_the_champion(tmp_path: Path) -> None:
    # 4 of 200 fewer than last night: p = 2/2^4; 16 fewer than the champion: p = 2/2^16
    night(tmp_path, "made-01:00", {"pagerank": scores(0.74)})
    tonight = Tonight({"pagerank": scores(0.72)}, {"pagerank": {"restart": 0.15}})
    verdict = judged(tonight, tmp_path, champion(0.80, restart=0.15))
    assert [pair.verdict for pair in verdict.comparison.pairs] == ["not distinguishable"]  # type: ignore[union-attr]
    assert (verdict.outcome, verdict.regressions) == ("regression", ["pagerank"])
    assert lines(verdict)[1].startswith("behind the champion, though its spec is the same: pagerank")


def test_another_spec_than_the_champions_is_told_but_no_regression(tmp_path: Path) -> None:
    night(tmp_path, "made-01:00", {"pagerank": scores(0.72)})
    tonight = Tonight({"pagerank": scores(0.72)}, {"pagerank": {"restart": 0.5}})
    verdict = judged(tonight, tmp_path, champion(0.80, restart=0.15))
    assert verdict.outcome == "good"
    assert lines(verdict)[1].startswith("behind the champion, with another spec: pagerank")
    assert judged(Tonight({"bm25": scores(0.5)}), tmp_path, champion(0.8)).drift is None  # nothing stands for it


def test_incomplete_slower_and_accepted_nights(tmp_path: Path) -> None:
    night(tmp_path, "made-01:00", {"bm25": scores(0.5)})
    tonight = Tonight({"bm25": scores(0.5)})
    assert judged(tonight, tmp_path, incomplete=["bm25"]).outcome == "incomplete"
    slow = judged(tonight, tmp_path, latency=Latencies([Slower("bm25", 2.0, 30.0, 12.5)]))
    assert (slow.outcome, slow.regressions) == ("regression", ["bm25"])
    said = "bm25: 12.5 times as slow beside the yardstick, on a second measuring too (p50 latency 2 ms then, 30 ms now)"
    assert said in lines(slow)
    assert slow.accepted().outcome == "baseline"
    assert "accepted as the new baseline" in lines(slow.accepted())


def test_a_drop_under_another_label_is_a_drop(tmp_path: Path) -> None:
    specs = {"bm25": {}, "pagerank": {"restart": 0.15, "fill": True}}
    night(tmp_path, "made-01:00", {"bm25": scores(0.5), "pagerank": scores(0.8)}, circumstances={"specs": specs})
    other = "pagerank[restart=0.99]"
    tonight = Tonight({"bm25": scores(0.5), other: scores(0.6)}, {other: {"restart": 0.99, "fill": True}})
    verdict = judged(tonight, tmp_path, selection=("all", "pagerank.restart=0.99"))
    assert (verdict.outcome, verdict.regressions) == ("regression", [other])
    told = lines(verdict)
    assert told[0] == f"compared with made-01:00: regression of {other}, 2 of 2 labels compared"
    assert told[1].startswith(f"{other} in place of pagerank: all_gold@10 -0.200 [-0.2")
    assert told[2] == "changed since then: the spec of pagerank (restart 0.15 → 0.99)"
    assert as_dict(verdict)["replaced"] == {other: "pagerank"}


def test_a_drop_is_found_when_the_strategy_was_away_for_a_night(tmp_path: Path) -> None:
    night(tmp_path, "made-01:00", {"bm25": scores(0.5), "pagerank": scores(0.8)})
    night(tmp_path, "made-02:00", {"bm25": scores(0.5)})
    verdict = judged(Tonight({"bm25": scores(0.5), "pagerank[restart=0.9]": scores(0.6)}), tmp_path)
    assert verdict.regressions == ["pagerank[restart=0.9]"]
    assert verdict.previous == {"bm25": "made-02:00", "pagerank[restart=0.9]": "made-01:00"}


def test_no_regression_is_said_only_of_what_was_compared(tmp_path: Path) -> None:
    night(tmp_path, "made-01:00", {"bm25": scores(0.5), "hybrid": scores(0.5)}, selection=["bm25,hybrid"])
    tonight = Tonight({"bm25": scores(0.5), "vector": scores(0.5)})
    verdict = judged(tonight, tmp_path, champion(0.8, "pagerank"), selection=("bm25,vector",))
    assert (verdict.outcome, verdict.compared) == ("good", ["bm25"])
    assert lines(verdict) == [
        "compared with made-01:00: no regression, 1 of 2 labels compared",
        "not compared, new tonight: vector",
        "missing tonight, though made-01:00 had them: hybrid",
        "not compared with the champion: tonight has no label of its strategy, pagerank",
    ]
    nothing = judged(Tonight({"vector": scores(0.5)}), tmp_path)
    assert lines(nothing)[0] == "none of the 1 labels was measured on an earlier night: nothing is compared"


def test_a_label_that_vanished_though_the_same_was_asked_for_makes_the_night_incomplete(tmp_path: Path) -> None:
    night(tmp_path, "made-01:00", {"bm25": scores(0.5), "plugged": scores(0.5)}, selection=["all"])
    night(tmp_path, "made-02:00", {"bm25": scores(0.5)}, selection=["bm25"])  # another schedule on the same home
    gone = judged(Tonight({"bm25": scores(0.5)}), tmp_path, selection=("all",))
    assert (gone.outcome, gone.found.missing) == ("incomplete", ("plugged",))
    assert "with the same selection: plugged. Install again" in lines(gone)[1]
    assert gone.accepted().outcome == "baseline"
    meant = judged(Tonight({"bm25": scores(0.5)}), tmp_path, selection=("bm25",))
    assert (meant.outcome, meant.found.missing) == ("good", ())


@pytest.mark.parametrize(
    ("tonight", "then", "known_as"),
    [
        # --set changes both labels of a strategy: each stands in for its own preset
        ({"a[x=3]": {"x": 3}, "a:tuned[x=3]": {"x": 3}}, {"a": {"x": 1}, "a:tuned": {"x": 2}}, ["a", "a:tuned"]),
        ({"a:tuned": {"x": 2}}, {"a": {"x": 1}}, ["a"]),  # the tuned preset in place of the documented one
        ({"a": {"x": 1}, "a[x=3]": {"x": 3}}, {"a": {"x": 1}}, ["a"]),  # a new label beside the old one
        ({"a[x=3]": {"x": 3, "y": 1}}, {"a[x=2]": {"x": 2, "y": 2}, "a[y=1]": {"x": 1, "y": 1}}, ["a[y=1]"]),  # nearest
        ({"a[x=2]": {"x": 2}, "a[x=3]": {"x": 3}}, {"a": {"x": 1}}, ["a", "a"]),  # two in place of one: both
        ({"ab": {}}, {"a": {}}, []),  # another strategy
    ],
)
def test_a_label_stands_in_for_the_nearest_of_its_strategy(
    tmp_path: Path, tonight: dict[str, Any], then: dict[str, Any], known_as: list[str]
) -> None:
    night(tmp_path, "made-01:00", {label: scores(0.5) for label in then}, circumstances={"specs": then})
    found = match_labels(tonight, nights(tmp_path), ("all",))
    assert [old for _, old in found.before.values()] == known_as
    assert set(found.missing) == set(then) - set(known_as)


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


def test_what_changed_is_named() -> None:
    then = {
        "graph": {"fingerprint": "aaaaaaaaaaaaaaaa", "build_key": "k"},
        "build": {"similar_floor": 0.3},
        "embedder": "wordllama",
        "store": "kglite",
        "seed": 0,
        "specs": {"pagerank": {"restart": 0.15}, "bm25": {}},
        "code": {"retrieval/a.py": "1", "retrieval/b.py": "1"},
        "packages": {"numpy": "2.4.6"},
        "machine": "m",
    }
    assert changed(then, then, ["pagerank", "bm25"]) == []
    edited = {**then, "specs": {"pagerank": {"restart": 0.99}, "bm25": {}}}
    assert changed(edited, then, ["pagerank"]) == ["the spec of pagerank (restart 0.15 → 0.99)"]
    cut = {**then, "graph": {"fingerprint": "bbbbbbbbbbbbbbbb", "build_key": "k"}}
    assert changed(cut, then, []) == [
        "the graph's fingerprint (aaaaaaaaaaaa → bbbbbbbbbbbb; built alike, so its content was changed afterwards; "
        "hopbench graph build --force makes it anew)"
    ]
    other = {
        **then,
        "graph": {"fingerprint": "b", "build_key": "l"},
        "build": {"similar_floor": 0.4},
        "embedder": "minilm",
        "code": {"retrieval/a.py": "2", "retrieval/b.py": "1"},
        "packages": {"numpy": "2.5.0"},
    }
    assert changed(other, then, []) == [
        "the graph's fingerprint (aaaaaaaaaaaa → b; built otherwise: similar_floor 0.3 → 0.4)",
        "the code (retrieval/a.py)",
        "the embedder (wordllama → minilm)",
        "packages (numpy 2.4.6 → 2.5.0)",
    ]
    builder = {**then, "graph": {"fingerprint": "b", "build_key": "l"}}
    assert changed(builder, then, []) == [
        "the graph's fingerprint (aaaaaaaaaaaa → b; built otherwise: by another builder)"
    ]
    assert changed(other, {"graph": {"fingerprint": "b", "build_key": "l"}}, []) == []  # what was not recorded


def listed(plan: retention.Retention) -> tuple[dict[str, str], list[str]]:
    return dict(plan.kept), [one.name for one in plan.expired]


def test_retention_keeps_the_newest_the_last_good_and_the_champion(tmp_path: Path) -> None:
    night(tmp_path, "made-01:00", {"bm25": scores(0.5)})
    night(tmp_path, "made-02:00", {"bm25": scores(0.5), "pagerank": scores(0.5)})
    for hour in ("03", "04", "05"):
        night(tmp_path, f"made-{hour}:00", {"bm25": scores(0.3), "pagerank": scores(0.5)}, outcome="regression")
    every = nights(tmp_path, DIGEST)
    assert listed(retention.plan(every, 2, [], "made-01:00")) == (
        {
            "made-05:00": "among the newest 2",
            "made-02:00": "the last good night of bm25, pagerank",
            "made-01:00": "the champion's night",
        },
        ["made-04:00", "made-03:00"],
    )
    kept, expired = listed(retention.plan(every, 1, ["bm25"], None))  # tonight is good, but has no pagerank
    assert kept == {"made-02:00": "the last good night of pagerank"}
    assert expired == ["made-05:00", "made-04:00", "made-03:00", "made-01:00"]


def test_a_graph_goes_with_the_last_night_that_used_it(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    kglite = {"store": "kglite"}
    for hour, graph in (("01", "old"), ("02", "shared"), ("03", "shared"), ("04", "")):
        night(home.nights, f"made-{hour}:00", {"bm25": scores(0.5)}, "regression", kglite, namespace=graph)
        if graph:
            (home.graphs / f"{graph}.kgl").write_bytes(b"graph")
    (home.graphs / "of-a-sweep.kgl").write_bytes(b"graph")
    every = nights(home.nights)
    removed = retention.apply(retention.plan(every, 3, [], None), home, every, "tonight")
    assert removed == ["the night made-02:00", "the night made-01:00", "the graph old"]
    assert sorted(file.name for file in home.graphs.iterdir()) == ["of-a-sweep.kgl", "shared.kgl"]
    assert [one.name for one in nights(home.nights)] == ["made-04:00", "made-03:00"]


def test_an_interrupted_night_is_found_and_an_old_one_goes(tmp_path: Path) -> None:
    folder = tmp_path / "made-2026-01-02T020000Z"
    (folder / ".unfinished").mkdir(parents=True)
    assert unfinished(tmp_path, "made") is None
    (folder / ".unfinished" / "x.trial").write_bytes(b"")
    assert unfinished(tmp_path, "made") == folder
    assert unfinished(tmp_path, "mad") is None
    longer = tmp_path / "made-more-2026-01-02T030000Z" / ".unfinished"  # a night of `made-more`
    longer.mkdir(parents=True)
    (longer / "x.trial").write_bytes(b"")
    assert unfinished(tmp_path, "made") == folder
    every = [NightlyRecord(tmp_path / "made-2026-01-03T020000Z", {})]
    assert started_as(folder.name) == "made"
    assert retention.leftovers(tmp_path, every, 1, "made") == [folder]
    assert retention.leftovers(tmp_path, every, 2, "made") == []


HOLD = """
import sys, time
from pathlib import Path
from hopbench.flows.nights.lock import only_nightly
with only_nightly(Path(sys.argv[1]), "hopworld"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_nightly_is_refused_and_a_dead_ones_lock_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "nightly" / ".lock"
    arguments = [sys.executable, "-c", textwrap.dedent(HOLD), str(path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(IncompleteError, match=rf"another nightly is .*process {holder.pid}, hopworld"),
            only_nightly(path, "other"),
        ):
            pass
        holder.kill()
        holder.wait()
    with only_nightly(path, "other") as left:
        assert left is not None
        assert f"did not finish: process {holder.pid}, hopworld" in left
    with only_nightly(path, "other") as left:
        assert left is None


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"keep": 0}, "--keep 0"),
        ({"latency_factor": 1.0}, "--latency-factor 1.0"),
        ({"latency_factor": float("nan")}, "--latency-factor nan"),
        ({"webhook": "ftp://example.org/secret-path"}, "--webhook: not a URL"),
    ],
)
def test_options_that_cannot_be_meant(given: dict[str, Any], word: str) -> None:
    with pytest.raises((ParameterError, InputError), match=word) as caught:
        NightlyOptions(**given)
    assert "secret-path" not in str(caught.value)


def version_1(home: Path, name: str, regressions: Sequence[str] = ()) -> None:
    folder = home / "nightly" / name
    folder.mkdir(parents=True)
    rows = scores(0.5).rename_axis("question_id").reset_index().assign(strategy="bm25", ranked_ids="x")
    rows.to_parquet(folder / "questions.parquet")
    entry = {"params": {"fill": True}, "metrics": {METRIC: 0.5}, "latency_ms_p50": 2.0}
    results = {
        "benchmark": {"name": "made", "digest": DIGEST, "questions": 200, "passages": 9},
        "graph": {"fingerprint": "f1", "build_key": "b1"},
        "embedder": "e",
        "strategies": {"bm25": entry},
    }
    (folder / "results.json").write_text(json.dumps(results))
    old = {"benchmark_digest": DIGEST, "previous": "x", "regressions": list(regressions), "changed": []}
    (folder / "nightly.json").write_text(json.dumps(old))


def test_a_home_of_the_first_version_is_upgraded_and_its_nights_still_count(tmp_path: Path) -> None:
    version_1(tmp_path, "made-2026-11-20T020000Z")
    version_1(tmp_path, "made-2026-11-21T020000Z", ["bm25"])
    home = Home(tmp_path).prepare()
    assert json.loads((tmp_path / "home.json").read_text())["version"] == VERSION
    assert [(one.name, one.good) for one in nights(home.nights)] == [
        ("made-2026-11-21T020000Z", False),
        ("made-2026-11-20T020000Z", True),
    ]
    verdict = judged(Tonight({"bm25": scores(0.3)}), home.nights)
    assert (verdict.outcome, verdict.previous) == ("regression", {"bm25": "made-2026-11-20T020000Z"})
    assert home.prepare() == home


def test_a_home_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home.json").write_text(json.dumps({"version": VERSION + 1}))
    with pytest.raises(InputError, match=rf"has version {VERSION + 1}, .*update HopBench, or name another folder"):
        Home(tmp_path).prepare()


def test_a_damaged_stamp_is_told_and_written_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in ("{", "", '{"version": "x"}', '{"version": 0}', "[1]"):
        (tmp_path / "home.json").write_text(content)
        Home(tmp_path).prepare()
        assert VERSION == json.loads((tmp_path / "home.json").read_text())["version"]
    assert 4 == capsys.readouterr().err.count("was damaged")  # a version of 0 is one before all others


@pytest.mark.parametrize("harm", ["rows cut", "rows gone", "record cut", "score changed", "no object"])
def test_a_damaged_night_is_told_once_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    night(tmp_path, "made-01:00", {"bm25": scores(0.5)})
    night(tmp_path, "made-02:00", {"bm25": scores(0.5)})
    folder = tmp_path / "made-02:00"
    record = (folder / "nightly.json").read_text()
    match harm:
        case "rows cut":
            (folder / "night.parquet").write_bytes(b"no")
        case "rows gone":
            (folder / "night.parquet").unlink()
        case "record cut":
            (folder / "nightly.json").write_text(record[:50])
        case "score changed":
            (folder / "nightly.json").write_text(record.replace("0.5", "0.7", 1))
        case _:
            (folder / "nightly.json").write_text("[]")
    assert ["made-01:00"] == [one.name for one in nights(tmp_path)]
    assert "the night made-02:00 is damaged" in capsys.readouterr().err
    assert ["made-01:00"] == [one.name for one in nights(tmp_path)]
    assert "" == capsys.readouterr().err


def test_a_night_of_another_version_is_named(tmp_path: Path) -> None:
    night(tmp_path, "made-01:00", {"bm25": scores(0.5)})
    (tmp_path / "made-01:00" / "nightly.json").write_text('{"schema": "hopbench.nightly/9"}')
    with pytest.raises(InputError, match=r"its schema is 'hopbench.nightly/9'"):
        nights(tmp_path)
    assert os.listdir(tmp_path) == ["made-01:00"]


def test_two_nights_that_begin_in_the_same_second_have_names_of_their_own(tmp_path: Path) -> None:
    home, now = Home(tmp_path), datetime(2026, 11, 22, 2, 0, 0, tzinfo=UTC)
    names = []
    for _ in range(3):
        folder = default_out(home, "sets/tiny", None, now)
        folder.mkdir(parents=True)
        names.append(folder.name)
    assert ["tiny-2026-11-22T020000Z", "tiny-2026-11-22T020001Z", "tiny-2026-11-22T020002Z"] == names
