"""Answers and judges in sweeps: which trials are read, what is kept, what a user sees, on a scripted server."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from tests.support.judging import scripted_model
from tests.support.llm_servers.scripted import ScriptedServer
from tests.support.sweeps import QuietTracker, write_benchmark, write_sweep
from typer.testing import CliRunner

from hopbench.eval.answering.judge import open_judge
from hopbench.eval.answering.judge.schedule import JudgementStore
from hopbench.eval.answering.reading import Reading
from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.sweep.plan import read_sweep
from hopbench.eval.trials.ledger import Ledger
from hopbench.flows.cli.main import app
from hopbench.flows.sweeps.flow import identity, sweep
from hopbench.flows.sweeps.inputs import model_lines, model_options, questions_read
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.llm import LLM, BudgetReached, CallLedger, Endpoint
from hopbench.retrieval.support.errors import InputError

METRICS = ["context_precision", "faithfulness"]
CONTEXTS = ["context_precision", "context_recall"]
GRID = {"restart": [0.15, 0.5]}
JUDGED = {"answer_em", "answer_f1", *METRICS}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(scripted_model).running() as running:
        yield running


def models(server: ScriptedServer, **more: object) -> dict[str, object]:
    asked = {"llm": f"reader@{server.url}", "judge": f"judge@{server.url}", "judge_profile": "compact"}
    return {"grid": GRID, **asked, "judge_metrics": METRICS, **more}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("read")
    write_benchmark(folder / "tiny")
    return folder


@pytest.fixture(scope="module")
def home(folder: Path) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOPBENCH_HOME", str(folder / "home"))
        yield folder / "home"


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps without MLflow."""
    monkeypatch.setattr("hopbench.flows.sweeps.flow.Tracker", QuietTracker)


@pytest.fixture(scope="module")
def judged(folder: Path, home: Path, server: ScriptedServer) -> tuple[pd.DataFrame, int]:
    """Two configurations, each answered and judged: the table, and how many requests that took."""
    before = len(server.requests)
    file = write_sweep(folder, **models(server), objective={"metric": "faithfulness"})
    swept = sweep(read_sweep(file), folder / "all", prefect=False)
    assert [] == list(swept.incomplete)
    return table(folder / "all"), len(server.requests) - before


def table(out: Path) -> pd.DataFrame:
    return pd.read_parquet(out / "trials.parquet")


def settings_of(home: Path, trial: str) -> dict[str, Any]:
    with Ledger.open(home / "ledger.db") as ledger:
        record = ledger.get(trial)
    assert record is not None
    return dict(record.settings)


def test_every_trial_is_answered_and_judged_and_its_id_says_by_whom(
    judged: tuple[pd.DataFrame, int], folder: Path, home: Path, server: ScriptedServer
) -> None:
    rows, asked = judged
    assert 2 == len(rows)
    assert set(rows) >= JUDGED | {"faithfulness.coverage", "judge_calls", "judge_tokens", "read_coverage"}
    assert (rows[[*JUDGED]].notna().all()).all()
    assert rows["faithfulness"].is_monotonic_decreasing  # the objective
    # 5 questions: an answer each, and two judgements of one call each; equal contexts of both trials are asked once.
    assert [5.0, 5.0] == rows["llm_calls"].tolist()
    assert [10.0, 10.0] == rows["judge_calls"].tolist()
    assert 15 <= asked <= 30
    own = settings_of(home, rows["trial_id"][0])
    assert f"reader@{server.url}" == own["reader"]["llm"]
    assert ("judge", "compact", 1, METRICS) == (
        own["judge"]["model"],
        own["judge"]["profile"],
        own["judge"]["repeats"],
        list(own["judge"]["versions"]),
    )


