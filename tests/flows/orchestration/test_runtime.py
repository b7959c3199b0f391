"""Flows on a real Prefect server: what is recorded, what passes through unchanged, and what is left behind."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from uuid import UUID

import numpy as np
import pytest

from hopbench.flows.orchestration import steps as run_progress
from hopbench.flows.orchestration.runtime import PrefectRuntime, process_tag
from hopbench.flows.orchestration.steps import Progress, Steps, plain_steps, run_flow
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import IncompleteError, InputError

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun, TaskRun

on_prefect = pytest.mark.prefect


class Untouchable:
    """An argument as heavy as can be: visiting, copying, comparing or pickling it fails."""

    def _refuse(self, *_: object) -> NoReturn:
        raise AssertionError("Prefect looked into an argument")

    __iter__ = __len__ = __eq__ = __copy__ = __deepcopy__ = __reduce_ex__ = __getstate__ = __bool__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def flow_runs(name: str) -> list[FlowRun]:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName

    with get_client(sync_client=True) as client:
        return client.read_flow_runs(flow_filter=FlowFilter(name=FlowFilterName(any_=[name])))


def task_runs(flow_run: FlowRun, count: int) -> list[TaskRun]:
    """The task runs of `flow_run`; the server records them from events, a moment later."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    deadline = time.monotonic() + 20
    with get_client(sync_client=True) as client:
        while True:
            found = client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run.id])))
            final = [run for run in found if run.state is not None and run.state.is_final()]
            if len(final) >= count or time.monotonic() > deadline:
                return found
            time.sleep(0.1)


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_without_a_runtime_the_body_is_called_and_prefect_is_not_imported() -> None:
    code = """
        import sys
        from hopbench.flows.orchestration.runtime import PrefectRuntime
        from hopbench.flows.orchestration.steps import run_flow
        print(run_flow("plain", lambda step: step("add", lambda a, b: a + b, 1, b=2), runtime=None))
        print("prefect" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "False"]


def test_plain_steps_pass_arguments_named_like_their_own() -> None:
    assert plain_steps("step", dict, name=1, fn=2) == {"name": 1, "fn": 2}


@on_prefect
def test_flow_and_task_runs_are_recorded(prefect_runtime: PrefectRuntime) -> None:
    def body(step: Steps) -> int:
        return step("double {x}", lambda a: 2 * a, 21) + step("zero", int)

    parameters = {"dataset": "hopworld", "limit": 3, "llm": False}
    result = run_flow("recorded", body, runtime=prefect_runtime, parameters=parameters, tags=["nightly"])
    assert result == 42
    (run,) = flow_runs("recorded")
    assert run.state is not None
    assert run.state.is_completed()
    assert run.name.startswith("recorded 2")
    assert run.parameters == parameters
    assert sorted(run.tags) == ["hopbench", "nightly", process_tag()]
    tasks = task_runs(run, 2)
    assert sorted(task.name for task in tasks) == ["double {x}", "zero"]
    assert all(task.state is not None and task.state.is_completed() for task in tasks)
    assert not any(task.tags for task in tasks)  # each tag of a task costs requests


@on_prefect
def test_an_exception_is_the_same_object_and_the_run_failed(
    prefect_runtime: PrefectRuntime, capfd: pytest.CaptureFixture[str]
) -> None:
    error = InputError("limit must be 1..10, not 11")

    def boom() -> None:
        raise error

    with pytest.raises(InputError) as caught:
        run_flow("failing", lambda step: step("boom", boom), runtime=prefect_runtime)
    assert caught.value is error
    (run,) = flow_runs("failing")
    assert run.state is not None
    assert run.state.is_failed()
    assert capfd.readouterr() == ("", "")


@on_prefect
def test_the_page_of_another_site_may_not_ask_the_server(prefect_runtime: PrefectRuntime) -> None:
    def allowed(origin: str) -> str | None:
        asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        request = urllib.request.Request(f"{prefect_runtime.api_url}/flow_runs/filter", headers=asked, method="OPTIONS")
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.headers["Access-Control-Allow-Origin"]
        except urllib.error.HTTPError as error:
            return error.headers["Access-Control-Allow-Origin"]

    own = prefect_runtime.api_url.removesuffix("/api")
    assert [own, None, None] == [allowed(origin) for origin in (own, "https://other.example", "null")]


@on_prefect
def test_work_goes_on_where_its_progress_cannot_be_shown(
    prefect_runtime: PrefectRuntime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
    from prefect.runtime import flow_run

    def body(_: Steps) -> str:
        progress = Progress()
        progress.in_flow = True
        progress.expect(3)
        own = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[UUID(flow_run.get_id())]))
        for _step in range(3):
            progress.begin("step")
            progress.end()
            with get_client(sync_client=True) as client:  # as somebody may on the pages
                for artifact in client.read_artifacts(artifact_filter=own):
                    client.delete_artifact(artifact.id)
        return "done"

    monkeypatch.setattr(run_progress, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(run_progress, "EVERY_SECONDS", 0.0)
    log = logging.getLogger(run_progress.__name__)  # Prefect's set-up may replace the root's handlers
    log.addHandler(caplog.handler)
    monkeypatch.setattr(log, "propagate", False)  # or they are the root's, and each record comes twice
    assert run_flow("unshown", body, runtime=prefect_runtime) == "done"
    log.removeHandler(caplog.handler)
    warnings = {id(record) for record in caplog.records if "no longer shown" in record.getMessage()}
    assert len(warnings) == 1


@on_prefect
def test_a_flow_in_a_flow_is_its_child(prefect_runtime: PrefectRuntime) -> None:
    def outer(step: Steps) -> str:
        return run_flow("inner", lambda inner: inner("name", str, "done"), runtime=prefect_runtime)

    assert run_flow("outer", outer, runtime=prefect_runtime) == "done"
    (inner,), (parent,) = flow_runs("inner"), flow_runs("outer")
    assert inner.parent_task_run_id is not None
    assert inner.parent_task_run_id in {task.id for task in task_runs(parent, 1)}


@on_prefect
def test_arguments_and_results_are_not_looked_into(prefect_runtime: PrefectRuntime) -> None:
    heavy = Untouchable()

    def same(value: Untouchable, *, again: list[Untouchable]) -> Untouchable:
        return again[0]

    result = run_flow("heavy", lambda step: step("same", same, heavy, again=[heavy]), runtime=prefect_runtime)
    assert result is heavy


@on_prefect
def test_a_large_array_is_not_copied(prefect_runtime: PrefectRuntime) -> None:
    array = np.zeros(100_000_000 // 8)  # 100 MB
    tracemalloc.start()
    try:
        result = run_flow("array", lambda step: step("same", lambda a: a, array), runtime=prefect_runtime)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result is array
    assert peak < 20_000_000


@on_prefect
def test_a_given_server_is_used_quietly_and_only_the_home_is_touched(
    prefect_runtime: PrefectRuntime, tmp_path: Path
) -> None:
    code = """
        import sys
        from hopbench.flows.settings.home import Home
        from hopbench.flows.orchestration.runtime import PrefectRuntime
        from hopbench.flows.orchestration.steps import run_flow
        home = Home.resolve()
        with PrefectRuntime(home) as runtime:
            print(run_flow("given", lambda step: step("len", len, "four"), runtime=runtime))
            try:
                run_flow("given-fails", lambda step: step("zero", divmod, 1, 0), runtime=runtime)
            except ZeroDivisionError as error:
                print(type(error).__name__)
    """
    user, work = tmp_path / "user", tmp_path / "work"
    user.mkdir()
    work.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "HOPBENCH_"))}
    environment |= {"PREFECT_API_URL": prefect_runtime.api_url, "HOME": str(user), "HOPBENCH_HOME": "kept"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment,
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["4", "ZeroDivisionError"], "")
    (run,) = flow_runs("given")
    assert [task.name for task in task_runs(run, 1)] == ["len"]
    assert list(user.iterdir()) == []
    assert [path.name for path in work.iterdir()] == ["kept"]


@on_prefect
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_server_ends_with_its_parent(ending: signal.Signals, tmp_path: Path) -> None:
    code = f"""
        import os, time
        from pathlib import Path
        from hopbench.flows.settings.home import Home
        from hopbench.flows.orchestration.runtime import PrefectRuntime
        runtime = PrefectRuntime(Home(Path({str(tmp_path)!r})))
        print(runtime._server.process.pid, flush=True)
        time.sleep(60)
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        server = int(parent.stdout.readline())
        assert is_running(server)
        parent.send_signal(ending)
        parent.wait(10)
        assert wait_until(lambda: not is_running(server), 15)


