"""The checks of `hopbench doctor`. None leaves files, shows a secret, or contacts an unconfigured server."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hopbench.flows.cli._doctor_home import Check, Status, home_checks
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.payload import redact, secrets
from hopbench.retrieval.plugins.registry import Registry

if TYPE_CHECKING:
    from packaging.requirements import Requirement


REGISTRIES = {
    "strategy": "hopbench.retrieval.strategies.registry:registry",
    "reranker": "hopbench.retrieval.strategies.reranker:rerankers",
    "metrics": "hopbench.eval.metrics:catalogue",
    "loader": "hopbench.eval.benchmarks.formats:loaders",
    "embedder": "hopbench.retrieval.embedding.factory:embedders",
    "extractor": "hopbench.retrieval.graph.construction.extraction:extractors",
}
SECONDS = 2.0
BOLT = 7687


def server_checks() -> Iterator[Check]:
    """Prefect, MLflow, Neo4j and the language model's endpoint, checked concurrently."""
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(check) for check in (_prefect, _mlflow, _neo4j, _openai)]:
            if (found := future.result()) is not None:
                hidden = secrets()
                yield found._replace(finding=redact(found.finding, hidden), remedy=redact(found.remedy, hidden))


def _prefect() -> Check:
    url = os.environ.get("PREFECT_API_URL")
    if not url:
        return Check("ok", "prefect", "each run starts a server of its own (PREFECT_API_URL is not set)")
    remedy = "start it, unset PREFECT_API_URL, or run with --no-prefect"
    return _answer("prefect", url, f"{url.rstrip('/')}/health", "fail", remedy)


def _mlflow() -> Check | None:
    uri = os.environ.get("MLFLOW_TRACKING_URI")
    if not uri:
        return None
    if urlsplit(uri).scheme in ("", "file"):
        remedy = "MLflow's file store is no longer kept up: name sqlite:///FILE or a server, or unset it"
        return Check("fail", "mlflow", f"MLFLOW_TRACKING_URI={uri} is a folder", remedy)
    if urlsplit(uri).scheme not in ("http", "https"):
        return Check("ok", "mlflow", f"MLFLOW_TRACKING_URI={uri} (a database, not tried)")
    remedy = "start it, or unset MLFLOW_TRACKING_URI to track in HOPBENCH_HOME"
    return _answer("mlflow", uri, f"{uri.rstrip('/')}/health", "fail", remedy)


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
    if not base and key:
        return Check("ok", "language model", "OPENAI_API_KEY is set; OPENAI_BASE_URL is not, so nobody was asked")
    if not base:
        remedy = "only for --llm and --judge: set OPENAI_BASE_URL and OPENAI_API_KEY"
        return Check("off", "language model", "no endpoint is set", remedy)
    remedy = "start it, or correct OPENAI_BASE_URL and OPENAI_API_KEY; only --llm and --judge need it"
    return _answer("language model", base, f"{base.rstrip('/')}/models", "warn", remedy, key)


def _answer(part: str, shown: str, url: str, unanswered: Status, remedy: str, key: str | None = None) -> Check:
    """Whether a GET of `url` is answered."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            answer.read(1)
        return Check("ok", part, f"{shown} answers")
    except urllib.error.HTTPError as error:
        problem = "refuses the key (401)" if error.code == 401 else f"answers {error.code} {error.reason}"
    except urllib.error.URLError as error:
        problem = f"cannot be reached ({error.reason})"
    except (OSError, ValueError) as error:  # ValueError: no URL at all
        problem = f"cannot be reached ({error})"
    return Check(unanswered, part, f"{shown}: {problem}", remedy)


GIB = 1 << 30
ENOUGH_DISK, LITTLE_DISK = 2 * GIB, GIB // 4


def every_check(home: Home, repair: bool = False) -> list[Check]:
    """All checks, in the order in which a user would fix them."""
    groups: tuple[Callable[[], Iterator[Check]], ...] = (
        _python,
        _packages,
        _extras,
        lambda: _home(home),
        lambda: home_checks(home, repair),
        lambda: _disk(home),
        _embedder,
        plugin_checks,
        _benchmarks,
        server_checks,
        lambda: _mlflow_database(home),
        _browser,
    )
    return [check for group in groups for check in group()]


def _python() -> Iterator[Check]:
    found = sys.version.split()[0]
    fits = sys.version_info >= (3, 11)
    yield Check("ok" if fits else "fail", "python", found, "" if fits else "HopBench needs Python 3.11 or newer")


def _packages() -> Iterator[Check]:
    needed = _required({"extra": ""})
    result = {one.name: _installed(one.name) for one in needed}
    missing = sorted(name for name, has in result.items() if has is None)
    other = sorted(
        f"{one.name} {has} (tested: {one.specifier})"
        for one in needed
        if (has := result[one.name]) is not None and has not in one.specifier
    )
    remedy = "make setup, or pip install --force-reinstall hopbench"
    if missing:
        yield Check("fail", "packages", f"not installed: {', '.join(missing)}", remedy)
    if other:
        yield Check("warn", "packages", f"not as tested: {', '.join(other)}", remedy)
    if not missing and not other:
        yield Check("ok", "packages", f"all {len(needed)} as tested")


def _required(environment: dict[str, str]) -> list[Requirement]:
    from packaging.requirements import Requirement

    found = [Requirement(line) for line in requires("hopbench") or []]
    return [one for one in found if one.marker is None or one.marker.evaluate(environment)]


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _extras() -> Iterator[Check]:
    always = {one.name for one in _required({"extra": ""})}
    for extra in sorted(metadata("hopbench").get_all("Provides-Extra") or []):
        wanted = {one.name for one in _required({"extra": extra})} - always
        if missing := sorted(name for name in wanted if _installed(name) is None):
            remedy = f"pip install 'hopbench[{extra}]'"
            yield Check("off", f"extra {extra}", f"not installed: {', '.join(missing)}", remedy)
        else:
            yield Check("ok", f"extra {extra}", "installed")


def _home(home: Home) -> Iterator[Check]:
    place = next(folder for folder in (home.root, *home.root.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=place):  # os.access would lie for root and on read-only mounts
            pass
    except OSError as error:
        remedy = "free or allow it, or name another folder with HOPBENCH_HOME=DIR"
        yield Check("fail", "HOPBENCH_HOME", f"{home.root}: cannot be written ({error.strerror})", remedy)
        return
    if place != home.root:
        yield Check("ok", "HOPBENCH_HOME", f"{home.root}: made at the first run")
        return
    parts = sorted(home.root.iterdir())
    sizes = [(part.name, _size(part)) for part in parts]
    shown = ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in sizes if size >= 100_000)
    total = f"{sum(size for _, size in sizes) / 1e6:,.1f} MB"
    yield Check("ok", "HOPBENCH_HOME", f"{home.root}: {total}" + (f" ({shown})" if shown else ""))


def _size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; what vanishes meanwhile counts as nothing."""
    try:
        if path.is_dir() and not path.is_symlink():
            return sum(_size(child) for child in path.iterdir())
        return path.lstat().st_size
    except OSError:
        return 0