def test_report_mlflow_and_the_ready_file_show_readers_and_scores(
    judged: tuple[pd.DataFrame, int], folder: Path, home: Path, server: ScriptedServer
) -> None:
    page = (folder / "all" / "report.html").read_text(encoding="utf-8")
    assert "Answers and judges" in page
    assert f"Judged by judge@{server.url}, profile compact" in page
    assert "judge:faithfulness" in page  # calls of this sweep
    ready = yaml.safe_load((folder / "all" / "best.yaml").read_text())
    assert (f"reader@{server.url}", f"judge@{server.url}", "compact") == (
        ready["llm"],
        ready["judge"],
        ready["judge_profile"],
    )
    with closing(sqlite3.connect(home / "mlflow.db")) as mlflow:
        shown = dict(mlflow.execute("SELECT key, value FROM metrics WHERE key LIKE 'faithfulness%'"))
        params = {row[0] for row in mlflow.execute("SELECT DISTINCT key FROM params")}
        calls = {row[0] for row in mlflow.execute("SELECT DISTINCT key FROM metrics WHERE key LIKE 'calls.%'")}
    assert {"faithfulness", "faithfulness.coverage"} <= set(shown)
    assert {"llm", "judge", "judge_profile"} <= params
    assert "calls.judge.faithfulness.tokens_in" in calls


def test_the_winner_s_scores_are_those_that_run_finds(
    judged: tuple[pd.DataFrame, int], folder: Path, home: Path, server: ScriptedServer
) -> None:
    before = len(server.requests)
    done = CliRunner().invoke(
        app, ["run", "--config", str(folder / "all" / "best.yaml"), "--out", str(folder / "run"), "--no-prefect"]
    )
    assert 0 == done.exit_code, done.output
    found = json.loads((folder / "run" / "results.json").read_text())["strategies"]
    (label,) = (label for label in found if label != "closed_book")
    first = judged[0].iloc[0]
    assert {name: first[name] for name in JUDGED} == {name: found[label]["metrics"][name] for name in JUDGED}
    assert 5 == len(server.requests) - before  # closed book: the rest is known already


@pytest.mark.usefixtures("quiet")
def test_finalists_alone_are_read_and_nothing_is_paid_twice(
    judged: tuple[pd.DataFrame, int], folder: Path, home: Path, server: ScriptedServer
) -> None:
    before = len(server.requests)
    file = write_sweep(folder, **models(server, judge_on="finalists:1"))
    sweep(read_sweep(file), folder / "finalists", prefect=False)
    rows = table(folder / "finalists")
    assert [True, False] == rows["faithfulness"].notna().tolist()
    assert [True, False] == rows["answer_f1"].notna().tolist()
    assert rows["all_gold@10"].is_monotonic_decreasing
    assert rows["trial_id"][0] in set(judged[0]["trial_id"])  # the very trial that the other sweep has finished
    assert rows["trial_id"][1] not in set(judged[0]["trial_id"])
    assert "judge" not in settings_of(home, rows["trial_id"][1])
    assert before == len(server.requests)
    assert "Only the best 1 by all_gold@10 were read" in (folder / "finalists" / "report.html").read_text()


@pytest.mark.soak  # `make test` kills a run while it judges
def test_kill_9_while_judging_then_again_repeats_no_finished_call(
    judged: tuple[pd.DataFrame, int], folder: Path, home: Path, tmp_path: Path
) -> None:
    with ScriptedServer(scripted_model, latency=0.1).running() as slow:
        file = write_sweep(folder, **models(slow), objective={"metric": "faithfulness"})
        arguments = ["sweep", str(file), "--out", str(tmp_path / "out"), "--no-prefect"]
        tracking = f"sqlite:///{home / 'mlflow.db'}"  # making one takes longer than the sweep
        env = {**os.environ, "HOPBENCH_HOME": str(tmp_path / "home"), "MLFLOW_TRACKING_URI": tracking}
        command = [sys.executable, "-m", "hopbench.flows.cli.main", *arguments]
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        while _count(tmp_path / "home" / "judgements.db", "judgements") < 2:
            assert process.poll() is None, process.stderr and process.stderr.read().decode()
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        finished = _count(tmp_path / "home" / "cache" / "llm" / "llm.sqlite", "replies")
        assert 0 < finished < judged[1]
        time.sleep(0.3)  # requests in flight reach the server and are counted
        before = len(slow.requests)
        again = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert (0, judged[1] - finished) == (again.returncode, len(slow.requests) - before), again.stderr
    compared = ["params", "all_gold@10", *sorted(JUDGED), "judge_calls", "judge_tokens"]
    pd.testing.assert_frame_equal(judged[0][compared], table(tmp_path / "out")[compared])


