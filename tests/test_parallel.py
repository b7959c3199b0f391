"""How tests are handed to workers."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tests.support import parallel
from tests.support.parallel import (
    LONGEST,
    TOGETHER,
    begin_with_the_longest,
    beside_others,
    together,
    wait_while_it_runs,
    without_soak,
)
from tests.support.places import ROOT


@dataclass(frozen=True)
class Collected:
    """As much of a collected test as is looked at."""

    nodeid: str
    marks: Sequence[str] = ()

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None


def test_what_is_named_is_there() -> None:
    assert [] == [name for name in (*TOGETHER, *LONGEST) if not (ROOT / name).exists()]


def test_a_file_goes_to_one_worker_and_so_do_files_that_share_a_fixture() -> None:
    assert (
        "tests/retrieval/test_text.py"
        == together("tests/retrieval/test_text.py::test_a[1::2]")
        == together("tests/retrieval/test_text.py::test_b")
    )
    assert together("tests/flows/cli/test_explain.py::test_a") == together("tests/flows/cli/test_lists.py::test_b")
    assert together("tests/retrieval/graph/stores/test_neo4j_store.py::test_a") == together(
        "tests/retrieval/graph/stores/test_stores.py::test_b"
    )


def test_the_longest_are_begun_first_and_groups_stay_whole(monkeypatch: Any) -> None:
    monkeypatch.setattr(parallel, "LONGEST", ("tests/test_b.py", "tests/flows/cli/test_explain.py"))
    names = [
        "test_a.py::1",
        "flows/cli/test_explain.py::1",
        "test_b.py::1",
        "test_c.py::1",
        "flows/cli/test_lists.py::1",
    ]
    items = [Collected(f"tests/{name}") for name in names]
    begin_with_the_longest(cast("Any", items))
    assert [
        "test_b.py::1",
        "flows/cli/test_explain.py::1",
        "flows/cli/test_lists.py::1",
        "test_a.py::1",
        "test_c.py::1",
    ] == [item.nodeid.removeprefix("tests/") for item in items]


def test_what_is_marked_soak_runs_only_where_it_is_asked_for() -> None:
    plain, long = Collected("a"), Collected("b", ["soak"])
    assert ([plain], [long]) == without_soak(cast("Any", [plain, long]), "")
    assert ([plain, long], []) == without_soak(cast("Any", [plain, long]), "soak or neo4j")


def test_what_a_process_makes_is_waited_for_until_it_has_ended() -> None:
    wait_while_it_runs(0)  # nobody is making anything
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.3)"])
    wait_while_it_runs(process.pid)  # it ended, though nobody has asked how
    assert 0 == process.wait(timeout=0)


def test_a_test_that_runs_alone_waits_for_the_others_and_keeps_newcomers_out(tmp_path: Path) -> None:
    told: list[str] = []
    first_may_end = threading.Event()

    def test(name: str, alone: bool, begun: threading.Event, may_end: threading.Event) -> None:
        with beside_others(tmp_path, alone):
            told.append(f"{name} begins")
            begun.set()
            may_end.wait(60)
            told.append(f"{name} ends")

    def started(name: str, alone: bool, may_end: threading.Event) -> tuple[threading.Thread, threading.Event]:
        begun = threading.Event()
        thread = threading.Thread(target=test, args=(name, alone, begun, may_end))
        thread.start()
        return thread, begun

    always = threading.Event()
    always.set()
    first, begun = started("first", False, first_may_end)
    assert begun.wait(60)
    alone, alone_begun = started("alone", True, always)
    assert not alone_begun.wait(0.2)
    last, _ = started("last", False, always)
    first_may_end.set()
    for thread in (first, alone, last):
        thread.join(60)
    # Two that run beside others may overlap; the one that is alone overlaps with none.
    assert told.index("first ends") < told.index("alone begins")
    assert told.index("alone begins") + 1 == told.index("alone ends")
