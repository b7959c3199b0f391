"""The part of `hopbench doctor` that checks the files of the home, and with --repair repairs those that cost money."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import HopBenchError
from hopbench.retrieval.support.sqlite_files import MAGIC, damage, heal, unsound

Status = Literal["ok", "warn", "fail", "off"]


class Check(NamedTuple):
    """One line: `off` is optional and not set up; `fail` is required and stops a run."""

    status: Status
    part: str
    finding: str
    remedy: str = ""


REPAIR = "hopbench doctor --repair"
_JUDGED = ("metric", "question_id", "repeat", "value", "failure", "calls", "tokens_in", "tokens_out", "seconds")
Finding = tuple[str, str, Callable[[], object] | str]
"""Name, finding, and what repairs it: a function, or words where it is for the user to do."""


def home_checks(home: Home, repair: bool) -> Iterator[Check]:
    """A line for each problem, and one if there is none; `repair` fixes what it can."""
    if not home.root.is_dir():
        return
    sound = True
    for part in (_places, _databases, _rows, _trials, _graphs, _nights):
        for name, finding, mend in part(home):
            sound = False
            if isinstance(mend, str):
                yield Check("warn", name, finding, mend)
            elif not repair:
                yield Check("warn", name, finding, REPAIR)
            else:
                try:
                    mend()
                    yield Check("ok", name, f"{finding}: repaired")
                except (HopBenchError, OSError, sqlite3.Error) as error:
                    yield Check("fail", name, f"{finding}; not repaired: {error}", "move it away")
    if sound:
        yield Check("ok", "files of the home", "all read as they were written")


def _places(home: Home) -> Iterator[Finding]:
    """Folders where files belong, and the reverse."""
    files = [*_sqlite_files(home), home.neo4j_env, *home.scratch.glob("*.lock"), *home.replies.glob("*.flight")]
    files += [home.scratch / "mlflow.lock", home.prefect / "start.lock", home.nights / "lock"]
    for pattern in ("graphs/*.kgl", "graphs/*.arrays/*", "graphs/*.json", "staging/*.lock"):
        files += home.root.glob(pattern)
    for path in dict.fromkeys(files):
        if path.is_dir():
            yield path.name, f"{path}: a folder stands where a file belongs", partial(_aside, path)
    folders = (home.cache, home.embeddings, home.replies, home.graphs, home.mlartifacts, home.prefect, home.nights)
    owners = home.ledger.with_name(f"{home.ledger.name}-owners")
    for path in (*folders, home.logs, home.scratch, home.root / "staging", owners):
        if path.exists() and not path.is_dir():
            yield path.name, f"{path}: a file stands where a folder belongs", partial(_aside, path)


def _aside(path: Path) -> None:
    with suppress(OSError):
        path.rmdir()
        return
    path.rename(path.with_name(f"{path.name}.misplaced-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"))


def _sqlite_files(home: Home) -> list[Path]:
    own = [home.ledger, home.calls, home.judgements, home.replies / "llm.sqlite", home.mlflow_db, home.prefect_db]
    return [*own, *sorted(home.embeddings.glob("*.sqlite"))]


def _databases(home: Home) -> Iterator[Finding]:
    for file in _sqlite_files(home):
        if (reason := damage(file)) is None:
            continue
        if file.parent == home.embeddings:
            yield file.name, f"{file}: {reason}", f"delete {home.embeddings}: vectors are computed again"
        else:
            yield file.name, f"{file}: {reason}", partial(heal, file, "what is lost is done or asked again", str)


def _rows(home: Home) -> Iterator[Finding]:
    """Damaged replies and judgements, which cost money."""
    tables = ((home.replies / "llm.sqlite", "replies", ("reply",)), (home.judgements, "judgements", _JUDGED))
    for file, table, columns in tables:
        if file.is_file() and damage(file) is None and (bad := unsound(file, table, columns)):
            mend = partial(unsound, file, table, columns, remove=True)
            yield file.name, f"{file}: {bad:,} rows of {table} are not as they were written", mend


def _trials(home: Home) -> Iterator[Finding]:
    """Damaged rows of the ledger."""
    from hopbench.eval.trials.ledger import Ledger, unreadable

    if not home.ledger.is_file() or damage(home.ledger) is not None:
        return
    with home.ledger.open("rb") as file:
        if file.read(len(MAGIC)) not in (MAGIC, b""):
            return  # reported with the databases

    def mend() -> None:
        with Ledger.open(home.ledger) as ledger:
            ledger.damaged()

    if bad := unreadable(home.ledger):
        yield home.ledger.name, f"{home.ledger}: {len(bad)} trials do not read: {', '.join(bad[:5])}", mend


def _graphs(home: Home) -> Iterator[Finding]:
    from hopbench.flows.graph.build import noted
    from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
    from hopbench.retrieval.graph.stores.kglite_store import KgliteStore

    files = [KgliteStore(home.graphs, file.stem) for file in sorted(home.graphs.glob("*.kgl")) if file.is_file()]
    folders = [ArrayStore(home.graphs, folder.stem) for folder in sorted(home.graphs.glob("*.arrays"))]
    stores: list[KgliteStore | ArrayStore] = [*files, *folders]
    for store in stores:
        try:
            store.check(content=True) if isinstance(store, ArrayStore) else store.record()
        except HopBenchError as error:
            yield store.path.name, str(error).partition(" Build it again")[0], store.drop
        store.close()
    for note in sorted([*home.graphs.glob("*.kglite.json"), *home.graphs.glob("*.arrays.json")]):
        try:
            if note.is_file():
                noted(note)
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            yield note.name, f"{note}: cannot be read", note.unlink


def _nights(home: Home) -> Iterator[Finding]:
    from hopbench.flows.nights.history import damaged_records, set_aside

    for file in damaged_records(home.nights):
        yield file.parent.name, f"{file}: does not read as it was written", partial(set_aside, file)
