"""The folder of everything HopBench stores, and the environment variables its libraries need before they are imported.

Everything lives under one folder, HOPBENCH_HOME (default `./.hopbench`). Deleting it forgets everything.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.retrieval.support.errors import InputError, UnknownNameError, exhausted

if TYPE_CHECKING:
    from hopbench.retrieval.graph.stores.base import GraphStore

DAYS = 7
PATTERNS = (
    "tmp/tables-*",
    "tmp/sweep-*-*",
    "tmp/pool/*",
    "tmp/compared/*",
    "cache/search/*/.*-*",
    "cache/passages/.*-*",
)
"""Below a home. What lies there belongs to one command, which touches it all the time."""

DEFAULT_HOME = ".hopbench"
NIGHT_RECORD = "nightly.json"


@dataclass(frozen=True)
class Home:
    """The folder of one installation's caches, graphs, ledger and databases; `root` is absolute."""

    root: Path
    cache: Path = field(init=False, repr=False, metadata={"place": "cache"})
    """What can be computed or downloaded again."""
    embeddings: Path = field(init=False, repr=False, metadata={"place": "cache/embeddings"})
    """Vectors by model, version and text."""
    graphs: Path = field(init=False, repr=False, metadata={"place": "graphs"})
    """Built graphs by build key."""
    ledger: Path = field(init=False, repr=False, metadata={"place": "ledger.db"})
    """The trial ledger (SQLite)."""
    replies: Path = field(init=False, repr=False, metadata={"place": "cache/llm"})
    """Language models' replies by all that decides them."""
    calls: Path = field(init=False, repr=False, metadata={"place": "calls.db"})
    """The ledger of calls to language models (SQLite)."""
    judgements: Path = field(init=False, repr=False, metadata={"place": "judgements.db"})
    """Judges' scores (SQLite)."""
    mlflow_db: Path = field(init=False, repr=False, metadata={"place": "mlflow.db"})
    """MLflow's default backend store (SQLite)."""
    mlartifacts: Path = field(init=False, repr=False, metadata={"place": "mlartifacts"})
    """Artifacts of runs in `mlflow_db`."""
    prefect: Path = field(init=False, repr=False, metadata={"place": "prefect"})
    """PREFECT_HOME: Prefect's database, profiles and local results."""
    prefect_db: Path = field(init=False, repr=False, metadata={"place": "prefect/prefect.db"})
    """Prefect's database (SQLite)."""
    neo4j_env: Path = field(init=False, repr=False, metadata={"place": "neo4j.env"})
    """NEO4J_URI, NEO4J_USERNAME and NEO4J_PASSWORD, for when the environment has none; written by `make neo4j`."""
    nights: Path = field(init=False, repr=False, metadata={"place": "nightly"})
    """Records of nights, a folder each."""
    runs: Path = field(init=False, repr=False, metadata={"place": "runs"})
    """Runs from Python and Prefect that were given no folder."""
    sweeps: Path = field(init=False, repr=False, metadata={"place": "sweeps"})
    """Sweeps from Prefect that were given no folder."""
    logs: Path = field(init=False, repr=False, metadata={"place": "logs"})
    """Logs of background processes."""
    scratch: Path = field(init=False, repr=False, metadata={"place": "tmp"})
    """TMPDIR of background processes, which leave lock files behind."""

    def __post_init__(self) -> None:
        """Set the places below `root`."""
        for one in fields(self)[1:]:
            object.__setattr__(self, one.name, self.root / one.metadata["place"])

    @classmethod
    def resolve(cls, environment: Mapping[str, str] | None = None) -> Home:
        """The home that HOPBENCH_HOME names, else `./.hopbench`; nothing is created yet."""
        chosen = (os.environ if environment is None else environment).get("HOPBENCH_HOME") or DEFAULT_HOME
        try:
            return cls(Path(chosen).expanduser().absolute())
        except RuntimeError as error:  # nobody of that name, or no home to be at
            raise InputError(f"HOPBENCH_HOME: {chosen}: ~ names no home here: write the folder out") from error
        except OSError as error:
            raise InputError("the folder that this was started in is gone: change to another one") from error

    def prepare(self) -> Home:
        """Create the folders, prove that each can be written, and remove what killed commands left `DAYS` days ago.

        Raises InputError, naming the folder and the reason, where that fails.
        """
        folders = (self.embeddings, self.graphs, self.mlartifacts, self.prefect, self.logs, self.scratch)
        for folder in (self.root, *folders):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                # Asking os.access would lie for root, on read-only mounts and on full disks.
                with tempfile.TemporaryFile(dir=folder):
                    pass
            except OSError as error:
                if (lacking := exhausted(error, folder)) is not None:
                    raise lacking from error
                raise InputError(
                    f"HOPBENCH_HOME: the folder {folder} cannot be written ({error.strerror or error}). "
                    "Free or allow it, or name another folder with HOPBENCH_HOME=DIR."
                ) from error
        limit = time.time() - DAYS * 86400  # by age, not by whether a process lives: machines of a pool share a home
        for place in (place for pattern in PATTERNS for place in self.root.glob(pattern)):
            with suppress(FileNotFoundError):
                if place.is_dir() and all(one.stat().st_mtime < limit for one in (place, *place.rglob("*"))):
                    shutil.rmtree(place, ignore_errors=True)
        return self

    def environment(self, current: Mapping[str, str]) -> dict[str, str]:
        """Variables to add to `current`: homes under `root`, no telemetry, quiet logs. A user's own value wins."""
        wanted = {
            "PREFECT_HOME": str(self.prefect),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
            "DO_NOT_TRACK": "1",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "RAGAS_DO_NOT_TRACK": "true",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "MLFLOW_LOGGING_LEVEL": "WARNING",
            # A tracking server that is down is reported in seconds; the default is 7 tries of 2 minutes.
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
            "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
            "MPLCONFIGDIR": str(self.cache / "matplotlib"),
            "FASTEMBED_CACHE_PATH": str(self.cache / "fastembed"),
        }
        if "PREFECT_LOGGING_LEVEL" not in current:
            # The run's log shows what we log and the flow's own states; not those of every task, which have a list of
            # their own. Failures reach the user as our message; Prefect's traceback of the same error stays in its log.
            wanted |= {
                "PREFECT_LOGGING_LEVEL": "INFO",
                "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "WARNING",
                "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
            }
        if "HF_HOME" not in current:
            # Not HF_HOME itself: the user's Hub login lives there.
            wanted |= {
                "HF_HUB_CACHE": str(self.cache / "huggingface" / "hub"),
                "HF_DATASETS_CACHE": str(self.cache / "huggingface" / "datasets"),
                "HF_MODULES_CACHE": str(self.cache / "huggingface" / "modules"),
                "HF_ASSETS_CACHE": str(self.cache / "huggingface" / "assets"),
                "HF_XET_CACHE": str(self.cache / "huggingface" / "xet"),
            }
        return {name: value for name, value in wanted.items() if name not in current}

    def apply_environment(self) -> None:
        """Set `environment()` in this process; call it before prefect, mlflow, ragas or datasets are imported."""
        os.environ.update(self.environment(os.environ))


STORES = ("arrays", "kglite", "neo4j")


def check_store(engine: str, home: Home) -> None:
    """Raise UnknownNameError for an unknown store, InputError where Neo4j's server is not named anywhere."""
    if engine not in STORES:
        raise UnknownNameError("store", engine, STORES)
    if engine == "neo4j":
        from hopbench.retrieval.graph.stores.neo4j_connection import Connection

        Connection.resolve(os.environ, home.neo4j_env)


def open_store(engine: str, namespace: str, home: Home) -> GraphStore:
    """The engine's store of a namespace; connects or reads when it is first used."""
    check_store(engine, home)
    if engine == "neo4j":
        from hopbench.retrieval.graph.stores.neo4j_connection import Connection
        from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore  # loads pandas

        return Neo4jStore(Connection.resolve(os.environ, home.neo4j_env), namespace)
    if engine == "arrays":
        from hopbench.retrieval.graph.stores.arrays.store import ArrayStore

        return ArrayStore(home.graphs, namespace)
    from hopbench.retrieval.graph.stores.kglite_store import KgliteStore

    return KgliteStore(home.graphs, namespace)
