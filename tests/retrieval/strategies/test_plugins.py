"""Plug-ins: a trial's name covers their code, a changed one is another, a broken one is told and stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import plugins
from tests.support.graphs import ASKED, WORLD, built_index, plan_of
from tests.support.plugins import FILES, forget, install, install_editable
from tests.support.sweeps import QuietTracker, write_benchmark, write_sweep

from hopbench.eval.runs.evaluate import Plan
from hopbench.eval.sweep.plan import read_sweep
from hopbench.eval.trials.key import plugin_code, plugin_settings, plugin_warnings
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.flows.nights.environment import changed
from hopbench.flows.run.worker import check_same_code, code_here
from hopbench.flows.sweeps import flow as sweep_module
from hopbench.flows.sweeps.flow import sweep
from hopbench.flows.sweeps.publisher import SweepOutcome
from hopbench.retrieval.strategies.registry import make, registry, resolve
from hopbench.retrieval.support.errors import InputError

REVERSED = {**FILES, "hopbench_mine/rule.py": "REVERSED = True\n"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty site folder that Python imports from; what was imported from it is forgotten."""
    yield plugins.use(tmp_path / "site", monkeypatch)
    forget()


def digest() -> str:
    """The code of the strategy `mine`."""
    return plugin_code([make("mine")])["hopbench-mine"]


def sweep_of(folder: Path, strategy: str, out: str, **grid: list[float]) -> SweepOutcome:
    plan = read_sweep(write_sweep(folder, strategy=strategy, grid=grid), {})
    return sweep(plan, folder / out, prefect=False)


def names(done: SweepOutcome) -> set[str]:
    return {record.trial_id for result in done.results for record in result.records.values()}


def test_a_sweep_computes_anew_what_a_changed_plugin_ranks_and_serves_an_unchanged_one(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sweep_module, "Tracker", QuietTracker)
    write_benchmark(tmp_path / "tiny")

    def both(out: str) -> tuple[SweepOutcome, SweepOutcome]:
        mine = sweep_of(tmp_path, "mine", f"{out}-mine", depth=[2, 3])
        return mine, sweep_of(tmp_path, "pagerank", f"{out}-ours", restart=[0.15, 0.5])

    install(site)
    first, ours = both("first")
    assert (0, 0) == (first.reused, ours.reused)
    install(site)  # the same again
    again, ours_again = both("again")
    assert (2, 2) == (again.reused, ours_again.reused)
    install(site, REVERSED)  # the same version: nobody counts up while trying things
    other, ours_after = both("other")
    assert (0, 2) == (other.reused, ours_after.reused)
    assert names(first) == names(again)
    assert not names(first) & names(other)
    assert names(ours) == names(ours_after)
    means = [done.results[0].mean("nDCG@10") for done in (first, other)]
    assert means[0] != means[1]  # its rankings are those of the new code
    tags = QuietTracker.latest.payloads[1].tags
    assert "plugins" not in tags  # the last sweep was ours
    install(site)
    assert 2 == sweep_of(tmp_path, "mine", "back", depth=[2, 3]).reused  # the old code's trials are still its own
    assert f"hopbench-mine {digest()}" in [run.tags.get("plugins") for run in QuietTracker.latest.payloads]


def test_a_folder_of_a_sweep_names_the_plugin_that_changed(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sweep_module, "Tracker", QuietTracker)
    write_benchmark(tmp_path / "tiny")
    install(site)
    sweep_of(tmp_path, "mine", "out", depth=[2])
    before = digest()
    install(site, REVERSED)
    with pytest.raises(InputError) as refused:
        sweep_of(tmp_path, "mine", "out", depth=[2])
    assert f'plugins.hopbench-mine was "{before}", is "{digest()}"' in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("hopbench_mine/strategy.py", FILES["hopbench_mine/strategy.py"] + "\n# touched\n"),
        ("hopbench_mine/rule.py", "REVERSED = 1 > 2\n"),  # a module of its own that it imports
        ("hopbench_mine/later.py", "\n"),  # one more file
        ("hopbench_mine/weights.json", "{}"),
    ],
)
def test_every_file_of_the_distribution_counts(site: Path, name: str, content: str) -> None:
    install(site)
    before = digest()
    install(site, {**FILES, name: content})
    assert digest() != before
    install(site)
    assert digest() == before


def test_a_file_changed_in_place_and_one_put_beside_it_count(site: Path) -> None:
    install(site)
    before = digest()
    (site / "hopbench_mine" / "rule.py").write_text("REVERSED = 0\n")
    forget()
    changed_in_place = digest()
    assert changed_in_place != before
    (site / "hopbench_mine" / "more.py").write_text("")
    forget()
    assert digest() not in (before, changed_in_place)


def test_the_version_counts_and_what_the_installer_writes_does_not(site: Path) -> None:
    install(site)
    before = digest()
    assert before.startswith("1.0+")
    (site / "hopbench_mine-1.0.dist-info" / "INSTALLER").write_text("another")
    forget()
    assert digest() == before
    install(site, version="1.1")
    assert "1.1+" + before.partition("+")[2] == digest()


