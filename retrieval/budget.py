"""The reading budget, the same for all strategies: none wins by giving the reader more context."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hopbench.retrieval.chunking import count_tokens
from hopbench.retrieval.types import Chunk

_TOKEN = re.compile(r"\w+|[^\w\s]")
# Trials on one corpus put the same passages into their contexts again and again.
counted = lru_cache(maxsize=1 << 15)(count_tokens)


@dataclass(frozen=True, slots=True)
class Budget:
    """At most `chunks` chunks and `tokens` tokens (`count_tokens`), a graph block included."""

    chunks: int = 5
    tokens: int = 1500

    def fit(self, ranked: Sequence[Chunk], graph_context: str = "") -> tuple[list[Chunk], str]:
        """The chunks that fit, best first, and the context made of them.

        The graph block comes first and counts; one longer than the budget is cut. The chunk at which the tokens run
        out is cut, and is the last.
        """
        read, parts = self.parts(ranked, graph_context)
        return read, "\n\n".join(parts)

    def parts(self, ranked: Sequence[Chunk], graph_context: str = "") -> tuple[list[Chunk], list[str]]:
        """As `fit`, with the context in parts: the graph block, if there is one, then the text of each chunk."""
        block = first_tokens(graph_context, self.tokens)
        parts = [block] if block else []
        left = self.tokens - counted(block)
        read = []
        for chunk, text in self._cut(ranked, left):
            read.append(chunk)
            parts.append(text)
        return read, parts

    def _cut(self, ranked: Sequence[Chunk], left: int) -> Iterator[tuple[Chunk, str]]:
        for chunk in ranked[: self.chunks]:
            if left <= 0:
                return
            text = first_tokens(chunk.content, left)
            left -= counted(text)
            yield chunk, text


def first_tokens(text: str, limit: int) -> str:
    """A text cut after its first `limit` tokens."""
    if len(text) <= limit or counted(text) <= limit:  # a token has at least one character
        return text
    for number, match in enumerate(_TOKEN.finditer(text)):
        if number == limit:
            return text[: match.start()].rstrip()
    return text
