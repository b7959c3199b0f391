"""LlamaIndex retrievers on HopBench's leaderboard, and HopBench's strategies as LlamaIndex retrievers.

    from_llama_index(retriever)                          a function for a label (docs/your-retriever.md)
    HopBenchRetriever(index, make("hoprank"), k=5)       a `BaseRetriever` for any query engine

Needs the optional package of `hopbench[llama-index]`.
"""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from hopbench.retrieval.adapters import ask, first_of_each
from hopbench.retrieval.external import Retrieve
from hopbench.retrieval.index import Index
from hopbench.retrieval.strategies.base import Strategy


def from_llama_index(retriever: BaseRetriever, id_field: str = "_id") -> Retrieve:
    """A LlamaIndex retriever as a function of (questions, k) that returns passage ids.

    A node's passage is `metadata[id_field]`, else the document it was cut from, else the node's own id; of several
    nodes of one passage the first counts. How many nodes come is the retriever's own setting: set it to k or more.
    """

    def retrieve(questions: Sequence[str], k: int) -> Sequence[Sequence[str]]:
        found = [retriever.retrieve(text) for text in questions]
        return [first_of_each((_passage_id(one, id_field) for one in nodes), k) for nodes in found]

    retrieve.__qualname__ = f"from_llama_index({type(retriever).__name__})"
    return retrieve


def _passage_id(scored: NodeWithScore, id_field: str) -> str:
    node = scored.node
    return str(node.metadata.get(id_field) or node.ref_doc_id or node.node_id)


class HopBenchRetriever(BaseRetriever):  # type: ignore[misc]  # the library is not type-checked
    """A strategy of HopBench over an opened index, as a query engine takes it."""

    def __init__(self, index: Index, strategy: Strategy, k: int = 5) -> None:
        super().__init__()
        self.index = index
        self.strategy = strategy
        self.k = k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        nodes = []
        for chunk, score, metadata in ask(self.index, self.strategy, query_bundle.query_str, self.k):
            node = TextNode(
                id_=chunk.passage_id,
                text=chunk.content,
                metadata=metadata,
                excluded_llm_metadata_keys=list(metadata),  # they are for the program: a model reads title and text
                excluded_embed_metadata_keys=list(metadata),
            )
            nodes.append(NodeWithScore(node=node, score=score))
        return nodes
