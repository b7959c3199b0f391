"""Runs written to a real MLflow database by the writer process, and read back with MLflow's own client."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import (
    WAITING_SECONDS,
    Tracker,
    TrackingError,
    may_go_back,
    tracking_uri,
    writers_lock,
)
from hopbench.flows.tracking.payload import (
    MAX_PARAM,
    RunPayload,
    Tag,
    mlflow_dataset,
    mlflow_name,
    redact,
    secrets,
    to_message,
)
from hopbench.flows.tracking.writer import NICENESS, Writer, answer, serve
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

SECRET = "sk-planted-0123456789"
PASSWORD = "hunter22-planted"


@pytest.fixture(scope="module")
def home(home_with_database: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """One database for the whole file, which was made before: that takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        patch.setenv("OPENAI_API_KEY", SECRET)
        patch.setenv("NEO4J_PASSWORD", PASSWORD)
        place = Home(home_with_database(tmp_path_factory.mktemp("mlflow-home")))
        for name, value in place.environment(os.environ).items():
            patch.setenv(name, value)
        yield place


@pytest.fixture(scope="module")
def client(home: Home) -> MlflowClient:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=tracking_uri(home), registry_uri=tracking_uri(home))


def runs(client: MlflowClient, experiment: str, key: str = "") -> list[Run]:
    found = client.get_experiment_by_name(experiment)
    where = f"tags.`{Tag.KEY}` = '{key}'" if key else ""
    return list(client.search_runs([found.experiment_id], where)) if found else []


def trial(number: int, **more: Any) -> RunPayload:
    return RunPayload(f"night/{number}", f"trial {number}", parent_key="night", **more)


def test_names_become_what_mlflow_accepts() -> None:
    assert mlflow_name("recall@5") == "recall_at_5"
    assert mlflow_name("graph_expansion[min_score=.3]") == "graph_expansion_min_score_.3_"
    assert len(mlflow_name("x" * 300)) == 250


def test_two_names_that_become_one_are_refused() -> None:
    with pytest.raises(InputError, match=r"metric 'recall_at_5'.*rename one"):
        to_message(RunPayload("k", "n", metrics={"recall@5": 0.1, "recall_at_5": 0.2}))


def test_secret_names_are_dropped_and_secret_values_hidden() -> None:
    found = secrets({"OPENAI_API_KEY": SECRET, "NEO4J_PASSWORD": PASSWORD, "HF_TOKEN": "x", "MAX_TOKENS": "1234567"})
    assert found == (SECRET, PASSWORD)
    assert redact(f"key={SECRET}!", found) == "key=[redacted]!"
    assert redact("postgresql://me:pw@host/db", ()) == "postgresql://[redacted]@host/db"
    kept = {"max_tokens": 5, "build_key": "b", "token_budget": 7, "llm": "gpt"}
    dropped = {"api_key": "a", "openai_api_key": "b", "password": "c", "auth_token": "d", "token": "e"}
    assert to_message(RunPayload("k", "n", params=kept | dropped))["params"].keys() == kept.keys()


def test_long_values_are_cut_visibly() -> None:
    text = to_message(RunPayload("k", "n", params={"long": "x" * 9000}))["params"]["long"]
    assert (len(text), text[-2:]) == (MAX_PARAM, "x…")


