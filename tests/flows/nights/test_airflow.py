"""The nightly as an Airflow DAG: its commands for real, and the whole DAG where Airflow can be installed."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from jinja2 import Template
from tests.support.places import ROOT

DAGS = ROOT / "examples" / "airflow"
AIRFLOW = "apache-airflow==3.3.2"


def command(name: str) -> str:
    """A bash command of the DAG's file, which Python reads without Airflow."""
    tree = ast.parse((DAGS / "hopbench_nightly.py").read_text(encoding="utf-8"))
    (value,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and [target.id for target in node.targets if isinstance(target, ast.Name)] == [name]
    ]
    return str(ast.literal_eval(value))


def bash(text: str, **environment: str) -> tuple[int, str]:
    """The exit code, and the last line of the output, which is what Airflow hands on."""
    done = subprocess.run(
        ["bash", "-c", text], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    return done.returncode, (done.stdout.splitlines() or [""])[-1]


@pytest.mark.parametrize(
    ("code", "nightly", "verdict"),
    [
        (0, 0, 0),
        (3, 0, 3),  # all is measured: a second attempt would find the same
        (4, 4, None),
        (2, 2, None),
        (130, 130, None),
    ],
)
def test_exit_codes_become_the_states_of_two_tasks(
    tmp_path: Path, code: int, nightly: int, verdict: int | None
) -> None:
    program = tmp_path / "hopbench"
    program.write_text(f'#!/bin/sh\necho "$@" > "{tmp_path}/arguments"\necho a table\nexit {code}\n')
    program.chmod(0o755)
    ended, last = bash(command("NIGHTLY"), HOPBENCH=str(program))
    assert nightly == ended
    assert (tmp_path / "arguments").read_text().split()[:2] == ["nightly", "--no-prefect"]
    if verdict is not None:
        pulled = SimpleNamespace(xcom_pull=lambda task_ids: last if task_ids == "nightly" else None)
        assert verdict == bash(Template(command("VERDICT")).render(ti=pulled))[0]


def test_a_command_that_is_not_there_fails_the_first_task(tmp_path: Path) -> None:
    assert bash(command("NIGHTLY"), HOPBENCH=str(tmp_path / "nothing"))[0] == 127


@pytest.mark.soak  # installing Airflow takes a minute or more
def test_airflow_reads_the_dag_and_runs_it(tmp_path: Path) -> None:
    python = Path(os.environ.get("HOPBENCH_AIRFLOW", tmp_path / "airflow")) / "bin" / "python"
    if not python.exists():
        uv = [str(Path(sys.executable).with_name("uv"))]
        place = python.parent.parent
        subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, place], check=True)
        installed = subprocess.run([*uv, "pip", "install", "--quiet", "--python", python, AIRFLOW], check=False)
        if installed.returncode:
            pytest.skip(f"{AIRFLOW} cannot be installed here")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTHON"))},
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
    }
    for words in (["db", "migrate"], ["dags", "reserialize"]):
        subprocess.run([python.with_name("airflow"), *words], env=environment, check=True, capture_output=True)
    script = ROOT / "tests" / "support" / "airflow_runs.py"
    done = subprocess.run(
        [python, script, DAGS, tmp_path / "hopbench"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["errors"], found["tasks"], found["waits"]) == ({}, {"nightly": 2, "no_regression": 0}, 1800)
    assert found["ended"] == {
        "0": {"nightly": "success", "no_regression": "success"},
        "3": {"nightly": "success", "no_regression": "failed"},
        "4, then 0": {"nightly": "success", "no_regression": "success"},
        "2": {"nightly": "failed", "no_regression": "upstream_failed"},
    }
