"""Embedders, and the table of built-in ones, which loads none of them."""

from __future__ import annotations

from collections.abc import Mapping

BUILT_IN: Mapping[str, str] = {
    "wordllama": "hopbench.retrieval.embedding.models:WordLlamaEmbedder",
    "minilm": "hopbench.retrieval.embedding.models:MiniLMEmbedder",
    "multilingual": "hopbench.retrieval.embedding.models:MultilingualEmbedder",
    "fastembed": "hopbench.retrieval.embedding.models:FastEmbedEmbedder",
    "openai": "hopbench.retrieval.embedding.openai_endpoint:OpenAIEmbedder",
}
"""Name → `module:class`; an entry point of a package has the same form."""

EXAMPLES: Mapping[str, str] = {"fastembed": "BAAI/bge-small-en-v1.5", "openai": "text-embedding-3-small"}
"""A model for each built-in embedder that needs one after a colon."""