def _count(file: Path, name: str) -> int:
    if not file.is_file():
        return 0
    with closing(sqlite3.connect(file, timeout=10)) as connection:
        try:
            return int(connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


@pytest.mark.usefixtures("quiet")
def test_the_budget_stops_a_sweep_and_a_higher_one_goes_on(folder: Path, home: Path, server: ScriptedServer) -> None:
    file = write_sweep(folder, **models(server, llm=f"gpt-4o@{server.url}", budget=0.0001, grid={"restart": [0.3]}))
    with pytest.raises(BudgetReached, match=r"budget of \$0\.0001"):
        sweep(read_sweep(file), folder / "capped", prefect=False)
    assert 4 == BudgetReached.exit_code
    assert not (folder / "capped" / "trials.parquet").exists()
    swept = sweep(read_sweep(file, {"budget": 5.0}), folder / "capped", prefect=False)
    assert (1, []) == (len(swept.results), list(swept.incomplete))


@pytest.mark.usefixtures("quiet")
def test_what_models_did_not_say_is_told_not_kept_and_asked_again(folder: Path, home: Path) -> None:
    with ScriptedServer(scripted_model, faults={"empty": 1.0}).running() as dumb:
        file = write_sweep(folder, **models(dumb, grid={"restart": [0.25]}, answers=True, judge=None, judge_metrics=[]))
        first = sweep(read_sweep(file), folder / "dumb", prefect=False)
        (told,) = first.incomplete
        assert "answers or judgements cover 0.0%" in told
        assert [0.0] == table(folder / "dumb")["answer_f1"].tolist()
        name = table(folder / "dumb")["trial_id"][0]
        assert {"empty choice"} == {
            reason.partition(":")[0]
            for record in first.results[0].records.values()
            for reason in record.questions["answer_failure"]
        }
        with Ledger.open(home / "ledger.db") as ledger:
            assert ledger.get(name) is None
        assert "FAILED" == _status(name)  # which the tracker writes anew, and a FINISHED one not
        dumb.faults = {}
        second = sweep(read_sweep(file), folder / "dumb", prefect=False)
    assert [] == list(second.incomplete)
    assert "FINISHED" == _status(name)
    assert 1.0 == table(folder / "dumb")["read_coverage"][0]


def _status(trial: str) -> str:
    (found,) = [run.status for run in QuietTracker.latest.payloads if run.tags.get("trial_id") == trial]
    return found


def test_an_id_tells_judge_profile_metrics_repeats_and_reader(tmp_path: Path) -> None:
    embedder = get_embedder("wordllama")
    ledger = CallLedger()
    with JudgementStore.open(tmp_path / "j.db") as store:

        def reading(model: str = "m", profile: str = "compact", reader: str | None = None, **more: Any) -> str:
            llm = LLM(Endpoint(model, "http://127.0.0.1:9/v1"), None, ledger)
            said = None if reader is None else LLM(Endpoint(reader, "http://127.0.0.1:9/v1"), None, ledger)
            found = Reading(said, open_judge(profile, llm, embedder, store), **{"metrics": CONTEXTS, **more})
            assert found.settings() == replace(found, closed_book=False).settings()
            return json.dumps(found.settings(), sort_keys=True)

        changed = [
            reading(),
            reading(model="n"),
            reading(profile="full"),
            reading(metrics=CONTEXTS[:1]),
            reading(repeats=2),
            reading(reader="r"),
            reading(reader="s"),
        ]
    ledger.close()
    assert len(changed) == len(set(changed))
    assert {} == Reading().settings()


def test_dry_run_counts_what_models_would_be_asked(folder: Path, home: Path, server: ScriptedServer) -> None:
    before = len(server.requests)
    file = write_sweep(folder, **models(server))
    plan = read_sweep(file)
    done = CliRunner().invoke(app, ["sweep", str(file), "--dry-run"])
    assert 0 == done.exit_code, done.output
    assert before == len(server.requests)
    from hopbench.flows.sweeps.inputs import load_benchmarks

    lines = {line.purpose: line for line in model_lines(plan, load_benchmarks(plan))}
    # 2 configurations × 5 questions; the compact profile asks once for each metric where there is a context, and BM25,
    # whose contexts stand in for the trials', finds one for 4 of them.
    assert {"answer": 10.0, "judge:context_precision": 8.0, "judge:faithfulness": 8.0} == {
        purpose: line.calls for purpose, line in lines.items()
    }
    assert "judge:faithfulness" in done.output
    assert "the price of judge, reader is not known" in done.output


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({}, 4 * 30),
        ({"judge_on": "finalists:3"}, 3 * 30),
        ({"questions": 10, "seeds": [0, 1, 2]}, 4 * 10 * 3),
        # 3 of 4 configurations end with 9 questions, the best goes on to all 30.
        ({"halving": {"questions": 9, "factor": 4}}, 3 * 9 + 1 * 30),
    ],
)
def test_questions_read_at_most(more: dict[str, object], asked: int, folder: Path, server: ScriptedServer) -> None:
    plan = read_sweep(write_sweep(folder, **models(server, grid={"restart": [0.1, 0.2, 0.3, 0.4]}, **more)))
    assert asked == questions_read(plan, plan.datasets[0], 30)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"judge": "m", "judge_on": "some"}, "judge_on: 'some': all, finalists or finalists:N"),
        ({"judge": "m", "judge_metrics": ["faithfullness"]}, "Did you mean 'faithfulness'"),
        ({"judge": "m", "judge_profile": "short"}, "judge_profile: Input should be 'full' or 'compact'"),
        ({"judge_metrics": METRICS}, "need a judge"),
        ({"judge_on": "finalists"}, "judge_on needs a judge or answers"),
        ({"answers": True}, "by which model"),
        ({"budget": 5}, "no language model is asked"),
        ({"judge": "m", "budget": 0}, "budget"),
        ({"reasoning_effort": "low"}, "reasoning_effort: no language model is asked"),
        ({"llm": "m", "completion_tokens": 0}, "completion_tokens"),
        ({"objective": {"metric": "faithfulness"}}, "faithfulness is not judged here"),
        ({"judge": "m", "objective": {"metric": "faithfulness"}}, "faithfulness is not judged here"),  # no answers
        ({"llm": "m", "objective": {"metric": "answer_f1"}}, "answer_f1 needs answers"),
        (
            {"judge": "m", "judge_on": "finalists", "objective": {"metric": "context_recall"}},
            "known of all trials only with judge_on: all",
        ),
        ({"objective": {"metric": "non_llm_context_recall"}}, "leave out ragas: false"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_field(content: dict[str, Any], said: str, folder: Path) -> None:
    with pytest.raises(InputError, match=said):
        read_sweep(write_sweep(folder, **content))


def test_effort_and_budget_of_a_file_are_those_of_its_models_and_flags_win(folder: Path) -> None:
    url = "http://127.0.0.1:9/v1"
    asked = {"llm": f"m@{url}", "judge": f"j@{url}", "reasoning_effort": "low", "completion_tokens": 900}
    plain = read_sweep(write_sweep(folder, llm=f"m@{url}", judge=f"j@{url}"))
    plan = read_sweep(write_sweep(folder, **asked), {"completion_tokens": 1200})
    wanted = {"reasoning_effort": "low", "completion_tokens": 1200}
    assert [wanted, wanted] == [one.asked for one in model_options(plan.content).endpoints().values()]
    data = {name: load_benchmark(name) for name in (*plan.datasets, *plain.datasets)}
    assert wanted.items() <= identity(plan, data).items()
    assert not wanted.keys() & identity(plain, data).keys()  # as before these fields were there
