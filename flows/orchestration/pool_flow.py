"""The flow that a work pool's workers run for `--runner pool:NAME`; a run or a sweep starts it."""

from __future__ import annotations

import os

import prefect
from prefect.runtime import flow_run

from hopbench.flows.orchestration.flow_run import inside_flow_run
from hopbench.flows.orchestration.spool import Spool, take_units
from hopbench.flows.settings.home import Home


@prefect.flow(name="rank_units", flow_run_name="units of {job}", retries=0, persist_result=False)
def rank_units(job: str) -> int:
    """Rank batches of questions for a run or a sweep that waits for them; returns how many.

    Args:
        job: The name of the job's folder in HOPBENCH_HOME, which its own process makes and removes.
    """
    with inside_flow_run():
        home = Home.resolve().prepare()
        home.apply_environment()
        os.environ["HOPBENCH_HOME"] = str(home.root)  # a relative one would be another from the job's folder
        with Spool.of(home, job).where_started():
            return take_units(home, job, str(flow_run.id))