def _disk(home: Home) -> Iterator[Check]:
    place = next(folder for folder in (home.root, *home.root.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    status: Status = "ok" if free >= ENOUGH_DISK else "warn" if free >= LITTLE_DISK else "fail"
    remedy = "" if status == "ok" else "free some, or name a folder on another disk with HOPBENCH_HOME=DIR"
    yield Check(status, "disk", f"{free / GIB:,.1f} GiB free", remedy)


def _embedder() -> Iterator[Check]:
    from hopbench.retrieval.embedding.factory import get_embedder
    from hopbench.retrieval.support.errors import HopBenchError

    try:
        vectors = get_embedder("wordllama").embed(["a question"])
    except (HopBenchError, ImportError, OSError) as error:
        yield Check("fail", "embedder", f"wordllama: {error}", "make setup, or choose another with --embedder")
        return
    yield Check("ok", "embedder", f"wordllama answers with {vectors.shape[1]} dimensions, offline")


def plugin_checks() -> Iterator[Check]:
    """Every plug-in by kind; this loads them."""
    from hopbench.retrieval.plugins.code import unreadable_lines

    found = {kind: resolve_name(place)() for kind, place in REGISTRIES.items()}
    known: dict[str, Registry[Any]] = {kind: getattr(one, "registry", one) for kind, one in found.items()}
    for kind, registry in known.items():
        for name in registry.plugins():
            code = registry.code_of(name)
            held = "; ".join(unreadable_lines(code))
            package = ", ".join(map(str, code))  # hopbench-mine 1.0+0f343b093112
            yield Check("warn" if held else "ok", f"plug-in {name}", held or f"{kind}, {package}")
    for kind, registry in known.items():
        for name, reason in registry.broken.items():
            yield Check("warn", f"plug-in {name}", f"{kind}: {reason}")


def _benchmarks() -> Iterator[Check]:
    from hopbench.eval.benchmarks import benchmark_names, load_benchmark
    from hopbench.retrieval.support.errors import HopBenchError

    for name in benchmark_names():
        try:
            loaded = load_benchmark(name)
        except (HopBenchError, OSError) as error:
            yield Check("fail", f"benchmark {name}", str(error), "get its files again: check out or install anew")
            continue
        yield Check(
            "ok", f"benchmark {name}", f"{len(loaded.passages):,} passages, {len(loaded.questions):,} questions"
        )
    if not benchmark_names():
        yield Check("fail", "benchmarks", "none is shipped with this installation", "install hopbench anew")


def _mlflow_database(home: Home) -> Iterator[Check]:
    """The default tracking database; a server named by MLFLOW_TRACKING_URI is checked with the servers."""
    if os.environ.get("MLFLOW_TRACKING_URI"):
        return
    if not home.mlflow_db.exists():
        yield Check("ok", "mlflow", "its database is made at the first run")
        return
    try:
        connection = sqlite3.connect(f"{home.mlflow_db.as_uri()}?mode=ro", uri=True, timeout=1)
        try:
            (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        remedy = f"move {home.mlflow_db.name} away, or name a server with MLFLOW_TRACKING_URI"
        yield Check("fail", "mlflow", f"{home.mlflow_db}: {error}", remedy)
        return
    yield Check("ok", "mlflow", f"{home.mlflow_db.name} holds {runs} runs")


def _browser() -> Iterator[Check]:
    wanted = ("chromium", "chromedriver")
    missing = [name for name in wanted if shutil.which(name) is None]
    if missing:
        remedy = "only for the project's own browser tests: apt-get install chromium chromium-driver"
        yield Check("off", "browser tests", f"not found: {', '.join(missing)}", remedy)
    else:
        yield Check("ok", "browser tests", "chromium and its driver are installed")
