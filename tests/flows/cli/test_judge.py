"""`run` with a reader and a judge, --dry-run, --budget and judge-check, as a user runs them, on a scripted server."""

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
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.flows.cli.conftest import Done, Hopbench, call
from tests.flows.run.test_end_to_end import without_timings
from tests.support.judging import scripted_model
from tests.support.llm_servers.scripted import ScriptedServer
from tests.support.places import ROOT

KEY, JUDGE_KEY = "sk-planted-reader-4711", "sk-planted-judge-4712"
LABELS = ["--strategies", "bm25,vector", "--no-prefect"]
METRICS = "context_precision,faithfulness"


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(scripted_model, latency=0.05).running() as running:
        yield running


def models(server: ScriptedServer) -> list[str]:
    return ["--llm", f"reader@{server.url}", "--judge", f"judge@{server.url}", "--judge-metrics", METRICS]


@pytest.fixture(scope="module")
def judged(
    server: ScriptedServer, bench: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, Done, int]:
    """A whole run in a home of its own: home, out, what it printed, how many requests it took."""
    home, out = tmp_path_factory.mktemp("judged-home"), tmp_path_factory.mktemp("judged") / "out"
    before = len(server.requests)
    keys = {"OPENAI_API_KEY": KEY, "JUDGE_API_KEY": JUDGE_KEY}
    done = call("run", "--dataset", bench, *LABELS, "--out", out, *models(server), home=home, environment=keys)
    return home, out, done, len(server.requests) - before