@pytest.mark.usefixtures("writer_process")
def test_a_night_is_read_back_whole_and_without_secrets(home: Home, client: MlflowClient, tmp_path: Path) -> None:
    table = tmp_path / "questions.json"
    table.write_text(json.dumps([{"question": "q1", "recall@5": 1.0}]))
    report = tmp_path / "report.html"
    report.write_text("<html></html>")
    parameters = {f"p{i}": i for i in range(120)}  # more than the 100 of one batch
    with Tracker.start(home, "night") as tracker:
        tracker.log(RunPayload("night", "nightly", status="RUNNING", tags={"command": f"--key {SECRET}"}))
        for number in range(3):
            tracker.log(
                trial(
                    number,
                    params=parameters | {"endpoint": f"bolt://neo4j:{PASSWORD}@db", "api_key": SECRET},
                    metrics={"recall@5": number / 10, "coverage": 1.0},
                    tags={"fingerprint": "f1", "store": "kglite"},
                    dataset=mlflow_dataset("hopworld", "d" * 64, {"questions": 300}),
                    artifacts=(table,),
                    started_at=1000.0,
                    ended_at=1002.5,
                )
            )
        tracker.log(RunPayload("night", "nightly", artifacts=(report,)))
    (parent,) = runs(client, "night", "night")
    assert parent.info.status == "FINISHED"
    assert [file.path for file in client.list_artifacts(parent.info.run_id)] == ["report.html"]
    (run,) = runs(client, "night", "night/2")
    assert run.info.run_id == tracker.run_ids["night/2"]
    assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert run.data.metrics == {"recall_at_5": 0.2, "coverage": 1.0}
    assert run.data.params == {k: str(v) for k, v in parameters.items()} | {"endpoint": "bolt://[redacted]@db"}
    assert (run.data.tags["fingerprint"], run.data.tags["store"], run.info.run_name) == ("f1", "kglite", "trial 2")
    assert run.info.end_time - run.info.start_time == 2500
    (dataset,) = run.inputs.dataset_inputs
    assert (dataset.dataset.name, dataset.dataset.digest) == ("hopworld", "d" * 36)
    assert client.download_artifacts(run.info.run_id, "questions.json", str(tmp_path / "back"))
    files = [path for path in home.root.rglob("*") if path.is_file()]
    assert home.mlflow_db in files
    for path in files:
        content = path.read_bytes()
        assert SECRET.encode() not in content, path
        assert PASSWORD.encode() not in content, path


def test_the_same_key_updates(home: Home, client: MlflowClient) -> None:
    first = RunPayload("once", "once", params={"k": 10}, metrics={"recall@5": 0.5}, ended_at=1000.0)
    later = RunPayload("once", "once", metrics={"recall@5": 0.75}, tags={"champion": "yes"}, ended_at=2000.0)
    for payload in (first, first, later):  # each by a writer that remembers nothing
        writer = Writer(tracking_uri(home), "again", home.mlartifacts.as_uri(), writers_lock(home), home.mlflow_db)
        writer.write(to_message(payload))
    (run,) = runs(client, "again")
    assert (run.data.params, run.data.metrics) == ({"k": "10"}, {"recall_at_5": 0.75})
    assert run.data.tags["champion"] == "yes"
    history = client.get_metric_history(run.info.run_id, "recall_at_5")
    assert [point.value for point in history] == [0.5, 0.75]


def test_a_metric_without_a_value_is_named_and_not_logged(home: Home, client: MlflowClient) -> None:
    """MLflow 3.17.2 keeps NaN as 0 with a mark that a filter does not see, and infinity as the largest double."""
    metrics = {"recall@5": 0.5, "answer_f1": float("nan"), "latency": float("inf"), "mrr": -float("inf")}
    writer = Writer(tracking_uri(home), "none", home.mlartifacts.as_uri(), writers_lock(home), home.mlflow_db)
    writer.write(to_message(RunPayload("none", "none", metrics=metrics)))
    (run,) = runs(client, "none")

    assert {"recall_at_5": 0.5} == run.data.metrics
    assert "answer_f1, latency, mrr" == run.data.tags[Tag.NO_VALUE]
    assert Tag.NO_VALUE not in to_message(RunPayload("k", "n", metrics={"recall@5": 0.5}))["tags"]


def test_what_was_not_written_is_told_and_the_rest_is_written(home: Home, client: MlflowClient, tmp_path: Path) -> None:
    leak = tmp_path / "leak.txt"
    leak.write_text(f"the key is {SECRET}")
    tracker = Tracker.start(home, "partly")
    tracker.log(RunPayload("orphan", "orphan", parent_key="nobody"))
    tracker.log(RunPayload("lost", "lost", artifacts=(tmp_path / "missing.html",)))
    tracker.log(RunPayload("leak", "leak", artifacts=(leak,)))
    tracker.log(RunPayload("good", "good", metrics={"m": 1.0}))
    with pytest.raises(TrackingError, match=r"3 runs were not written to MLflow at sqlite:") as caught:
        tracker.close()
    message = str(caught.value)
    assert all(
        word in message for word in ("parent 'nobody'", "missing.html", "leak.txt contains", "MLFLOW_TRACKING_URI")
    )
    assert SECRET not in message
    assert caught.value.exit_code == 4
    (good,) = runs(client, "partly", "good")
    assert (good.info.status, good.data.metrics) == ("FINISHED", {"m": 1.0})
    tracker.close()  # a second close is harmless


