"""LangChain's and LlamaIndex's own retrievers as functions, and a strategy as theirs: the same passages both ways.

Both libraries are imported by the tests that use them: every worker imports this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from tests.support.graphs import WordEmbedder

from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.external import Function, Recorded
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.baselines import BM25, Vector
from hopbench.retrieval.support.errors import HopBenchError
from hopbench.retrieval.text import ENGLISH
from hopbench.retrieval.types import Counters, Passage, Question

WORDS = ("river", "town", "poet", "bridge", "harbour", "museum", "castle", "orchard", "violin")
PASSAGES = [
    Passage(f"p{n}", f"{WORDS[n % 9]} {n}", f"the {WORDS[n % 9]} near the {WORDS[n % 7]} by the {WORDS[n % 5]}")
    for n in range(30)
]
ASKED = ["which poet crossed the river", "the museum in the castle", "a violin"]
EMBEDDER = WordEmbedder()


@pytest.fixture(scope="module")
def index() -> Index:
    chunks = chunk_passages(PASSAGES)
    return Index(
        chunks, EMBEDDER.embed([c.content for c in chunks]), cast("GraphStore", None), EMBEDDER, known_language=ENGLISH
    )


def embedded(text: str) -> list[float]:
    return [float(number) for number in EMBEDDER.embed([text])[0]]


def contents() -> list[tuple[str, str]]:
    return [(chunk.passage_id, chunk.content) for chunk in chunk_passages(PASSAGES)]


def langchain_store() -> Any:
    """LangChain's store of vectors, over our words."""
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class TheirEmbeddings(Embeddings):  # type: ignore[misc]
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return list(map(embedded, texts))

        def embed_query(self, text: str) -> list[float]:
            return embedded(text)

    return InMemoryVectorStore(TheirEmbeddings())


def of_langchain() -> Any:
    from langchain_core.documents import Document

    from hopbench.retrieval.adapters.langchain import from_langchain

    store = langchain_store()
    store.add_documents([Document(text, metadata={"_id": passage}) for passage, text in contents()])
    return from_langchain(store.as_retriever(search_kwargs={"k": 30}))


def of_llama_index() -> Any:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

    from hopbench.retrieval.adapters.llama_index import from_llama_index

    class TheirEmbedding(BaseEmbedding):  # type: ignore[misc]
        def _get_text_embedding(self, text: str) -> list[float]:
            return embedded(text)

        def _get_query_embedding(self, query: str) -> list[float]:
            return embedded(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return embedded(query)

    nodes = [
        TextNode(text=text, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=passage)})
        for passage, text in contents()
    ]
    found = VectorStoreIndex(nodes, embed_model=TheirEmbedding()).as_retriever(similarity_top_k=30)
    assert isinstance(found, VectorIndexRetriever)
    return from_llama_index(found)


@pytest.mark.parametrize("made", [of_langchain, of_llama_index])
def test_their_vector_search_over_our_vectors_finds_what_our_vector_label_finds(
    index: Index, made: Callable[[], Any]
) -> None:
    batch = Batch(index, [Question(str(number), text) for number, text in enumerate(ASKED)])
    ours, theirs = Vector().rank(batch, Counters()), Function(retrieve=made()).rank(batch, Counters())

    for own, foreign in zip(ours, theirs, strict=True):
        assert foreign.failure is None
        scores = {hit.chunk_id: round(hit.score, 5) for hit in own.hits}
        # Passages of one score stand in any order.
        assert [scores[hit.chunk_id] for hit in own.hits] == [scores[hit.chunk_id] for hit in foreign.hits]


@pytest.mark.parametrize("made", [of_langchain, of_llama_index])
def test_the_label_is_named_after_the_library(made: Callable[[], Any]) -> None:
    assert made().__qualname__ in Function(retrieve=made()).spec()["function"]


def test_several_parts_of_one_passage_are_one_passage() -> None:
    from langchain_core.documents import Document

    from hopbench.retrieval.adapters.langchain import from_langchain

    store = langchain_store()
    store.add_documents([Document(f"poet {n}", metadata={"_id": f"p{n // 2}"}) for n in range(6)])
    retrieve = from_langchain(store.as_retriever(search_kwargs={"k": 6}))

    (found,) = retrieve(["poet"], 2)
    assert 2 == len(set(found)) == len(found)


def test_a_document_without_an_id_says_which_metadata_it_has() -> None:
    from langchain_core.documents import Document

    from hopbench.retrieval.adapters.langchain import _passage_id

    with pytest.raises(KeyError, match=r"neither an id nor metadata\['_id'\] \(metadata present: page\)"):
        _passage_id(Document("text", metadata={"page": 3}), "_id")


def expected(index: Index, text: str, k: int) -> Sequence[str]:
    (ranking,) = BM25().rank(Batch(index, [Question("q", text)]), Counters())
    return [hit.chunk_id for hit in ranking.hits[:k]]


def test_a_strategy_in_a_langchain_chain(index: Index) -> None:
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.runnables import RunnableLambda

    from hopbench.retrieval.adapters.langchain import HopBenchRetriever

    retriever = HopBenchRetriever(index=index, strategy=BM25(), k=3)
    documents = retriever.invoke(ASKED[0])

    assert expected(index, ASKED[0], 3) == [document.id for document in documents]
    assert documents[0].page_content == index.chunks[index.row_of[documents[0].id]].content
    assert {"_id", "title", "score", "origin", "strategy"} == set(documents[0].metadata)
    chain = retriever | RunnableLambda(lambda found: " ".join(one.id for one in found)) | StrOutputParser()
    assert " ".join(expected(index, ASKED[0], 3)) == chain.invoke(ASKED[0])


def test_a_strategy_in_a_llama_index_query_engine(index: Index) -> None:
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers import get_response_synthesizer

    from hopbench.retrieval.adapters.llama_index import HopBenchRetriever

    retriever = HopBenchRetriever(index, BM25(), k=3)
    nodes = retriever.retrieve(ASKED[0])

    assert expected(index, ASKED[0], 3) == [one.node.node_id for one in nodes]
    engine = RetrieverQueryEngine(retriever, get_response_synthesizer(llm=MockLLM()))
    assert expected(index, ASKED[0], 3) == [one.node.node_id for one in engine.query(ASKED[0]).source_nodes]


def test_there_and_back_again_is_the_same_ranking(index: Index) -> None:
    from hopbench.retrieval.adapters import langchain, llama_index

    own = expected(index, ASKED[1], 10)
    round_trips = (
        langchain.from_langchain(langchain.HopBenchRetriever(index=index, strategy=BM25(), k=10)),
        llama_index.from_llama_index(llama_index.HopBenchRetriever(index, BM25(), k=10)),
    )
    for retrieve in round_trips:
        assert [list(own)] == [list(one) for one in retrieve([ASKED[1]], 10)]


def test_a_strategy_that_fails_says_so(index: Index) -> None:
    from hopbench.retrieval.adapters.langchain import HopBenchRetriever

    retriever = HopBenchRetriever(index=index, strategy=Recorded(), k=3)
    with pytest.raises(HopBenchError, match="run: the run has no ranking for this question"):
        retriever.invoke("anything")
