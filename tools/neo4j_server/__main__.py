"""`python -m tools.neo4j_server start|stop`: what `make neo4j` and `make neo4j-stop` do."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import HopBenchError
from hopbench.retrieval.support.locking import exclusive
from tools.neo4j_server.server import Neo4jServer, start


def main(command: str, parent: int) -> None:
    """Start a server for this home, or stop it. `neo4j.env` tells clients, `neo4j.pid` this program."""
    home = Home.resolve()
    home.root.mkdir(parents=True, exist_ok=True)
    with exclusive(home.root / "neo4j.lock"):
        server = _running(home)
        if command == "stop":
            _stop(home, server)
        elif server is not None:
            _say(f"Neo4j is running at {server.uri} (process {server.pid})")
        else:
            _start(home, parent)


def _start(home: Home, parent: int) -> None:
    server = start(home, parent, [home.neo4j_env, home.root / "neo4j.pid"])
    announce(home, server)
    ends = f"ends with process {parent} or by make neo4j-stop" if parent else "ends by make neo4j-stop"
    _say(f"Neo4j answers at {server.uri} (process {server.pid}); user and password are in {home.neo4j_env}; it {ends}")


def announce(home: Home, server: Neo4jServer) -> None:
    """Write what clients and the next `start` or `stop` find this server by."""
    kept = {name: getattr(server, name) for name in ("pid", "port", "password", "folder", "log")}
    _write_private(home.root / "neo4j.pid", json.dumps(kept, default=str))
    _write_private(home.neo4j_env, "".join(f"{name}={value}\n" for name, value in server.environment().items()))


def _stop(home: Home, server: Neo4jServer | None) -> None:
    if server is not None:
        server.stop()
    (home.root / "neo4j.pid").unlink(missing_ok=True)
    home.neo4j_env.unlink(missing_ok=True)
    _say("Neo4j is stopped" if server else "Neo4j was not running")


def _running(home: Home) -> Neo4jServer | None:
    try:
        kept = json.loads((home.root / "neo4j.pid").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    server = Neo4jServer(kept["pid"], kept["port"], kept["password"], Path(kept["folder"]), Path(kept["log"]))
    return server if server.running() else None


def _write_private(path: Path, text: str) -> None:
    """Readable by the owner alone from its first byte."""
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    partial.rename(path)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def lasting_parent() -> int:
    """The process whose end shall end the server: the leader of our session, such as the terminal's shell.

    Shells that run one command line, and make itself, end before the server is of use: their parent is taken. 0 where
    nothing is left but the system's first process.
    """
    process = os.getsid(0)
    while process > 1 and _passing(process):
        process = int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    return process if process > 1 else 0


def _passing(process: int) -> bool:
    words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    name = os.path.basename(words[0])
    one_line = name in (b"sh", b"bash", b"dash", b"zsh") and re.match(rb"-\w*c$", words[1] if len(words) > 1 else b"")
    return process == os.getpid() or name in (b"make", b"gmake") or bool(one_line)


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else lasting_parent())
    except HopBenchError as error:
        sys.exit(f"{error}")
