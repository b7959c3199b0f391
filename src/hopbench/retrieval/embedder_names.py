"""The one table of built-in embedders, without loading any."""

from __future__ import annotations

from collections.abc import Mapping

_HERE = "hopbench.retrieval.embedding"
BUILT_IN: Mapping[str, str] = {
    "wordllama": f"{_HERE}.wordllama_model:WordLlamaEmbedder",
    "minilm": f"{_HERE}.minilm_model:MiniLMEmbedder",
    "fastembed": f"{_HERE}.fastembed_model:FastEmbedEmbedder",
    "openai": f"{_HERE}.openai_endpoint:OpenAIEmbedder",
}
"""Name → `module:class`; an entry point of a package has the same form."""

EXAMPLES: Mapping[str, str] = {"fastembed": "BAAI/bge-small-en-v1.5", "openai": "text-embedding-3-small"}
"""A model for each of ours that needs one after a colon."""
