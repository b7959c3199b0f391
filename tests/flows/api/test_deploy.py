"""prefect.yaml for real: deployed to a server, its flows run by a worker of a process pool."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.flows.cli.conftest import write_benchmark
from tests.support.places import ROOT

import hopbench.flows

if TYPE_CHECKING:
    from hopbench.flows.orchestration.runtime import PrefectRuntime

pytestmark = [pytest.mark.soak, pytest.mark.prefect]
SECONDS = 600


def test_the_five_flows_are_deployed_and_a_worker_runs_them(prefect_runtime: PrefectRuntime, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    tiny = str(write_benchmark(tmp_path / "tiny"))
    shutil.copy(ROOT / "prefect.yaml", tmp_path)
    environment = {
        **os.environ,
        "PREFECT_API_URL": prefect_runtime.api_url,
        "HOPBENCH_HOME": str(tmp_path / "home"),
    }

    def prefect(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "prefect", "--no-prompt", *arguments]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    for arguments in (("work-pool", "create", "--type", "process", "hopbench"), ("deploy", "--all")):
        done = prefect(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr

    def ends(client: Any, name: str, wanted: str, **parameters: Any) -> str:
        """Run a deployment until its state is `wanted`; returns the state's message."""
        deployment = client.read_deployment_by_name(f"{name}/pool")
        run = client.create_flow_run_from_deployment(deployment.id, parameters=parameters)
        until = time.monotonic() + SECONDS
        while (state := client.read_flow_run(run.id).state).name != wanted:
            assert time.monotonic() < until, state
            time.sleep(0.5)
        return str(state.message)

    with prefect_runtime.flow_settings(), get_client(sync_client=True) as client:
        made = {name: client.read_deployment_by_name(f"{name}/pool") for name in hopbench.flows.FLOWS}
        assert {"hopbench"} == {one.work_pool_name for one in made.values()}
        schedules = {(one.schedule.cron, one.active) for one in made["nightly"].schedules}
        assert schedules == {("0 2 * * *", True), ("0 4 * * 0", False)}
        command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "hopbench"]
        with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL) as worker:
            try:
                plain = {"dataset": tiny, "strategies": ["bm25"], "ragas": False}
                ends(client, "nightly", "Completed", **plain)
                ends(client, "sweep", "Completed", file="grid", datasets=[tiny], questions=2, ragas=False)
                # The process crashes first, and the worker then finds the reason.
                reason = ends(client, "evaluate", "Failed", dataset=tiny, datasett="x")
            finally:
                worker.terminate()
                worker.wait(60)
    assert "evaluate did not run: parameter datasett (sent: 'x') is unknown, did you mean dataset?" in reason
    reports = {file.parent.parent.name for file in (tmp_path / "home").rglob("report.html")}
    assert {"nightly", "sweeps"} <= reports
