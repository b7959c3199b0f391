"""A real Neo4j Community on this machine without Docker: one process, loopback only, its data in a temporary folder.

It is for tests and trials. It ends by `stop`, by SIGTERM, or when the process it was started for ends, however that
happens, and its folder is removed with it. Maven fetches its jars once into the home's cache.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import as_file, files
from pathlib import Path

from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError, StoreError

PACKAGE = files("tools.neo4j_server")
MIN_JAVA = 17
USER = "neo4j"
MEMORY = {"NEO4J_HEAP": "1g", "NEO4J_PAGECACHE": "256m"}  # the variables of docker-compose.yml
START_SECONDS = 180
STOP_SECONDS = 60
SETTINGS: Mapping[str, str] = {
    "server.bolt.enabled": "true",
    "dbms.security.auth_enabled": "true",
    "dbms.usage_report.enabled": "false",
    "db.tx_log.rotation.retention_policy": "1 files",
    "db.checkpoint.interval.time": "1m",
    "db.transaction.monitor.check.interval": "50ms",  # how soon a query over its limit is noticed
}


def neo4j_jars(home: Home) -> Path:
    """The folder of the jars that `pom.xml` names; the first time Maven downloads them (116 MB).

    Raises InputError where Maven is missing or cannot fetch them.
    """
    pom = (PACKAGE / "pom.xml").read_text(encoding="utf-8")
    version = re.search(r"<neo4j\.version>(.+?)</neo4j\.version>", pom)
    folder = home.cache / f"neo4j-{version[1] if version else 'unknown'}"
    if not folder.is_dir():
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _copy_dependencies(partial)
        partial.rename(folder)
    return folder


def _copy_dependencies(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise InputError("make neo4j needs Maven (mvn) to fetch Neo4j: apt-get install maven, or set NEO4J_URI instead")
    with as_file(PACKAGE / "pom.xml") as pom:
        command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        done = subprocess.run([*command, "-DincludeScope=runtime"], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stdout + done.stderr).strip()[-2000:]
        raise InputError(f"Maven could not fetch Neo4j (exit {done.returncode}); is its repository reachable? {reason}")


def java() -> str:
    """The Java to run it with. Raises InputError where there is none, or one older than 17."""
    path = shutil.which("java")
    if path is None:
        raise InputError("make neo4j needs Java 17 or newer: apt-get install openjdk-17-jdk-headless")
    output = subprocess.run([path, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', output)
    if version is None or int(version[1]) < MIN_JAVA:
        raise InputError(f"make neo4j needs Java {MIN_JAVA} or newer; {path} is {output.splitlines()[:1]}")
    return path


@dataclass(frozen=True)
class Neo4jServer:
    """A running server: its process, where Bolt listens, and the folder that goes when it ends."""

    pid: int
    port: int
    password: str = field(repr=False)
    folder: Path
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def uri(self) -> str:
        """Where Bolt listens."""
        return f"bolt://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """The variables by which clients find it."""
        return {"NEO4J_URI": self.uri, "NEO4J_USERNAME": USER, "NEO4J_PASSWORD": self.password}

    def running(self) -> bool:
        """Whether the process is there and is the server."""
        if self.process is not None:
            return self.process.poll() is None
        try:
            return str(self.folder).encode() in Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except OSError:
            return False

    def stop(self) -> None:
        """End it cleanly (about 10 s); its data goes."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would; its data stays for `restarted`."""
        self._end(signal.SIGKILL)

    def restarted(self, home: Home, **settings: str) -> Neo4jServer:
        """Start again on the same data, port and password, after `kill`."""
        _configure(self.folder, self.port, settings)
        process = _launch(home, self.folder, self.log, os.getpid())
        again = replace(self, pid=process.pid, process=process)
        again._wait(self.password)
        return again

    def _end(self, how: signal.Signals) -> None:
        if not self.running():
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, how)
        end = time.monotonic() + STOP_SECONDS
        while self.running():
            if time.monotonic() > end:
                raise StoreError(f"Neo4j (process {self.pid}) does not stop; its log is {self.log}")
            time.sleep(0.05)

    def _wait(self, password: str) -> None:
        """Until Bolt answers; then the password is the server's own."""
        from neo4j import GraphDatabase
        from neo4j.exceptions import ServiceUnavailable, SessionExpired

        end = time.monotonic() + START_SECONDS
        with GraphDatabase.driver(self.uri, auth=(USER, password)) as driver:
            while True:
                try:
                    with driver.session(database="system") as session:
                        if password == self.password:
                            session.run("SHOW CURRENT USER").consume()
                        else:
                            change = "ALTER CURRENT USER SET PASSWORD FROM $old TO $new"
                            session.run(change, old=password, new=self.password).consume()
                    break
                except (ServiceUnavailable, SessionExpired) as error:
                    if not self.running() or time.monotonic() > end:
                        tail = self.log.read_text(errors="replace")[-2000:]
                        raise StoreError(f"Neo4j did not start; its log is {self.log} and ends: {tail}") from error
                    time.sleep(0.2)


def start(home: Home, parent: int, announced: Sequence[Path] = (), **settings: str) -> Neo4jServer:
    """Start a server and wait until it answers (about 10 s). It ends with the process `parent` (0: only by `stop`).

    The `announced` files go when it ends, since they will tell others where it is. NEO4J_HEAP and NEO4J_PAGECACHE give
    its memory; InputError where one is no size.
    """
    for name in MEMORY:
        _memory(name)  # before anything is made
    home.scratch.mkdir(parents=True, exist_ok=True)
    home.logs.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="neo4j-", dir=home.scratch))
    log = home.logs / f"{folder.name}.log"
    port = _free_port()
    _configure(folder, port, settings)
    process = _launch(home, folder, log, parent, announced)
    server = Neo4jServer(process.pid, port, secrets.token_urlsafe(24), folder, log, process)
    try:
        server._wait(USER)
    except BaseException:
        server.stop()
        raise
    return server


def _configure(folder: Path, port: int, settings: Mapping[str, str]) -> None:
    own = {
        "server.bolt.listen_address": f"127.0.0.1:{port}",
        "server.memory.pagecache.size": _memory("NEO4J_PAGECACHE"),
    }
    lines = {**SETTINGS, **own, **settings}
    text = "".join(f"{name}={value}\n" for name, value in lines.items())
    (folder / "neo4j.conf").write_text(text, encoding="utf-8")


def _launch(
    home: Home, folder: Path, log: Path, parent: int, announced: Sequence[Path] = ()
) -> subprocess.Popen[bytes]:
    jars = neo4j_jars(home)
    with as_file(PACKAGE / "Server.java") as source, log.open("ab") as out:
        command = [java(), f"-Xmx{_memory('NEO4J_HEAP')}", "-cp", f"{jars}/*", str(source)]
        command += [str(folder), str(parent), *map(str, announced)]
        # A session of its own: the terminal's Ctrl-C ends the run that uses the server, not the server.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)


def _memory(name: str) -> str:
    size = os.environ.get(name) or MEMORY[name]
    if not re.fullmatch(r"[1-9]\d*[kmg]", size, re.IGNORECASE):
        raise InputError(f"{name} {size!r} is no size of memory: write a whole number with k, m or g, such as 4g")
    return size


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
