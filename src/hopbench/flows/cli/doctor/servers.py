"""Checks that the configured servers are reachable, each for at most `SECONDS`; others are never contacted."""

from __future__ import annotations

import os
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from hopbench.flows.cli.doctor.check import Check
from hopbench.flows.tracking.payload import redact, secrets

SECONDS = 2.0
BOLT = 7687


def server_checks() -> Iterator[Check]:
    """Prefect, MLflow, Neo4j and the language model's endpoint, checked concurrently."""
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(check) for check in (_prefect, _mlflow, _neo4j, _openai)]
        for future in waiting:
            found = future.result()
            if found is not None:
                hidden = secrets()
                yield found._replace(finding=redact(found.finding, hidden), remedy=redact(found.remedy, hidden))


def _prefect() -> Check:
    url = os.environ.get("PREFECT_API_URL")
    if not url:
        return Check("ok", "prefect", "each run starts a server of its own (PREFECT_API_URL is not set)")
    problem = _ask(f"{url.rstrip('/')}/health")
    remedy = "start it, unset PREFECT_API_URL, or run with --no-prefect"
    return (
        Check("fail", "prefect", f"{url}: {problem}", remedy) if problem else Check("ok", "prefect", f"{url} answers")
    )


def _mlflow() -> Check | None:
    uri = os.environ.get("MLFLOW_TRACKING_URI")
    if not uri:
        return None
    if urlsplit(uri).scheme in ("", "file"):
        remedy = "MLflow's file store is no longer kept up: name sqlite:///FILE or a server, or unset it"
        return Check("fail", "mlflow", f"MLFLOW_TRACKING_URI={uri} is a folder", remedy)
    if urlsplit(uri).scheme not in ("http", "https"):
        return Check("ok", "mlflow", f"MLFLOW_TRACKING_URI={uri} (a database, not tried)")
    problem = _ask(f"{uri.rstrip('/')}/health")
    remedy = "start it, or unset MLFLOW_TRACKING_URI to track in HOPBENCH_HOME"
    return Check("fail", "mlflow", f"{uri}: {problem}", remedy) if problem else Check("ok", "mlflow", f"{uri} answers")


def _neo4j() -> Check:
    uri = os.environ.get("NEO4J_URI")
    if not uri:
        return Check("off", "neo4j", "NEO4J_URI is not set", "only for --store neo4j: docker compose up neo4j")
    parts = urlsplit(uri)
    remedy = "start it (docker compose up neo4j) or correct NEO4J_URI; only --store neo4j needs it"
    if not parts.hostname:
        return Check("warn", "neo4j", f"NEO4J_URI={uri} names no host", remedy)
    try:
        socket.create_connection((parts.hostname, parts.port or BOLT), timeout=SECONDS).close()
    except OSError as error:
        return Check("warn", "neo4j", f"{uri}: {error}", remedy)
    if not os.environ.get("NEO4J_PASSWORD"):
        return Check("warn", "neo4j", f"{uri} answers, NEO4J_PASSWORD is not set", "set NEO4J_PASSWORD")
    return Check("ok", "neo4j", f"{uri} answers")


def _openai() -> Check:
    base, key = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY")
    if not base:
        if key:
            return Check("ok", "language model", "OPENAI_API_KEY is set; OPENAI_BASE_URL is not, so nobody was asked")
        remedy = "only for --llm and --judge: set OPENAI_BASE_URL and OPENAI_API_KEY"
        return Check("off", "language model", "no endpoint is set", remedy)
    problem = _ask(f"{base.rstrip('/')}/models", key)
    remedy = "start it, or correct OPENAI_BASE_URL and OPENAI_API_KEY; only --llm and --judge need it"
    if problem:
        return Check("warn", "language model", f"{base}: {problem}", remedy)
    return Check("ok", "language model", f"{base} answers")


def _ask(url: str, key: str | None = None) -> str:
    """The error of a GET of `url`, empty when it is answered."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        return "refuses the key (401)" if error.code == 401 else f"answers {error.code} {error.reason}"
    except urllib.error.URLError as error:
        return f"cannot be reached ({error.reason})"
    except (OSError, ValueError) as error:  # ValueError: no URL at all
        return f"cannot be reached ({error})"
    return ""
