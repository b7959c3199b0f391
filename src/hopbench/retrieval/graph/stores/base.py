"""The protocol of graph stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol

from hopbench.retrieval.graph.schema import Tables
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
        ...

    def write(self, tables: Tables, record: Mapping[str, object]) -> None:
        """Replace the namespace's content with these tables and their build record."""
        ...

    def record(self) -> Mapping[str, Any] | None:
        """The build record of a completely written graph, or None."""
        ...

    def stamp(self) -> str | None:
        """A digest that changes whenever the content may have changed; None if nothing may be cached from it."""
        ...

    def drop(self) -> None:
        """Remove the namespace's content, if any."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


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
