"""The Cypher that a strategy sends for one question, as text to paste into a Neo4j browser."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hopbench.retrieval.graph.stores.base import GraphStore, Record
from hopbench.retrieval.index import INDEX_VALUES, Batch, Index, Memo, ReadCache
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.types import Counters, Question

_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029]')
_ESCAPES = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t"}
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Query:
    """One round trip: the text and its parameters, `namespace` among them."""

    text: str
    parameters: Mapping[str, object]


class _Recording:
    """A store that records the queries it is sent."""

    def __init__(self, store: GraphStore) -> None:
        self._store = store
        self.queries: list[Query] = []

    def read(self, query: str, **parameters: object) -> list[Record]:
        self._note(query, parameters)
        return self._store.read(query, **parameters)

    def read_parts(self, query: str) -> Iterator[list[Record]]:
        self._note(query, {})
        return self._store.read_parts(query)

    def _note(self, query: str, parameters: Mapping[str, object]) -> None:
        self.queries.append(Query(_as_sent(self._store, query), {"namespace": self._store.namespace, **parameters}))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def queries_of(strategy: Strategy, index: Index, question: Question) -> Sequence[Query]:
    """Record the queries that a strategy sends for one question when nothing is cached.

    What files keep of the graph is not among them.
    """
    recording = _Recording(index.store)
    bare = copy.copy(index)  # keeps the vectors and the BM25 index, which are not read from the store
    bare.store, bare.reads = cast("GraphStore", recording), ReadCache()
    bare.memo = Memo(INDEX_VALUES)  # what was read from the graph is to be read again; services stay
    strategy.rank(Batch(bare, [question]), Counters())
    return recording.queries


def pasteable(strategy: Strategy, index: Index, question: Question) -> Sequence[Query]:
    """Return the query that the strategy's source gives readers to paste; none for most strategies."""
    own = strategy.pasteable(Batch(index, [question]))
    return [Query(_as_sent(index.store, text), parameters) for text, parameters in own]


def _as_sent(store: GraphStore, query: str) -> str:
    """A query of `cypher` as it is sent to the server: a graph mapped from elsewhere has other names."""
    rewrite = getattr(store, "rewrite", None)
    return rewrite(query) if rewrite else query


def browser_text(queries: Sequence[Query], title: str = "round trip") -> str:
    """Format `:param` lines and the query for each round trip; values are literals in these lines, not in the query."""
    blocks = []
    for number, query in enumerate(queries, 1):
        lines = [f"// {title} {number} of {len(queries)}"]
        lines += [f":param {name} => {literal(value)};" for name, value in query.parameters.items()]
        blocks.append("\n".join([*lines, f"{query.text.strip()};"]))
    return "\n\n".join(blocks)


def literal(value: object) -> str:
    """Format a value as a Cypher literal on one line: strings quoted, with quotes, backslashes and line ends escaped.

    >>> literal({"q": 0, "ids": ["it's"]})
    '{q: 0, ids: ["it\\'s"]}'
    """
    if isinstance(value, Mapping):
        items = []
        for name, item in value.items():
            plain = _IDENTIFIER.fullmatch(str(name))
            key = str(name) if plain else "`" + str(name).replace("`", "``") + "`"
            items.append(f"{key}: {literal(item)}")
        return "{" + ", ".join(items) + "}"
    if isinstance(value, str):
        escaped = _SPECIAL.sub(lambda one: _ESCAPES.get(one[0], f"\\u{ord(one[0]):04x}"), value)
        return f'"{escaped}"'
    if isinstance(value, Sequence):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return json.dumps(value)