def results(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return content


def test_a_run_answers_and_judges(judged: tuple[Path, Path, Done, int], server: ScriptedServer) -> None:
    home, out, done, asked = judged
    assert (0, "") == (done.code, done.err)
    entry = results(out)
    assert {"bm25", "vector", "closed_book"} == set(entry["strategies"])
    assert {"llm": f"reader@{server.url}", "prompt": "reader 1"} == entry["reader"]
    assert ("full", 1) == (entry["judge"]["profile"], entry["judge"]["repeats"])
    bm25, closed = entry["strategies"]["bm25"], entry["strategies"]["closed_book"]
    assert {"answer_em", "answer_f1", "context_precision", "faithfulness"} <= set(bm25["metrics"])
    assert {"answer_em", "answer_f1"} == set(closed["metrics"])  # no context, no metric of contexts
    assert 1.0 == bm25["measured"]["faithfulness"] == bm25["judged"]["faithfulness"]["coverage"]
    # 4 questions, a call each; a call for each part of the contexts, which are 17; 2 calls for faithfulness.
    assert (4, 17 + 4 * 2) == (bm25["llm_calls"], bm25["judge_calls"])
    assert bm25["tokens"] > 0
    assert asked <= 3 * 4 + 2 * 4 * 7  # equal contexts of two labels are judged once
    table = pd.read_parquet(out / "questions.parquet")
    assert {"answer", "answer_failure", "answer_em", "faithfulness", "judge_failure"} <= set(table)
    assert 3 * 4 == len(table)
    rows = pd.read_parquet(out / "judgements.parquet")
    assert 2 * 4 * 2 == len(rows)
    assert rows["failure"].isna().all()
    assert "closed_book" in done.out
    assert "Answers and judges" in (out / "report.html").read_text(encoding="utf-8")
    assert home.is_dir()


def test_mlflow_has_the_scores_the_models_and_what_the_calls_took(judged: tuple[Path, Path, Done, int]) -> None:
    with closing(sqlite3.connect(judged[0] / "mlflow.db")) as mlflow:
        metrics = {row[0] for row in mlflow.execute("SELECT DISTINCT key FROM metrics")}
        params = {row[0] for row in mlflow.execute("SELECT DISTINCT key FROM params")}
    assert {"answer_f1", "faithfulness", "faithfulness.coverage", "judge_calls", "calls.answer.tokens_in"} <= metrics
    assert {"llm", "judge", "judge_profile", "repeats"} <= params


def test_each_judged_question_is_a_trace_with_its_scores(judged: tuple[Path, Path, Done, int]) -> None:
    with closing(sqlite3.connect(judged[0] / "mlflow.db")) as mlflow:
        (traces,) = mlflow.execute("SELECT COUNT(*) FROM trace_info").fetchone()
        spans = dict(mlflow.execute("SELECT name, COUNT(*) FROM spans GROUP BY name"))
        scores = dict(mlflow.execute("SELECT name, COUNT(*) FROM assessments GROUP BY name"))
        found = [json.loads(row[0]) for row in mlflow.execute("SELECT content FROM spans WHERE name = 'retrieve'")]
    # bm25 and vector have contexts to judge, and 4 questions each; closed_book has none and is not judged.
    assert (8, {"question": 8, "retrieve": 8, "answer": 8}) == (traces, spans)
    assert (8, 8, 8) == (scores["faithfulness"], scores["context_precision"], scores["expected_response"])
    assert all(json.loads(span["attributes"]["mlflow.spanOutputs"]) for span in found)


def test_no_key_stands_in_any_file(judged: tuple[Path, Path, Done, int]) -> None:
    home, out, done, _ = judged
    planted = (KEY.encode(), JUDGE_KEY.encode())
    files = [file for folder in (home, out) for file in folder.rglob("*") if file.is_file()]
    assert len(files) > 10
    assert [] == [file for file in files if any(key in file.read_bytes() for key in planted)]
    assert KEY not in done.out + done.err


@pytest.mark.prefect
def test_no_key_stands_in_prefect_s_database_nor_where_a_server_repeats_it(
    judged: tuple[Path, Path, Done, int], server: ScriptedServer, bench: Path, tmp_path: Path, prefect_runtime: Any
) -> None:
    home, out = judged[0], tmp_path / "out"
    with ScriptedServer(scripted_model, faults={"500": 1.0}).running() as careless:  # its errors quote the key
        asked = ["--llm", f"reader@{server.url}", "--judge", f"judge@{careless.url}", "--judge-metrics", METRICS]
        command = ["run", "--dataset", bench, *LABELS[:2], "--out", out, *asked]
        env = {"PREFECT_API_URL": prefect_runtime.api_url, "OPENAI_API_KEY": KEY, "JUDGE_API_KEY": JUDGE_KEY}
        done = call(*command, home=home, environment=env)
    assert 4 == done.code, done.err  # nothing was judged
    reasons = pd.read_parquet(out / "questions.parquet")["judge_failure"].dropna()
    assert reasons.str.contains("no luck with key \\*\\*\\*").any()
    folders = [home, out, Path(os.environ["PREFECT_HOME"])]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    assert {"mlflow.db", "questions.parquet"} <= {file.name for file in files}
    assert any("prefect" in file.name and ".db" in file.name for file in files)
    assert [] == [file for file in files if any(key.encode() in file.read_bytes() for key in (KEY, JUDGE_KEY))]
    assert not any(key in done.out + done.err for key in (KEY, JUDGE_KEY))


def test_each_role_sends_its_own_key(judged: tuple[Path, Path, Done, int], server: ScriptedServer) -> None:
    assert {"reader", "judge"} == {body["model"] for body in server.requests}


def test_kill_9_while_judging_then_again_repeats_no_finished_call(
    judged: tuple[Path, Path, Done, int], server: ScriptedServer, bench: Path, tmp_path: Path
) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    arguments = ["run", "--dataset", str(bench), *LABELS, "--out", str(out), *models(server)]
    # MLflow's database of the first run: making one takes longer than the run.
    tracking = f"sqlite:///{judged[0] / 'mlflow.db'}"
    keys = {"OPENAI_API_KEY": KEY, "JUDGE_API_KEY": JUDGE_KEY, "MLFLOW_TRACKING_URI": tracking}
    env = {**os.environ, "HOPBENCH_HOME": str(home), **keys}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.untracked", *arguments],
        env=env,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    judgements = home / "judgements.db"
    deadline = time.monotonic() + 120
    while _count(judgements, "judgements") < 4:
        assert process.poll() is None, process.stderr and process.stderr.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (out / "results.json").exists()
    finished = _count(home / "cache" / "llm" / "llm.sqlite", "replies")
    assert 0 < finished < judged[3]
    time.sleep(0.2)  # requests in flight reach the server and are counted
    before = len(server.requests)

    again = call(*arguments, home=home, environment=keys)

    assert (0, "") == (again.code, again.err)
    assert judged[3] - finished == len(server.requests) - before
    assert without_timings(results(judged[1])) == without_timings(results(out))
    columns = pd.read_parquet(out / "questions.parquet").drop(columns="latency_ms")
    pd.testing.assert_frame_equal(pd.read_parquet(judged[1] / "questions.parquet").drop(columns="latency_ms"), columns)


def _count(file: Path, table: str) -> int:
    if not file.is_file():
        return 0
    with closing(sqlite3.connect(file, timeout=10)) as connection:
        try:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def test_dry_run_estimates_and_asks_nothing(
    server: ScriptedServer, bench: Path, judged: tuple[Path, Path, Done, int], tmp_path: Path
) -> None:
    before = len(server.requests)
    asked = ["--llm", f"gpt-4o-mini@{server.url}", "--judge", f"unpriced@{server.url}", "--dry-run"]
    done = call("run", "--dataset", bench, *LABELS, "--out", tmp_path / "out", *asked, home=judged[0])
    assert (0, "") == (done.code, done.err)
    assert before == len(server.requests)
    assert not (tmp_path / "out").exists()
    told = [line.split() for line in done.out.splitlines()]
    lines = {(line[0], line[1]): line[2:] for line in told if len(line) == 7 or "not" in line}
    assert "4" == lines["bm25", "answer"][0]
    assert "17" == lines["bm25", "judge:context_precision"][0]  # as the run had them
    assert "8" == lines["vector", "judge:faithfulness"][0]
    assert ("closed_book", "judge:faithfulness") not in lines
    assert "the price of unpriced is not known" in done.out


def test_dry_run_tells_of_summaries_that_only_a_built_graph_can_count(
    server: ScriptedServer, bench: Path, judged: tuple[Path, Path, Done, int], tmp_path: Path
) -> None:
    flags = ["--strategies", "dual_level", "--out", tmp_path / "out", "--llm", f"m@{server.url}", "--dry-run"]
    before = call("run", "--dataset", bench, *flags, home=tmp_path / "home")
    after = call("run", "--dataset", bench, *flags, home=judged[0])

    assert (0, 0) == (before.code, after.code)
    assert "not counted: dual_level also has each community" in before.out
    assert "not counted" not in after.out
    (summaries,) = [line.split() for line in after.out.splitlines() if "summaries" in line]
    assert 0 < int(summaries[2]) < 12  # no more communities than passages


def test_the_budget_ends_a_run_with_4_and_the_same_command_judges_the_finalists(
    server: ScriptedServer, bench: Path, judged: tuple[Path, Path, Done, int], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    only = ["--judge-on", "finalists:1", "--judge-profile", "compact", "--repeats", "2"]
    reader = ["--llm", f"gpt-4o@{server.url}", "--judge", f"judge@{server.url}", "--judge-metrics", METRICS]
    command = ["run", "--dataset", bench, *LABELS, "--out", out, *reader, *only]
    capped = call(*command, "--budget", "0.0001", home=judged[0])
    assert 4 == capped.code
    assert "--budget" in capped.err
    assert not (out / "results.json").exists()
    assert list((out / ".unfinished").glob("*.trial"))

    done = call(*command, "--budget", "5", home=judged[0])

    assert (0, "") == (done.code, done.err)
    entry = results(out)
    scores = {label: one["metrics"].get("all_gold@10", -1) for label, one in entry["strategies"].items()}
    best = min(scores, key=lambda label: (-scores[label], label))
    assert [best] == entry["judge"]["labels"]
    assert {best} == {label for label, one in entry["strategies"].items() if "judged" in one}
    assert 0.0 == entry["strategies"][best]["judged"]["faithfulness"]["judge_sd"]  # the scripted model never wavers
    assert 2 * 2 * 4 == entry["strategies"][best]["judge_calls"]


def test_judge_check_compares_the_profiles_on_the_users_model(
    server: ScriptedServer, bench: Path, judged: tuple[Path, Path, Done, int], tmp_path: Path
) -> None:
    command = ["judge-check", "--dataset", bench, "--judge", f"judge@{server.url}", "--samples", "4", "--out", tmp_path]
    done = call(*command, "--judge-metrics", METRICS, home=judged[0])
    assert (0, "") == (done.code, done.err)
    content = json.loads((tmp_path / "judge-check.json").read_text(encoding="utf-8"))
    found = {one["metric"]: one for one in content["agreement"]}
    assert {"context_precision", "faithfulness", "all"} == set(found)
    assert (17, 4) == (found["context_precision"]["full"]["calls"], found["context_precision"]["compact"]["calls"])
    assert found["all"]["prompt_tokens_ratio"] > 2
    assert (
        found["all"]["difference"]["low"] <= found["all"]["difference"]["value"] <= found["all"]["difference"]["high"]
    )
    before = len(server.requests)
    assert 0 == call(*command, "--judge-metrics", METRICS, home=judged[0]).code
    assert before == len(server.requests)  # what was judged is kept in --out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--judge", "m@http://127.0.0.1:9/v1", "--judge-on", "some"], "finalists"),
        (["--judge", "m@http://127.0.0.1:9/v1", "--judge-profile", "short"], "compact"),
        (["--judge", "m@http://127.0.0.1:9/v1", "--judge-metrics", "faithfullness"], "Did you mean 'faithfulness'?"),
        (["--repeats", "2"], "name one with --judge"),
        (
            ["--judge", "m@http://127.0.0.1:9/v1", "--judge-metrics", METRICS],
            "faithfulness: they judge answers",
        ),
        (["--llm", "m@http://127.0.0.1:9/v1", "--budget", "0"], "above 0"),
        (["--llm", "m@http://127.0.0.1:9/v1", "--budget", "nan"], "finite number"),
        (["--llm", "gpt-4o"], "OPENAI_API_KEY"),
        (["--llm", "m@http://127.0.0.1:9/v1", "--runner", "processes"], "--runner threads"),
        (["--dry-run"], "name one with --llm or --judge"),
        (["--reasoning-effort", "low"], "--reasoning-effort: no language model is asked: name one with --llm"),
        (["--completion-tokens", "900"], "--completion-tokens: no language model is asked"),
        (["--llm", "m@http://127.0.0.1:9/v1", "--reasoning-effort", "very high"], "a word such as none, low"),
        (["--llm", "m@http://127.0.0.1:9/v1", "--completion-tokens", "0"], "--completion-tokens"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_any_work(
    flags: list[str], said: str, hopbench: Hopbench, bench: Path, tmp_path: Path
) -> None:
    labels = LABELS[:2] if "--runner" in flags else LABELS
    done = hopbench("run", "--dataset", bench, *labels, "--out", tmp_path / "out", *flags)
    assert 2 == done.code
    assert said in done.err
    assert not (tmp_path / "out").exists()
