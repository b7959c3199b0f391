"""Whole sweeps on a tiny benchmark: the table, the preset, reuse after kill -9, and what MLflow shows."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import Result as ClickResult
from tests.flows.cli.conftest import Done, call
from tests.support.places import ROOT
from tests.support.sweeps import QuietTracker, write_benchmark, write_sweep
from typer.testing import CliRunner

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.sweep.context import sampled
from hopbench.eval.sweep.file import Objective
from hopbench.eval.sweep.plan import read_sweep
from hopbench.eval.sweep.results import Cell, Result, ranked
from hopbench.eval.sweep.space import Candidate
from hopbench.eval.trials.ledger import Ledger, TrialRecord
from hopbench.eval.types import fitted_on
from hopbench.flows.cli.main import app
from hopbench.flows.orchestration.steps import Progress
from hopbench.flows.sweeps.flow import identity, sweep
from hopbench.flows.sweeps.inputs import load_benchmarks, warnings_of_plan
from hopbench.flows.sweeps.trials import hold
from hopbench.retrieval.fitted import FittedOn
from hopbench.retrieval.strategies.pagerank import PageRank
from hopbench.retrieval.support.errors import IncompleteError, InputError

Run = Callable[..., ClickResult]
NewHome = Callable[[Path], Path]


@pytest.fixture
def in_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line in this process, with a home of its own."""
    monkeypatch.setenv("HOPBENCH_HOME", str(tmp_path / "home"))
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def command(program: list[str], *arguments: str, home: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOPBENCH_HOME": str(home), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*program, *arguments], env=env, cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    write_benchmark(folder / "tiny")
    write_benchmark(folder / "again", count=3)
    edges = {"similar_weight": 0, "related_weight": 0}  # whatever the preset says, only mention edges can be removed
    write_sweep(
        folder,
        base=edges,
        objective={"metric": "all_gold@2"},
        datasets=["tiny", "again"],
        write_preset="preset.yaml",
        ablations=True,
    )
    return folder


@pytest.fixture(scope="module")
def finished(folder: Path) -> Done:
    flags = ("--out", folder / "whole", "--no-prefect")
    done = call("sweep", folder / "sweep.yaml", *flags, home=folder / "home")
    assert done.code == 0, done.err
    return done


def table(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "trials.parquet")


def test_a_sweep_writes_a_row_per_trial_and_prints_the_best(folder: Path, finished: Done) -> None:
    rows = table(folder / "whole")
    assert 8 * 2 == len(rows)  # 2 × 2 combinations, each with and without mention edges, on two data sets
    assert {"trial_id", "strategy", "params", "without", "dataset", "all_gold@10", "recall@5", "seconds"} <= set(rows)
    assert rows["trial_id"].is_unique
    assert {"pagerank"} == set(rows["strategy"])
    assert {"", "MENTIONED_IN"} == set(rows["without"])
    assert {(0.15, 1), (0.15, 3), (0.5, 1), (0.5, 3)} == {
        (params["restart"], params["seed_chunks"]) for params in map(json.loads, rows["params"])
    }
    assert "16 trials: 8 configurations × 2 data sets (tiny, again)" in finished.out
    whole = rows[rows["without"] == ""].set_index(["trial_id"])
    removed = rows[rows["without"] != ""]
    assert set(removed["ablation_of"]) == set(whole.index)
    assert set(whole["ablation_of"]) == {""}
    assert 4 == finished.out.count("not used")  # SIMILAR_TO and RELATED_TO weigh 0 in each of the 4


def test_the_best_is_the_first_row_and_becomes_the_preset_with_its_provenance(folder: Path, finished: Done) -> None:
    rows, preset = table(folder / "whole"), yaml.safe_load((folder / "preset.yaml").read_text())
    means = rows.groupby("params")["all_gold@2"].mean()
    assert means.nunique() > 1
    assert means.max() == means[rows["params"][0]]
    best = json.loads(rows["params"][0])
    assert {name: best[name] for name in ("restart", "seed_chunks")}.items() <= preset["parameters"].items()
    benchmark = load_benchmark(folder / "tiny")
    provenance = preset["provenance"]
    again = load_benchmark(folder / "again")
    tuned_on = {name: (one["digest"], one["questions"], one["role"]) for name, one in provenance["tuned_on"].items()}
    assert {"tiny": (benchmark.digest, 5, "tune"), "again": (again.digest, 3, "tune")} == tuned_on
    assert (16, "sweep.yaml", 0) == (provenance["trials"], provenance["sweep"], provenance["seed"])
    assert round(means.max(), 6) == provenance["value"]


def killed_sweep(cwd: Path, folder: Path, kill_at: int, moment: str) -> subprocess.CompletedProcess[str]:
    arguments = ["sweep", "sweep.yaml", "--out", str(folder / "out"), "--no-prefect"]
    program = [sys.executable, "-m", "tests.support.sweep_to_kill", str(folder / "notes"), str(kill_at), moment]
    return command(program, *arguments, home=folder / "home", cwd=cwd)


def without_time(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.drop(columns=[name for name in rows if "seconds" in name or "latency" in name])


@pytest.mark.soak  # each of 21 processes starts an MLflow writer
def test_a_sweep_killed_again_and_again_ends_as_if_it_had_not_been(
    folder: Path, finished: Done, home_with_database: NewHome, tmp_path: Path
) -> None:
    home_with_database(tmp_path / "home")
    rounds = 20
    moments = np.random.default_rng(rounds)
    for _ in range(rounds):
        kill_at = 1
        moment = str(moments.choice(["before", "after"]))
        killed = killed_sweep(folder, tmp_path, kill_at, moment)
        assert killed.returncode in {-signal.SIGKILL, 0}, killed.stderr
    done = killed_sweep(folder, tmp_path, 0, "never")
    assert done.returncode == 0, done.stderr
    assert "of 16 trials were finished before" in done.stdout
    rows = table(tmp_path / "out")
    pd.testing.assert_frame_equal(without_time(table(folder / "whole")), without_time(rows))
    notes = (tmp_path / "notes").read_text().split()
    assert set(rows["trial_id"]) == set(notes)
    assert len(notes) - len(set(notes)) <= rounds  # only what was lost with its process is done again
    _assert_tracked_once(tmp_path / "home", rows)


def write_other_questions(folder: Path) -> Path:
    """The same benchmark with its questions in other words."""
    file = write_benchmark(folder) / "queries.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    told = [{**row, "text": f"Say, {row['text']}"} for row in rows]
    file.write_text("\n".join(map(json.dumps, told)) + "\n")
    return folder


class Crowns(QuietTracker):
    """Keeps who was crowned."""

    crowned: ClassVar[list[tuple[str, str]]] = []

    def crown(self, key: str, benchmark_digest: str) -> None:
        self.crowned.append((key, benchmark_digest))


def test_a_winner_is_champion_only_of_a_set_that_did_not_choose_it(
    tmp_path: Path, in_process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopbench.flows.sweeps.flow.Tracker", Crowns)
    chosen_on, other = write_benchmark(tmp_path / "tiny"), write_other_questions(tmp_path / "other")
    command = ("--out", str(tmp_path / "o"), "--no-prefect", "--champion")
    alone = in_process("sweep", str(write_sweep(tmp_path)), *command)
    assert isinstance(alone.exception, InputError)
    assert "the winner is no champion of the sets that chose it (tiny): name another set under" in str(alone.exception)
    write_benchmark(tmp_path / "part", count=3)
    overlapping = in_process("sweep", str(write_sweep(tmp_path, report_on="part")), *command)
    assert "3 questions of part are also in tiny" in str(overlapping.exception)
    done = in_process("sweep", str(write_sweep(tmp_path, report_on="other")), *command)
    assert 0 == done.exit_code, done.output
    rows = table(tmp_path / "o")
    (reported,) = rows[rows["role"] == "report"]["trial_id"]
    digest = load_benchmark(other).digest
    with Ledger.open(tmp_path / "home" / "ledger.db") as ledger:
        champion = ledger.champion_of(digest)
        assert ledger.champion_of(load_benchmark(chosen_on).digest) is None
    assert champion is not None
    assert reported == champion.trial_id
    assert [(champion.run_id, digest)] == Crowns.crowned


def test_best_yaml_says_on_which_questions_it_was_tuned_and_run_reads_it(
    tmp_path: Path, in_process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopbench.flows.sweeps.flow.Tracker", QuietTracker)
    monkeypatch.setattr("hopbench.flows.run.evaluate.Tracker", QuietTracker)
    benchmark = load_benchmark(write_benchmark(tmp_path / "tiny"))
    part = write_benchmark(tmp_path / "part", count=3)
    swept = in_process("sweep", str(write_sweep(tmp_path)), "--out", str(tmp_path / "o"), "--no-prefect")
    assert 0 == swept.exit_code, swept.output
    best = yaml.safe_load((tmp_path / "o" / "best.yaml").read_text())
    assert [FittedOn.read(text) for text in best["tuned_on"]] == [fitted_on(benchmark)]
    run = ("run", "--config", str(tmp_path / "o" / "best.yaml"), "--dataset", str(part), "--no-prefect")
    done = in_process(*run, "--out", str(tmp_path / "r"))
    assert 0 == done.exit_code, done.output
    (entry,) = json.loads((tmp_path / "r" / "results.json").read_text())["strategies"].values()
    assert "tuned" == entry["kind"]
    assert {"sets": ["tiny"], "questions": 3} == entry["in_sample"]
    assert "tuned on tiny, whose questions are asked here" in " ".join(done.output.split())
    (child,) = [payload for payload in QuietTracker.latest.payloads if payload.parent_key]
    assert ("tuned", "tiny") == (child.tags["kind"], child.tags["in_sample"])


class Counting(Progress):
    """A report that knows how far it was at every step."""

    def __init__(self) -> None:
        super().__init__()
        self.total = self.done = 0
        self.passed: list[tuple[int, int]] = []

    def expect(self, steps: int) -> None:
        self.total += steps

    def begin(self, name: str) -> None:
        pass

    def end(self) -> None:
        self.done += 1
        if self.done > self.total:
            self.passed.append((self.done, self.total))


@pytest.mark.parametrize(
    "content",
    [{"report_on": "other"}, {"halving": {"questions": 2, "factor": 2}}],
    ids=["reported", "halving"],
)
def test_progress_reaches_its_total_and_never_passes_it_also_after_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: dict[str, Any]
) -> None:
    monkeypatch.setattr("hopbench.flows.sweeps.flow.Tracker", QuietTracker)
    monkeypatch.setenv("HOPBENCH_HOME", str(tmp_path / "home"))
    write_benchmark(tmp_path / "tiny")
    write_other_questions(tmp_path / "other")
    plan = read_sweep(write_sweep(tmp_path, **content))
    for _ in ("first", "resumed"):
        report = Counting()
        sweep(plan, tmp_path / "o", prefect=False, progress=report)
        assert [] == report.passed
        assert report.done == report.total


@pytest.mark.parametrize("killed", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_two_processes_on_one_sweep_share_its_trials_and_one_may_be_killed(
    killed: bool, folder: Path, finished: Done, home_with_database: NewHome, tmp_path: Path
) -> None:
    home_with_database(tmp_path / "home")
    own = {"HOPBENCH_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT), "SWEEP_PROCESSES": "2"}

    def started(out: str, kill_at: int) -> subprocess.Popen[str]:
        program = [sys.executable, "-m", "tests.support.sweep_to_kill", str(tmp_path / "notes"), str(kill_at), "before"]
        return subprocess.Popen(
            [*program, "sweep", "sweep.yaml", "--out", str(tmp_path / out), "--no-prefect"],
            cwd=folder,
            env={**os.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ended(process: subprocess.Popen[str], code: int = 0) -> str:
        printed, errors = process.communicate(timeout=300)
        assert process.returncode == code, errors
        return printed

    first, second = started("first", int(killed)), started("second", 0)
    ended(first, -signal.SIGKILL if killed else 0)
    ended(second)
    if killed:
        assert not (tmp_path / "first" / "trials.parquet").exists()
        out = ("--out", tmp_path / "first", "--no-prefect")
        resumed = call("sweep", folder / "sweep.yaml", *out, home=tmp_path / "home")
        assert (0, True) == (resumed.code, "16 of 16 trials were finished before" in resumed.out), resumed.err
    notes = (tmp_path / "notes").read_text().split()
    assert 16 == len(set(notes)) == len(notes) - killed  # only what was lost with its process is done again
    assert set(table(tmp_path / "first")["trial_id"]) == set(notes)
    pd.testing.assert_frame_equal(table(tmp_path / "first"), table(tmp_path / "second"))
    pd.testing.assert_frame_equal(without_time(table(folder / "whole")), without_time(table(tmp_path / "first")))
    _assert_tracked_once(tmp_path / "home", table(tmp_path / "first"))


def _assert_tracked_once(home: Path, rows: pd.DataFrame) -> None:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{home / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("hopbench/sweeps")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    children = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    assert (["sweep sweep"], ["FINISHED"]) == (
        [run.info.run_name[: len("sweep sweep")] for run in parents],
        [run.info.status for run in parents],
    )
    assert {parents[0].info.run_id} == {run.data.tags["mlflow.parentRunId"] for run in children}
    assert sorted(rows["trial_id"]) == sorted(run.data.tags["trial_id"] for run in children)
    by_id: dict[str, Any] = {run.data.tags["trial_id"]: run for run in children}
    for _, row in rows.iterrows():
        run = by_id[row["trial_id"]]
        assert (row["all_gold@10"], row["dataset"]) == (run.data.metrics["all_gold_at_10"], run.data.params["dataset"])
        assert "FINISHED" == run.info.status
    shown = json.loads(Path(client.download_artifacts(children[0].info.run_id, "questions.json")).read_text())
    assert {"question_id", "question", "all_gold@10", "failure"} <= set(shown["columns"])
    assert {3, 5} >= {len(shown["data"])}
    assert {"trials.parquet", "sweep.yaml", "best.yaml", "preset.yaml", "report.html"} == {
        f.path for f in client.list_artifacts(parents[0].info.run_id)
    }


def test_dry_run_counts_and_runs_nothing(folder: Path, tmp_path: Path, in_process: Run) -> None:
    done = in_process("sweep", str(folder / "sweep.yaml"), "--dry-run")
    assert 0 == done.exit_code, done.output
    assert "16 trials: 8 configurations × 2 data sets (tiny, again)" in done.output
    assert "2 graphs, 2 of them to be built" in done.output
    assert re.search(r"about \d+ (seconds|minutes) \(a guess", done.output)
    assert not (tmp_path / "home").exists()
    write_benchmark(tmp_path / "tiny")
    write_benchmark(tmp_path / "other", count=3)
    done = in_process("sweep", str(write_sweep(tmp_path, report_on="other")), "--dry-run")
    assert "2 graphs, 2 of them to be built" in done.output  # the winner is scored on one of them
    for content, message in (
        ({"store": "neo5j"}, "unknown store 'neo5j'"),
        ({"build": {"embedder": ["wordlama"]}}, "wordlama"),
        ({"build": {"extractor": ["rule"]}}, "unknown extractor 'rule'"),
    ):
        refused = in_process("sweep", str(write_sweep(tmp_path, **content)), "--dry-run")
        assert isinstance(refused.exception, InputError), content
        assert re.match(rf".*sweep\.yaml: .*{message}", str(refused.exception))


def test_a_step_that_does_not_divide_its_range_is_one_warning_of_ours(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "tiny")
    space = {"restart": {"low": 0.1, "high": 0.9, "step": 0.3}, "seed_chunks": {"low": 1, "high": 4, "step": 2}}
    file = write_sweep(tmp_path, search="bayesian", trials=4, grid={}, space=space)
    warnings = [
        "warning: pagerank: space.restart: steps of 0.3 do not reach 0.9: values from 0.1 to 0.7 are tried",
        "warning: pagerank: space.seed_chunks: steps of 2 do not reach 4: values from 1 to 3 are tried",
    ]
    for arguments in (["--dry-run"], ["--out", tmp_path / "out", "--no-prefect"]):
        done = call("sweep", file, *arguments, home=tmp_path / "home")
        assert (0, "") == (done.code, done.err)
        assert warnings == [line for line in done.out.splitlines() if "space." in line]


def test_bad_input_is_refused_before_anything_runs(tmp_path: Path, in_process: Run) -> None:
    write_benchmark(tmp_path / "tiny")
    for content, message in (
        ({"grid": {"restart": [7.0]}}, r"pagerank\.restart = 7\.0"),
        ({"datasets": ["hopwurld"]}, r"sweep\.yaml: datasets: unknown benchmark 'hopwurld'"),
        ({"store": "neo5j"}, "unknown store 'neo5j'"),
        ({"embedder": "wordlama"}, "wordlama"),
    ):
        file = write_sweep(tmp_path, **content)
        with pytest.raises(InputError, match=message):
            sweep(read_sweep(file), tmp_path / "o", prefect=False)
    assert not (tmp_path / "home" / "ledger.db").exists()
    assert isinstance(in_process("sweep", str(write_sweep(tmp_path))).exception, InputError)  # no --out
    assert isinstance(in_process("sweep").exception, InputError)  # no file


def test_a_reader_is_warned_of_what_flatters_or_wastes(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "tiny", role="report")
    plan = read_sweep(write_sweep(tmp_path, seeds=[0, 1]))
    flattering, wasteful = warnings_of_plan(plan, load_benchmarks(plan))
    assert flattering.startswith("tiny is for reporting")
    assert wasteful.startswith("seeds: their trials are equal")
    assert 2 * 4 == plan.trials
    plan = read_sweep(write_sweep(tmp_path, halving={"questions": 5}))
    assert (
        "halving.questions: 5 are all there are (5): nothing will be dropped"
        == warnings_of_plan(plan, load_benchmarks(plan))[1]
    )


def test_changed_settings_are_not_mixed_in_one_folder(tmp_path: Path) -> None:
    held = tmp_path / "sweep.json"
    first = hold(held, {"seed": 0, "code": "1"})
    assert first == hold(held, {"code": "1", "seed": 0})
    hold(held, {"graph of tiny": "f1"})
    with pytest.raises(InputError, match=r"code was \"1\", is \"2\".*Name another --out"):
        hold(held, {"seed": 0, "code": "2"})
    with pytest.raises(InputError, match=r"graph of tiny was \"f1\", is \"f2\""):
        hold(held, {"graph of tiny": "f2"})
    entry = {"strategy": "pagerank", "base": {"related_weight": 0.0}, "grid": {"restart": [0.1, 0.3], "steps": [4]}}
    hold(held, {"strategy": [entry]})
    with pytest.raises(InputError, match=r": strategy\.0\.grid\.restart was \[0\.1, 0\.3\], is \[0\.1, 0\.2\]\. Name"):
        hold(held, {"strategy": [{**entry, "grid": {"restart": [0.1, 0.2], "steps": [4]}}]})
    with pytest.raises(InputError, match=r"strategy was \[.*, is \[\]"):
        hold(held, {"strategy": []})


def test_a_sweep_is_another_one_when_choice_and_report_change_places(tmp_path: Path) -> None:
    for name, count in (("one", 5), ("two", 3)):
        write_benchmark(tmp_path / name, count=count)
    told = []
    for first, second in (("one", "two"), ("two", "one")):
        plan = read_sweep(write_sweep(tmp_path, datasets=[first], report_on=second))
        told.append(identity(plan, load_benchmarks(plan)))
    held = tmp_path / "sweep.json"
    hold(held, told[0])
    with pytest.raises(InputError, match=r"data\.one was .*, is null; data\.two was null.*report_on\.two was"):
        hold(held, told[1])


def test_a_trial_that_failed_is_told_not_kept_and_done_again(
    tmp_path: Path, in_process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopbench.flows.sweeps.flow.Tracker", QuietTracker)
    write_benchmark(tmp_path / "tiny")
    command = ("sweep", str(write_sweep(tmp_path)), "--out", str(tmp_path / "o"), "--no-prefect")

    def away(*_: object) -> Any:
        raise OSError("the model is away")

    with monkeypatch.context() as patch:
        patch.setattr(PageRank, "rank", away)
        first = in_process(*command)
    assert isinstance(first.exception, IncompleteError)
    assert "5 of 5 questions failed" in first.output
    assert "4 trials: these are not kept" in str(first.exception)
    second = in_process(*command)
    assert 0 == second.exit_code, second.output
    assert "finished before" not in second.output
    assert 0 == pd.read_parquet(tmp_path / "o" / "trials.parquet")["failures"].sum()


def test_questions_are_a_seeded_subset_in_their_order(folder: Path) -> None:
    benchmark = load_benchmark(folder / "tiny")
    chosen = sampled(benchmark, 3, 1).questions
    assert chosen == sampled(benchmark, 3, 1).questions
    assert [q for q in benchmark.questions if q in chosen] == list(chosen)
    assert 3 == len(chosen)
    assert len({tuple(q.id for q in sampled(benchmark, 3, seed).questions) for seed in range(20)}) > 1
    assert benchmark is sampled(benchmark, 5, 1)


def fake(candidate: Candidate, metrics: dict[str, float], costs: dict[str, float] | None = None) -> Result:
    rows = pd.DataFrame({"all_gold@10": [1.0, 0.0], "failure": [None, None]})
    record = TrialRecord("id", {}, metrics, rows, 0, 1.0, 0.0, 1.0, costs or {})
    return Result(candidate, {Cell("a"): record})


def test_ties_go_to_the_second_metric_then_to_the_smaller_parameters(folder: Path) -> None:
    candidates = read_sweep(folder / "sweep.yaml").candidates
    scores = [(0.5, 0.1), (0.5, 0.3), (0.6, 0.0), (0.5, 0.3)]
    chosen = [candidates[n] for n in (6, 4, 2, 0)]
    results = [
        fake(candidate, {"all_gold@10": first, "recall@5": second})
        for candidate, (first, second) in zip(chosen, scores, strict=True)
    ]
    # The last has restart .15, the second .5; their texts differ first there.
    assert [2, 3, 1, 0] == [results.index(one) for one in ranked(results, Objective(), {})]


def test_what_breaks_a_constraint_or_was_dropped_ranks_below_what_does_not(folder: Path) -> None:
    candidates = read_sweep(folder / "sweep.yaml").candidates
    slow, fast, unknown = (
        fake(candidate, {"all_gold@10": score, "recall@5": 0.0}, costs)
        for candidate, score, costs in zip(
            candidates,
            (0.9, 0.5, 0.8),
            ({"latency_ms_p95": 90.0}, {"latency_ms_p95": 9.0}, {}),
            strict=False,
        )
    )
    early, earlier = replace(slow, dropped_at=6), replace(slow, dropped_at=2)
    limits = {"latency_ms_p95": 10.0}
    assert [fast, slow, unknown, early, earlier] == ranked([earlier, early, unknown, slow, fast], Objective(), limits)
    assert (["latency_ms_p95"], [], ["latency_ms_p95"]) == tuple(one.violated(limits) for one in (slow, fast, unknown))