@pytest.fixture
def own_home(tmp_path: Path) -> Iterator[Home]:
    """A home whose server may be started: no other server is named, and all comes back afterwards."""
    from prefect.context import refresh_global_settings_context

    with pytest.MonkeyPatch.context() as patch:
        home = Home(tmp_path)
        patch.delenv("PREFECT_API_URL", raising=False)
        for name, value in home.environment(os.environ).items():
            patch.setenv(name, value)
        yield home
    refresh_global_settings_context()


@on_prefect
def test_a_server_that_dies_is_reported_with_its_last_words(own_home: Home) -> None:
    with PrefectRuntime(own_home) as runtime:
        assert runtime._server is not None
        server = runtime._server.process
        server.kill()
        server.wait()
        (own_home.logs / "prefect-server.log").write_text("first\ndatabase disk image is malformed\n")
        with pytest.raises(IncompleteError, match=r"(?s)code -9 .*--no-prefect.*disk image is malformed") as e:
            runtime.wait()
        assert e.value.exit_code == 4
    assert "PREFECT_API_URL" not in os.environ


@on_prefect
def test_a_server_that_is_too_slow_is_reported(own_home: Home) -> None:
    with PrefectRuntime(own_home) as runtime, pytest.raises(IncompleteError, match="not answer in time"):
        runtime.wait(seconds=0)


@on_prefect
def test_a_given_server_that_does_not_answer_is_named(own_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with (
        PrefectRuntime(own_home) as runtime,
        pytest.raises(IncompleteError, match=r"PREFECT_API_URL: .*127\.0\.0\.1:9/api.*unset the variable"),
    ):
        runtime.wait()
