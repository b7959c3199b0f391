"""docker-compose.yml is valid, pinned, reachable from this machine alone, and holds no secret."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from typing import Any

import pytest
import yaml
from tests.support.places import ROOT
from tools.neo4j_server.server import PACKAGE

FILE = ROOT / "docker-compose.yml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"]


def test_the_file_is_a_compose_file() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr


def test_there_are_three_servers_of_the_versions_we_test_with() -> None:
    pom = re.search(r"<neo4j\.version>(.+?)<", (PACKAGE / "pom.xml").read_text(encoding="utf-8"))
    assert pom is not None

    assert {
        "neo4j": f"neo4j:{pom[1]}",
        "mlflow": f"ghcr.io/mlflow/mlflow:v{version('mlflow')}",
        "prefect": f"prefecthq/prefect:{version('prefect')}-python3.11",
    } == {name: service["image"] for name, service in SERVICES.items()}


@pytest.mark.parametrize("name", SERVICES)
def test_a_server_is_watched_bounded_kept_and_bound_to_loopback(name: str) -> None:
    service = SERVICES[name]

    assert {"healthcheck", "mem_limit", "volumes"} <= service.keys()
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert re.search(r"localhost:(7474|5000/health|4200/api/health)", " ".join(service["healthcheck"]["test"]))


def test_mlflow_has_one_worker_and_time_to_start() -> None:
    service = SERVICES["mlflow"]
    check = service["healthcheck"]

    assert ["--workers=1"] == [word for word in service["command"] if word.startswith("--workers")]
    assert "5m" == check["start_period"]
    assert (12, "10s") == (check["retries"], check["interval"])


def test_prefects_own_protections_are_on() -> None:
    environment = SERVICES["prefect"]["environment"]
    own = [f"http://{name}:${{PREFECT_PORT:-4200}}" for name in ("127.0.0.1", "localhost")]

    assert ",".join(own) == environment["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"]
    assert "true" == environment["PREFECT_SERVER_CSRF_PROTECTION_ENABLED"]


def test_every_secret_comes_from_the_environment_and_the_example_names_it() -> None:
    text = FILE.read_text(encoding="utf-8")
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    required = set(re.findall(r"\$\{(\w+):\?", text))

    assert {"NEO4J_PASSWORD", "PREFECT_API_AUTH_STRING"} == required
    assert required <= set(re.findall(r"^(\w+)=.*change-me", example, re.MULTILINE))
    assert set(re.findall(r"\$\{(NEO4J_HEAP|NEO4J_PAGECACHE|NEO4J_MEMORY)", text)) <= set(
        re.findall(r"^# (\w+)=", example, re.MULTILINE)
    )
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