def test_equal_code_installed_editable_is_equal_and_its_own_imports_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, site = tmp_path / "project" / "src", tmp_path / "editable"
    files = {**FILES, "hopbench_mine/rule.py": "def f():\n    from hopbench_mine_help import x\nREVERSED = False\n"}
    aside = {"hopbench_mine_help.py": "x = 1\n", "unrelated.py": "y = 1\n"}
    install_editable(site, source, {**files, **aside})
    plugins.use(site, monkeypatch)
    try:
        with_help = plugin_code([make("mine")])["hopbench-mine"]
        files_of = registry().code_of("mine")[0].files
        assert sorted([*FILES, "hopbench_mine_help.py"]) == sorted(files_of)  # not `unrelated.py`
        (source / "unrelated.py").write_text("y = 2\n")
        forget()
        assert digest() == with_help
        (source / "hopbench_mine_help.py").write_text("x = 2\n")
        forget()
        assert digest() != with_help
        (source / "hopbench_mine" / "rule.py").write_text("REVERSED = False\n")
        forget()
        plain = digest()
    finally:
        monkeypatch.undo()
        forget()
    with monkeypatch.context() as other:
        installed = plugins.use(tmp_path / "site", other)
        install(installed)
        assert digest() == plain
    forget()


def test_an_interrupted_run_does_again_what_a_changed_plugin_ranked(site: Path, tmp_path: Path) -> None:
    index = built_index(plan_of(WORLD), tmp_path / "world")
    benchmark = Benchmark("world", WORLD, tuple(BenchmarkQuestion(one.id, one.text) for one in ASKED))

    def keys() -> dict[str, str]:
        plan = Plan(benchmark, index, {"fingerprint": "f"}, resolve("mine,bm25"))
        return {label: plan.key_of(label) for label in plan.strategies}

    install(site)
    before = keys()
    forget()
    assert keys() == before
    install(site, REVERSED)
    after = keys()
    assert (after["mine"] != before["mine"], after["bm25"]) == (True, before["bm25"])


def test_a_night_names_the_plugin_whose_code_changed(site: Path) -> None:
    def circumstances() -> dict[str, object]:
        from hopbench.flows.nights.environment import _plugins

        graph = {"fingerprint": "f", "build_key": "k"}
        return {
            "graph": graph,
            "specs": {},
            "plugins": {"mine": _plugins(make("mine"))},
            **dict.fromkeys(("embedder", "store", "seed", "machine"), "same"),
        }

    install(site)
    then = circumstances()
    install(site, REVERSED, version="1.1")
    now = circumstances()
    assert changed(now, now, ["mine"]) == []
    assert changed(now, then, ["mine"]) == ["the code of plug-in hopbench-mine 1.0 → 1.1 (hopbench_mine/rule.py)"]
    assert changed(now, then, ["bm25"]) == []  # which does not use it
    assert changed(now, {**then, "plugins": {}}, ["mine"]) == []  # what was not recorded is no suspect


def test_a_plugin_that_cannot_be_read_is_told_and_its_trials_are_nobodys(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, {**FILES, "hopbench_mine/weights.json": "{}"})
    (site / "hopbench_mine" / "weights.json").unlink()
    (site / "hopbench_mine" / "weights.json").mkdir()
    forget()
    mine = make("mine")
    assert plugin_warnings([mine, mine]) == [
        "plug-in hopbench-mine 1.0: hopbench_mine/weights.json cannot be read (it is no regular file), so whether the "
        "plug-in has changed cannot be known: its trials are done anew each time. Make the file readable, or install "
        "the plug-in again"
    ]
    here = plugin_settings(mine)
    monkeypatch.setattr("hopbench.retrieval.plugins.code._THIS_PROCESS", "another")
    assert plugin_settings(mine) != here
    assert plugin_settings(make("bm25")) == {}


CODE = FILES["hopbench_mine/strategy.py"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def :\n", "SyntaxError: invalid syntax (strategy.py, line 1)"),
        ("import nothing_of_that_name\n", "ModuleNotFoundError"),
        ("raise SystemExit(7)\n", "SystemExit: 7"),
        ("Mine = 3\n", "it is no Strategy class"),
        (CODE.replace('"mine"', '"bm25"'), "it is named 'bm25', its entry point 'mine'"),
        (CODE.replace('"mine"', '"a:b"'), "in a label"),
        (CODE.replace('param(3, "how many hits are turned round", 1, 10)', "3"), "'depth' has no default and bounds"),
    ],
)
def test_a_broken_plugin_is_named_and_stops_no_other_strategy(site: Path, code: str, reason: str) -> None:
    install(site, {**FILES, "hopbench_mine/strategy.py": code})
    assert "bm25" in resolve("bm25")
    assert "mine" not in resolve("all")
    told = registry().broken["mine"]
    assert reason in told
    assert "mine = hopbench_mine.strategy:Mine of the package hopbench-mine 1.0 cannot be used" in told
    with pytest.raises(InputError) as refused:
        resolve("mine")
    assert told == str(refused.value)


def test_a_worker_with_other_code_is_refused(site: Path) -> None:
    install(site)
    told = code_here([make("mine"), make("bm25")])
    assert {"hopbench", "hopbench-mine"} == set(told)
    check_same_code(told, [make("mine")])
    install(site, REVERSED)
    with pytest.raises(InputError, match=r"has other code \(hopbench-mine is 1\.0\+\w+ there and 1\.0\+\w+ here\)"):
        check_same_code(told, [make("mine")])
