"""The one protocol behind which graphs are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hopbench.retrieval.graph.schema import GraphTables

Record = Mapping[str, Any]


class GraphStore(Protocol):
    """A graph of one namespace in some engine. A read is one round trip; writing the same tables twice is one write."""

    engine: str
    namespace: str

    def read(self, query: str, **parameters: object) -> list[Record]:
        """Run a read-only query of `cypher` with `$namespace` bound; one round trip."""
        ...

    def write(self, tables: GraphTables, record: Mapping[str, object]) -> None:
        """Replace the namespace's content by these tables and keep the build record beside them."""
        ...

    def record(self) -> Mapping[str, Any] | None:
        """The build record of a completely written graph, or None."""
        ...

    def stamp(self) -> str | None:
        """A digest that changes whenever the stored content may have, or None where that cannot be told cheaply."""
        ...

    def drop(self) -> None:
        """Remove the namespace's content, if there is any."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


def rows_of(record: Record) -> int:
    """How many rows a record stands for: the length of its list columns, else one."""
    lists = [len(value) for value in record.values() if isinstance(value, Sequence) and not isinstance(value, str)]
    return max(lists, default=1)
