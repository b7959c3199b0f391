"""What all graph stores share: their protocol, and how files of a graph are written, read and removed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import Tables
from hopbench.retrieval.support.errors import DamagedGraphError, InputError, exhausted
from hopbench.retrieval.support.texts import TextsOfRows

Record = Mapping[str, Any]
LISTS = frozenset((list, tuple, TextsOfRows))  # the types of a record's lists


class GraphStore(Protocol):
    """The graph of one namespace in some engine. A read is one round trip; writes are idempotent."""

    engine: str
    namespace: str

    def read(self, query: str, **parameters: object) -> list[Record]:
        """Run a read-only query of `cypher` with `$namespace` bound; one round trip."""
        ...

    def read_parts(self, query: str) -> Iterator[list[Record]]:
        """Run a query over the whole graph (one of `cypher.PARTS`) in as many parts as suit the engine.

        Records of parallel lists may be split; those of a kind follow each other.
        """
        yield self.read(query)

    def write(self, tables: Tables, record: Mapping[str, object]) -> None:
        """Replace the namespace's content with these tables and their build record."""
        ...

    def record(self) -> Mapping[str, Any] | None:
        """The build record of a completely written graph, or None."""
        rows = self.read(cypher.BUILD_RECORD)
        return json.loads(rows[0]["record"]) if rows else None

    def stamp(self) -> str | None:
        """A digest that changes whenever the content may have changed; None if nothing may be cached from it."""
        ...

    def drop(self) -> None:
        """Remove the namespace's content, if any."""
        ...

    def close(self) -> None:
        """Release files and connections; the next call opens them again."""
        ...


@contextmanager
def writing(graph: Path, errors: type[Exception] = OSError) -> Iterator[None]:
    """Replace an OSError, or an error of the engine, with one that names the graph's file and the remedy."""
    try:
        graph.parent.mkdir(parents=True, exist_ok=True)
        yield
    except (OSError, errors) as error:
        if (lacking := exhausted(error, graph)) is not None:
            raise lacking from error
        raise InputError(
            f"cannot write the graph {graph}: {error}. Free space there or set HOPBENCH_HOME to another folder"
        ) from error


def remove(graph: Path) -> None:
    """Remove a graph's file or folder, if there is one."""
    try:
        if graph.is_dir():
            shutil.rmtree(graph)
        graph.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot remove the graph {graph}: {error.strerror}: move it away") from error


def damaged(graph: Path, reason: object) -> DamagedGraphError:
    """The error for files of a graph that are not as they were written."""
    return DamagedGraphError(
        f"cannot read the graph {graph}: {str(reason).rstrip('.')}. Build it again: hopbench graph build --force"
    )


def rows_of(record: Record) -> int:
    """The number of rows in a record: the length of its list columns, or 1 without any."""
    return max([len(value) for value in record.values() if type(value) in LISTS], default=1)


def joined(parts: Iterable[Sequence[Record]]) -> list[Record]:
    """Concatenate the records of the parts; those of a kind, whose values are parallel lists, become one."""
    records: list[Record] = []
    of_kind: dict[str, dict[str, Any]] = {}
    for record in chain.from_iterable(parts):
        if "kind" not in record:
            records.append(record)
        elif record["kind"] not in of_kind:
            records.append(of_kind.setdefault(record["kind"], dict(record)))
        else:
            for name, values in of_kind[record["kind"]].items():
                if name != "kind":
                    values.extend(record[name])
    return records