def test_a_store_that_does_not_open_is_an_answer(tmp_path: Path) -> None:
    reply = answer(
        Writer("nonsense://me:pw@nowhere", "none", "", tmp_path / "lock", tmp_path / "own"), {"op": "prepare"}
    )
    assert reply["run_id"] is None
    assert "nonsense://[redacted]@nowhere" in str(reply["error"])


@pytest.mark.usefixtures("writer_process")
def test_a_writer_that_is_killed_is_told_once(home: Home) -> None:
    tracker = Tracker.start(home, "killed writer")
    process: Any = tracker._process
    process.kill()
    for number in range(3):
        tracker.log(RunPayload(f"run {number}", "run"))
    with pytest.raises(TrackingError, match=r"3 runs were not written") as caught:
        tracker.close()
    assert str(caught.value).count("the writer ended with code -9") == 1


def test_a_killed_command_leaves_written_runs_and_no_process(home: Home, client: MlflowClient) -> None:
    code = f"""
        import time
        from pathlib import Path
        from hopbench.flows.settings.home import Home
        from hopbench.flows.tracking.payload import RunPayload
        from hopbench.flows.tracking.client import Tracker
        tracker = Tracker.start(Home(Path({str(home.root)!r})), "killed")
        tracker.log(RunPayload("open", "open", status="RUNNING"))
        while not tracker.run_ids:
            time.sleep(0.05)
        print(tracker._process.pid, flush=True)
        time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as command_process:
        assert command_process.stdout is not None
        writer = int(command_process.stdout.readline())
        own, its = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (command_process.pid, writer))
        assert its == min(own + NICENESS, 19)  # what the command times beside it goes first
        command_process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while runs(client, "killed")[0].info.status == "RUNNING" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [run.info.status for run in runs(client, "killed")] == ["KILLED"]
    status = Path(f"/proc/{writer}/stat")
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.usefixtures("writer_process")
def test_the_writer_is_not_slowed_once_the_command_waits_for_it(home: Home) -> None:
    tracker = Tracker.start(home, "waiting")
    tracker.log(RunPayload("first", "first", status="RUNNING"))
    until(lambda: "first" in tracker.run_ids)
    own, low = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (0, tracker.pid))
    tracker._messages.put({"op": "drop_artifacts", "key": "first"})
    os.kill(tracker.pid, signal.SIGSTOP)
    closing = Thread(target=tracker.close)
    closing.start()
    until(lambda: os.getpriority(os.PRIO_PROCESS, tracker.pid) == own)
    os.kill(tracker.pid, signal.SIGCONT)
    closing.join(20)
    assert not closing.is_alive()
    assert low > own or not may_go_back()


@pytest.mark.usefixtures("writer_process")
def test_the_writer_ends_while_a_fork_still_has_its_input(home: Home) -> None:
    tracker = Tracker.start(home, "forked")
    tracker.log(RunPayload("forked", "forked", status="RUNNING"))
    fork = multiprocessing.get_context("fork").Process(target=time.sleep, args=(120,), daemon=True)
    fork.start()
    closing = Thread(target=tracker.close)
    closing.start()
    closing.join(60)
    fork.kill()
    fork.join()
    assert not closing.is_alive()
    closing.join()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.soak  # two processes that import mlflow and migrate a database
@pytest.mark.usefixtures("writer_process")
def test_two_first_starts_share_one_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    empty = Home(tmp_path)
    trackers = [Tracker.start(empty, "shared") for _ in range(2)]
    for tracker in trackers:
        tracker.log(RunPayload("same", "same", metrics={"m": 1.0}, ended_at=1000.0))
    for tracker in trackers:
        tracker.close()
    assert trackers[0].run_ids == trackers[1].run_ids
    assert list(trackers[0].run_ids) == ["same"]


def test_only_the_writer_imports_mlflow() -> None:
    code = "import sys, hopbench.flows.tracking.client; print('mlflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_an_error_stays_itself_and_nothing_is_left_outside_the_home(
    home: Home, client: MlflowClient, tmp_path: Path
) -> None:
    code = """
        from hopbench.flows.settings.home import Home
        from hopbench.flows.tracking.payload import RunPayload
        from hopbench.flows.tracking.client import Tracker
        try:
            with Tracker.start(Home.resolve(), "failed") as tracker:
                tracker.log(RunPayload("done", "done", metrics={"m": 1.0}))
                tracker.log(RunPayload("open", "open", status="RUNNING"))
                raise ValueError("own error")
        except ValueError as error:
            print(error)
    """
    user, work, temporary = tmp_path / "user", tmp_path / "work", tmp_path / "tmp"
    for folder in (user, work, temporary):
        folder.mkdir()
    drop = ("MLFLOW_", "HF_", "MPL", "XDG_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
    environment |= {"HOME": str(user), "TMPDIR": str(temporary), "HOPBENCH_HOME": str(home.root)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=environment, cwd=work, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "own error\n", "")
    assert [list(folder.iterdir()) for folder in (user, work, temporary)] == [[], [], []]
    assert {run.info.run_name: run.info.status for run in runs(client, "failed")} == {
        "done": "FINISHED",
        "open": "FAILED",
    }


def test_input_that_closes_without_an_end_kills_what_is_open() -> None:
    class Recorder(Writer):
        def __init__(self) -> None:
            super().__init__("", "", "", Path(), Path())
            self.calls: list[str] = []

        def write(self, message: dict[str, Any]) -> str:
            self.calls.append(message["key"])
            return "id"

        def end(self, status: str) -> None:
            self.calls.append(status)

    answers = io.StringIO()
    run, end = json.dumps({"op": "run", "key": "k"}), json.dumps({"op": "end", "status": "FINISHED"})
    killed, finished = Recorder(), Recorder()
    serve(killed, [run], answers)
    serve(finished, [run, end], answers)
    assert (killed.calls, finished.calls) == (["k", "KILLED"], ["k", "FINISHED"])
    assert json.loads(answers.getvalue().splitlines()[0]) == {"key": "k", "run_id": "id", "error": None, "note": None}


def test_a_benchmark_has_one_champion_however_it_is_named(home: Home, client: MlflowClient) -> None:
    with Tracker.start(home, "champions") as tracker:
        tracker.log(RunPayload("champion-a", "a"))
        tracker.log(RunPayload("champion-b", "b", tags={Tag.CHAMPION: "digest"}))
        tracker.log(RunPayload("once", "kept", metrics={"recall@5": 0.5}, once=True))
        tracker.log(RunPayload("once", "kept", metrics={"recall@5": 0.7}, once=True))  # finished: left as it is
        tracker.crown("champion-a", "digest")
    tags = [run.data.tags.get(Tag.CHAMPION) for run in (runs(client, "champions", f"champion-{n}")[0] for n in "ab")]
    assert ["digest", None] == tags
    assert 0.5 == client.get_run(tracker.run_ids["once"]).data.metrics["recall_at_5"]


def test_a_writer_waits_until_other_servers_answer_or_there_is_something_to_write(home: Home) -> None:
    answering = Event()
    with Tracker.start(home, "patient", after=answering) as tracker:
        time.sleep(2 * WAITING_SECONDS)
        assert tracker.experiment_id is None
        answering.set()
        until = time.monotonic() + 30
        while tracker.experiment_id is None and time.monotonic() < until:
            time.sleep(0.01)
        assert tracker.experiment_id is not None
    with Tracker.start(home, "patient", after=Event()) as tracker:  # its server never answers
        tracker.log(RunPayload("run", "run"))
    assert list(tracker.run_ids) == ["run"]
