"""`hopbench serve` for real: its schedule survives the process, and killed runs do not stay "Running"."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import yaml
from tests.flows.cli.conftest import call, write_benchmark
from tests.support.places import ROOT
from tests.support.served import serving

from hopbench.flows.api.serving import _with_present, schedules_of

if TYPE_CHECKING:
    from hopbench.flows.orchestration.runtime import PrefectRuntime

FLOWS = {"nightly", "sweep", "evaluate", "build_graph", "train"}
CRON, SECOND = "0 2 1 1 *", "0 3 1 1 *"  # no night is due while the test runs


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--cron", "* * * *"], "--cron '* * * *': a cron line has five fields"),
        (["--timezone", "Mars/Olympus"], "--timezone 'Mars/Olympus': no such zone"),
        (["--no-prefect"], "leave out --no-prefect"),
        (["--keep", "0"], "--keep 0: must be at least 1"),
        (["--latency-factor", "0.5"], "--latency-factor 0.5: must be above 1"),
        (["--webhook", "ftp://x/T0KEN"], "--webhook: not a URL"),
        (["--datset", "hopworld"], "No such option: --datset"),
        (["--dataset", "hopword"], "unknown benchmark 'hopword'"),
        (["--strategies", "vecto"], "unknown strategy 'vecto'"),
    ],
)
def test_what_would_fail_at_night_is_refused_now(tmp_path: Path, arguments: list[str], word: str) -> None:
    done = call("serve", *arguments, home=tmp_path / "home")
    assert done.code == 2
    assert word in done.err
    assert "T0KEN" not in done.err


def test_only_new_schedules_begin_paused() -> None:
    first = _with_present(schedules_of([CRON], "UTC", True), [])
    assert [(CRON, False)] == [(one.schedule.cron, one.active) for one in first]
    resumed = [one.model_copy(update={"active": True}) for one in first]  # on the pages
    again = _with_present(schedules_of([CRON, SECOND], "UTC", True), resumed)
    assert [(CRON, True), (SECOND, False)] == [(one.schedule.cron, one.active) for one in again]


@pytest.mark.prefect
def test_the_schedule_stays_when_serve_is_killed_or_stopped(prefect_runtime: PrefectRuntime, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.client.schemas.schedules import CronSchedule
    from prefect.exceptions import ObjectNotFound

    def night() -> Any:
        with get_client(sync_client=True) as client, suppress(ObjectNotFound):
            return client.read_deployment_by_name("nightly/serve")
        return None

    def served() -> set[str]:
        with get_client(sync_client=True) as client:
            return {one.entrypoint.rpartition(".")[2] for one in client.read_deployments() if one.name == "serve"}

    def schedules() -> list[tuple[str, bool, str]]:
        found = [(one.slug, one.active, one.schedule.cron) for one in night().schedules]
        return sorted(found, key=lambda one: str(one[2]))

    environment = {**os.environ, "PREFECT_API_URL": prefect_runtime.api_url, "HOPBENCH_HOME": str(tmp_path)}
    flags = ["--cron", CRON, "--cron", SECOND, "--keep", "7", "--webhook", "https://hooks.example.org/T0KEN"]
    seen = []
    for ending in (signal.SIGKILL, signal.SIGTERM):
        with serving(flags, environment) as (process, shown):
            assert shown[0] == "serving  hopbench nightly --keep 7\n"
            children = psutil.Process(process.pid).children(recursive=True)
            assert not [one for one in children if "T0KEN" in str(one.cmdline())]
            wait_for(lambda: served() == FLOWS and len(night().schedules) >= 2)
            process.send_signal(ending)
            process.wait(120)
        seen.append(schedules())
        if ending is signal.SIGKILL:
            with get_client(sync_client=True) as client:  # what somebody does on the pages
                client.update_deployment_schedule(night().id, night().schedules[0].id, active=False)
                paused = [one.schedule.cron for one in night().schedules if not one.active]
                added = DeploymentScheduleCreate(schedule=CronSchedule(cron="0 5 1 1 *"), parameters={"limit": 3})
                client.create_deployment_schedules(night().id, [(added.schedule, True)])
    assert seen[0] == [(one[0], True, one[2]) for one in seen[0]]
    assert [one[2] for one in seen[0]] == [CRON, SECOND]
    assert [(cron, cron not in paused) for _, _, cron in seen[0]] == [(c, a) for _, a, c in seen[1] if c != "0 5 1 1 *"]
    assert "0 5 1 1 *" in [one[2] for one in seen[1]]
    assert night().parameters == {"keep": 7}
    assert "T0KEN" not in str(night().model_dump())


@pytest.mark.prefect
def test_what_the_server_refuses_is_refused_before_serving(prefect_runtime: PrefectRuntime, tmp_path: Path) -> None:
    given = {"PREFECT_API_URL": prefect_runtime.api_url}
    done = call("serve", "--metric", "no name", home=tmp_path / "home", environment=given)
    assert (2, "") == (done.code, done.out)
    assert "a scheduled night cannot have these parameters: field 'metrics[0]': 'no name' does not match" in done.err


@pytest.mark.prefect
def test_serve_takes_a_bare_folders_name_and_ends_with_its_server(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "mini")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment["HOPBENCH_HOME"] = str(tmp_path / "home")
    flags = ["--port", "0", "--cron", CRON, "--dataset", "mini", "--strategies", "bm25"]
    with serving(flags, environment, tmp_path) as (process, shown):
        assert shown[0] == "serving  hopbench nightly --dataset mini --strategies bm25\n"
        (server,) = [
            one
            for one in psutil.Process(process.pid).children()
            if "hopbench.flows.orchestration.server" in one.cmdline()
        ]
        server.kill()
        assert 1 == process.wait(60)
    errors = (tmp_path / "errors").read_text(encoding="utf-8")
    assert "hopbench: Prefect's API server ended with code -9: run the same command again" in errors
    with sqlite3.connect(next((tmp_path / "home" / "prefect").glob("*.db"))) as database:
        found = database.execute("SELECT parameters FROM deployment WHERE parameters LIKE '%bm25%'").fetchall()
    assert [{"dataset": str(tmp_path / "mini"), "strategies": ["bm25"]}] == [json.loads(one) for (one,) in found]


def wait_for(condition: Any) -> None:
    import time

    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)


KILLED = """
import os, signal
from pathlib import Path
from hopbench.flows.settings.home import Home
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.orchestration.steps import run_flow
with PrefectRuntime(Home.resolve()) as runtime:
    run_flow("killed-night", lambda step: os.kill(os.getpid(), signal.SIGKILL), runtime=runtime)
