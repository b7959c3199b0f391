"""The protocol of graph stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from hopbench.retrieval.graph.schema import Tables

Record = Mapping[str, Any]


class GraphStore(Protocol):
    """The graph of one namespace in some engine. A read is one round trip; writes are idempotent."""

    engine: str
    namespace: str

    def read(self, query: str, **parameters: object) -> list[Record]:
        """Run a read-only query of `cypher` with `$namespace` bound; one round trip."""
        ...

    def read_parts(self, query: str) -> Iterator[list[Record]]:
        """Run a read-only query without parameters of its own whose rows may be too many for one answer."""
        ...

    def write(self, tables: Tables, record: Mapping[str, object]) -> None:
        """Replace the namespace's content by these tables and keep the build record beside them."""
        ...

    def record(self) -> Mapping[str, Any] | None:
        """The build record of a completely written graph, or None."""
        ...

    def stamp(self) -> str | None:
        """A digest that changes whenever the stored content may have changed; None if the engine has no cheap one."""
        ...

    def drop(self) -> None:
        """Remove the namespace's content, if there is any."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


def rows_of(record: Record) -> int:
    """The number of rows in a record: the length of its list columns, or 1 without any."""
    return max((len(value) for value in record.values() if isinstance(value, (list, tuple))), default=1)
