"""LangChain retrievers on HopBench's leaderboard, and HopBench's strategies as LangChain retrievers.

from_langchain(retriever)                                  a function for a label (docs/your-retriever.md)
HopBenchRetriever(index=index, strategy=make("hoprank"))   a `BaseRetriever` for any chain
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from hopbench.retrieval.adapters import ask, first_of_each
from hopbench.retrieval.external import Retrieve


def from_langchain(retriever: BaseRetriever, id_field: str = "_id") -> Retrieve:
    """A LangChain retriever as a function of (questions, k) that returns passage ids.

    A document's passage is `metadata[id_field]`, else the document's own `id`; of several documents of one passage the
    first counts. How many documents come is the retriever's own setting: set it to k or more.
    """

    def retrieve(questions: Sequence[str], k: int) -> Sequence[Sequence[str]]:
        found = retriever.batch(list(questions))
        return [first_of_each((_passage_id(one, id_field) for one in documents), k) for documents in found]

    retrieve.__qualname__ = f"from_langchain({type(retriever).__name__})"
    return retrieve


def _passage_id(document: Document, id_field: str) -> str:
    found = document.metadata.get(id_field, document.id)
    if found is None:
        fields = ", ".join(map(str, document.metadata)) or "none"
        raise KeyError(f"a document has neither an id nor metadata[{id_field!r}] (metadata present: {fields})")
    return str(found)


class HopBenchRetriever(BaseRetriever):  # type: ignore[misc]  # the library is not type-checked
    """A strategy of HopBench over an opened `index` (an `Index`), as a chain takes it."""

    # Pydantic would take the dataclass apart, down to its store.
    index: Any
    strategy: Any
    k: int = Field(default=5, ge=1, le=100)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [
            Document(page_content=chunk.content, id=chunk.passage_id, metadata=metadata)
            for chunk, _, metadata in ask(self.index, self.strategy, query, self.k)
        ]