"""


@pytest.mark.prefect
@pytest.mark.alone  # whoever starts meanwhile would mark it first
def test_a_killed_run_is_marked_as_crashed_by_the_next_start(prefect_runtime: PrefectRuntime, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName

    from hopbench.flows.orchestration.runtime import mark_crashed
    from hopbench.flows.orchestration.steps import run_flow

    environment = {**os.environ, "PREFECT_API_URL": prefect_runtime.api_url, "HOPBENCH_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED)], env=environment, cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr

    def killed() -> Any:
        with get_client(sync_client=True) as client:
            (run,) = client.read_flow_runs(flow_filter=FlowFilter(name=FlowFilterName(any_=["killed-night"])))
            return run

    assert killed().state.is_running()
    marked: list[str] = []
    run_flow("living-night", lambda _: marked.extend(mark_crashed()), runtime=prefect_runtime)
    assert [name.startswith("killed-night") for name in marked] == [True]  # and not the one that asks
    assert killed().state.is_crashed()
    assert "was killed, or the machine stopped" in killed().state.message


def test_the_work_pools_deployments_name_the_flows_with_parameters_that_exist() -> None:
    import hopbench.flows

    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    flows = {one["entrypoint"].rpartition(".")[2]: one for one in deployments}
    assert sorted(flows) == sorted(hopbench.flows.FLOWS)
    for name, deployment in flows.items():
        flow = getattr(hopbench.flows, name)
        assert deployment["entrypoint"] == f"{flow.fn.__module__}.{name}"
        for schedule in (deployment, *deployment.get("schedules", ())):
            flow.validate_parameters({**deployment.get("parameters", {}), **schedule.get("parameters", {})})
        # The environment is the worker's: a value taken over here would be the deploying shell's, or empty.
        assert {"name": "hopbench"} == deployment["work_pool"]
    assert [True, False] == [one["active"] for one in flows["nightly"]["schedules"]]
