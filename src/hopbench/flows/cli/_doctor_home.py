"""The part of `hopbench doctor` that checks every file of the home, and with --repair repairs damaged ones."""

from __future__ import annotations

import shutil
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


def home_checks(home: Home, repair: bool) -> Iterator[Check]:
    """A line for each problem, and one if there is none; `repair` fixes what it can."""
    if not home.root.is_dir():
        return
    found = 0
    for part in (_places, _databases, _rows, _trials, _graphs, _searches, _stages, _nights):
        for name, finding, mend in part(home):
            found += 1
            yield _check_of(name, finding, mend, repair)
    if not found:
        yield Check("ok", "files of the home", "all read as they were written")


Finding = tuple[str, str, Callable[[], object]]


def _check_of(name: str, finding: str, mend: Callable[[], object], repair: bool) -> Check:
    if not repair:
        return Check("warn", name, finding, REPAIR)
    try:
        mend()
    except (HopBenchError, OSError, sqlite3.Error) as error:
        return Check("fail", name, f"{finding}; not repaired: {error}", "move it away")
    return Check("ok", name, f"{finding}: repaired")


def _places(home: Home) -> Iterator[Finding]:
    """Folders where files belong, and the reverse."""
    files = [*_sqlite_files(home), home.neo4j_env]
    files += [home.scratch / "mlflow.lock", home.prefect / "start.lock", home.nights / "lock"]
    files += [
        *home.graphs.glob("*.kgl"),
        *home.graphs.glob("*.arrays/*"),
        *home.graphs.glob("*.json"),
        *home.scratch.glob("*.lock"),
    ]
    files += [*(home.root / "staging").glob("*.lock"), *home.replies.glob("*.flight")]
    for path in dict.fromkeys(files):
        if path.is_dir():
            yield path.name, f"{path}: a folder stands where a file belongs", partial(_aside, path)
    folders = (home.cache, home.embeddings, home.replies, home.graphs, home.mlartifacts, home.prefect, home.nights)
    for path in (*folders, home.logs, home.scratch, home.root / "staging", _owners(home)):
        if path.exists() and not path.is_dir():
            yield path.name, f"{path}: a file stands where a folder belongs", partial(_aside, path)


def _aside(path: Path) -> None:
    with suppress(OSError):
        path.rmdir()
        return
    path.rename(path.with_name(f"{path.name}.misplaced-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"))


def _owners(home: Home) -> Path:
    return home.ledger.with_name(f"{home.ledger.name}-owners")


def _sqlite_files(home: Home) -> list[Path]:
    own = [home.ledger, home.calls, home.judgements, _replies(home), home.mlflow_db, home.prefect_db]
    return [*own, *sorted(home.embeddings.glob("*.sqlite"))]


def _replies(home: Home) -> Path:
    return home.replies / "llm.sqlite"


def _databases(home: Home) -> Iterator[Finding]:
    for file in _sqlite_files(home):
        reason = damage(file)
        if reason is not None:
            yield file.name, f"{file}: {reason}", partial(_heal, file)


def _heal(file: Path) -> None:
    heal(file, "what is lost is done or asked again", lambda _: None)


def _rows(home: Home) -> Iterator[Finding]:
    """Damaged rows of caches."""
    tables: list[tuple[Path, str, tuple[str, ...]]] = [
        (_replies(home), "replies", ("reply",)),
        (home.judgements, "judgements", _JUDGED),
        *((file, "vectors", ("key", "vector")) for file in sorted(home.embeddings.glob("*.sqlite"))),
    ]
    for file, table, columns in tables:
        if file.is_file() and damage(file) is None and (bad := unsound(file, table, columns)):
            yield (
                file.name,
                f"{file}: {bad:,} rows of {table} are not as they were written",
                partial(unsound, file, table, columns, remove=True),
            )


def _trials(home: Home) -> Iterator[Finding]:
    """Damaged rows of the ledger."""
    from hopbench.eval.trials.ledger import Ledger, unreadable

    if not home.ledger.is_file() or damage(home.ledger) is not None:
        return
    with home.ledger.open("rb") as file:
        if file.read(len(MAGIC)) not in (MAGIC, b""):
            return  # reported with the databases
    bad = unreadable(home.ledger)

    def mend() -> None:
        with Ledger.open(home.ledger) as ledger:
            ledger.damaged()

    if bad:
        yield home.ledger.name, f"{home.ledger}: {len(bad)} trials do not read: {', '.join(bad[:5])}", mend


def _graphs(home: Home) -> Iterator[Finding]:
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
        if note.is_file() and not _reads(note):
            yield note.name, f"{note}: cannot be read", note.unlink


def _reads(note: Path) -> bool:
    from hopbench.flows.graph.build import noted

    try:
        noted(note)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return False
    return True


def _searches(home: Home) -> Iterator[Finding]:
    """What was computed from corpora and graphs for `--store arrays`; what is removed is made again."""
    from hopbench.retrieval.support.cached_files import damaged

    for folder in sorted([*(home.cache / "search").glob("*/"), *home.cache.glob("passages/")]):
        for part in damaged(folder):
            yield f"{folder.name}/{part.name}", f"{part}: is not as it was written", partial(shutil.rmtree, part)


def _stages(home: Home) -> Iterator[Finding]:
    from hopbench.retrieval.graph.construction.staging import intact

    for stage in sorted((home.root / "staging").glob("*/*")):
        if stage.is_dir() and not stage.name.endswith(".partial") and not intact(stage):
            yield "staging", f"{stage}: a stage of a graph does not read", partial(shutil.rmtree, stage)


def _nights(home: Home) -> Iterator[Finding]:
    from hopbench.flows.nights.history import damaged_records, set_aside

    for file in damaged_records(home.nights):
        yield file.parent.name, f"{file}: does not read as it was written", partial(set_aside, file)
