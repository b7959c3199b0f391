"""Runs the DAG of examples/airflow in an environment that has Airflow: `python airflow_runs.py FOLDER COMMAND`.

Its last line is JSON: the errors of parsing the folder, the tasks with their retries, and for each exit code of
the command, a script in the place of `hopbench`, how the tasks ended.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

# Each attempt ends with the next code: what is incomplete goes on when it is tried again.
ENDINGS = {"0": "0", "3": "3", "4, then 0": "4 0", "2": "2 2 2"}


def main(folder: Path, command: Path) -> None:
    """Parse the DAGs of `folder`, and run the one there with a `command` that only ends with a code."""
    os.environ["HOPBENCH"] = str(command)
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(str(folder))
    dag = bag.dags["hopbench_nightly"]
    nightly: Any = dag.get_task("nightly")
    waits, nightly.retry_delay = nightly.retry_delay, timedelta(0)
    ended: dict[str, dict[str, str]] = {}
    for name, codes in ENDINGS.items():
        left = command.with_suffix(".codes")
        left.write_text(codes.replace(" ", "\n") + "\n")
        command.write_text(f'#!/bin/sh\necho the table\ncode=$(head -n 1 {left})\nsed -i 1d {left}\nexit "$code"\n')
        command.chmod(0o755)
        run: Any = dag.test()
        ended[name] = {one.task_id: str(one.state) for one in run.get_task_instances()}
    tasks = {task.task_id: task.retries for task in dag.tasks}
    found = {"errors": bag.import_errors, "tasks": tasks, "waits": waits.total_seconds(), "ended": ended}
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
