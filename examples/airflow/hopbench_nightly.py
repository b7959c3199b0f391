"""HopBench's nightly as an Airflow DAG (Airflow 3): copy this file into the DAGs folder.

    HOPBENCH       the command (default /opt/hopbench/.venv/bin/hopbench): HopBench and Airflow each have their own
                   environment, since their dependencies differ
    HOPBENCH_HOME  the folder of graphs, scores and earlier nights (default /var/lib/hopbench), on the worker

What the exit codes of `hopbench nightly` (docs/nightly.md) become:

    0    both tasks succeed
    3    `nightly` succeeds, for everything was measured and written; `no_regression` fails, and is not tried again
    4    `nightly` fails and is tried again, which goes on where it stopped; so does 130 (interrupted)
    2    bad input, and 1, a defect: `nightly` fails and is tried again, in vain
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

NIGHTLY = """
"$HOPBENCH" nightly --no-prefect --dataset hopworld --keep 30
code=$?
case $code in
    0|3) echo "$code" ;;  # the last line is what the next task reads
    *) exit "$code" ;;
esac
"""
VERDICT = """exit {{ ti.xcom_pull(task_ids="nightly") }}"""

with DAG(
    "hopbench_nightly",
    description="Runs all strategies, and compares each with the last good night",
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # one home has one nightly at a time; a second one would end with exit code 4
    tags=["hopbench"],
) as dag:
    nightly = BashOperator(
        task_id="nightly",
        bash_command=NIGHTLY,
        env={
            "HOPBENCH": os.environ.get("HOPBENCH", "/opt/hopbench/.venv/bin/hopbench"),
            "HOPBENCH_HOME": os.environ.get("HOPBENCH_HOME", "/var/lib/hopbench"),
        },
        append_env=True,
        do_xcom_push=True,
        retries=2,
        retry_delay=timedelta(minutes=30),
    )
    no_regression = BashOperator(task_id="no_regression", bash_command=VERDICT, retries=0)
    nightly >> no_regression
