"""Neo4j Community's jars, fetched once by Maven into the home's cache."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.resources import as_file, files
from pathlib import Path

from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError

PACKAGE = files("tools.neo4j_server")
MIN_JAVA = 17


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
