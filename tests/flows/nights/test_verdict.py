"""The night's verdict and what it is measured against, on made-up scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.made_up_nights import DIGEST, Tonight, judged, night, scores

from hopbench.eval.trials.ledger import TrialRecord
from hopbench.flows.nights.environment import Latencies, Slower, changed
from hopbench.flows.nights.history import last_good, match_labels, nights
from hopbench.flows.nights.publish import lines, markdown
from hopbench.flows.nights.verdict import as_dict


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
    assert judged(Tonight({"bm25": scores(0.5)}), tmp_path, champion(0.8)).champion is None  # nothing stands for it


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
