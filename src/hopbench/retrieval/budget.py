"""The reading budget, the same for all strategies: none wins by giving the reader more context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hopbench.retrieval.text.model_tokens import count_tokens, first_tokens
from hopbench.retrieval.types import Chunk

SEPARATOR, SEPARATOR_TOKENS = "\n\n", 2  # two where what follows begins with a slash or line break, else one or none


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
        return read, SEPARATOR.join(parts)

    def parts(self, ranked: Sequence[Chunk], graph_context: str = "") -> tuple[list[Chunk], list[str]]:
        """As `fit`, with the context in parts: the graph block, if there is one, then the text of each chunk."""
        block = first_tokens(graph_context, self.tokens)
        parts = [block] if block else []
        left = self.tokens - (count_tokens(block) + SEPARATOR_TOKENS if block else 0)
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
            if not text:
                return
            left -= count_tokens(text) + SEPARATOR_TOKENS
            yield chunk, text
