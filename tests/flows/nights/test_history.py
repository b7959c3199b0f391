"""Which nights are kept and found, and one night at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.made_up_nights import DIGEST, night, scores

from hopbench.flows.nights import run as review
from hopbench.flows.nights.history import NightlyRecord, nights, started_as, unfinished
from hopbench.flows.nights.options import NightlyOptions
from hopbench.flows.nights.run import unused_name
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.locks import only_nightly
from hopbench.retrieval.support.errors import IncompleteError, InputError, ParameterError


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


def test_retention_keeps_the_newest_the_last_good_and_the_champion(tmp_path: Path) -> None:
    night(tmp_path, "made-01:00", {"bm25": scores(0.5)})
    night(tmp_path, "made-02:00", {"bm25": scores(0.5), "pagerank": scores(0.5)})
    for hour in ("03", "04", "05"):
        night(tmp_path, f"made-{hour}:00", {"bm25": scores(0.3), "pagerank": scores(0.5)}, outcome="regression")
    every = nights(tmp_path, DIGEST)
    kept, expired = review.retained(every, 2, [], "made-01:00")
    assert kept == {
        "made-05:00": "among the newest 2",
        "made-02:00": "the last good night of bm25, pagerank",
        "made-01:00": "the champion's night",
    }
    assert [one.name for one in expired] == ["made-04:00", "made-03:00"]
    kept, expired = review.retained(every, 1, ["bm25"], None)  # tonight is good, but has no pagerank
    assert kept == {"made-02:00": "the last good night of pagerank"}
    assert [one.name for one in expired] == ["made-05:00", "made-04:00", "made-03:00", "made-01:00"]


def test_a_graph_goes_with_the_last_night_that_used_it(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    kglite = {"store": "kglite"}
    for hour, graph in (("01", "old"), ("02", "shared"), ("03", "shared"), ("04", "")):
        night(home.nights, f"made-{hour}:00", {"bm25": scores(0.5)}, "regression", kglite, namespace=graph)
        if graph:
            (home.graphs / f"{graph}.kgl").write_bytes(b"graph")
    (home.graphs / "of-a-sweep.kgl").write_bytes(b"graph")
    every = nights(home.nights)
    removed = review.remove_expired(review.retained(every, 3, [], None)[1], home, every, "tonight")
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
    assert review.leftovers(tmp_path, every, 1, "made") == [folder]
    assert review.leftovers(tmp_path, every, 2, "made") == []


HOLD = """
import sys, time
from pathlib import Path
from hopbench.flows.settings.locks import only_nightly
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
        names.append(unused_name(home, "sets/tiny", now))
        (home.nights / names[-1]).mkdir(parents=True)
    assert ["tiny-2026-11-22T020000Z", "tiny-2026-11-22T020001Z", "tiny-2026-11-22T020002Z"] == names
