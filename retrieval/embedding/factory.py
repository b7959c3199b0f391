"""The embedder that `--embedder` names."""

from __future__ import annotations

from collections.abc import Callable

from hopbench.retrieval.embedding.base import Embedder
from hopbench.retrieval.embedding.cache import EmbeddingCache
from hopbench.retrieval.embedding.cached import CachedEmbedder
from hopbench.retrieval.embedding.fastembed_model import FastEmbedEmbedder
from hopbench.retrieval.embedding.minilm_model import MiniLMEmbedder
from hopbench.retrieval.embedding.openai_endpoint import OpenAIEmbedder
from hopbench.retrieval.embedding.wordllama_model import WordLlamaEmbedder
from hopbench.retrieval.support.errors import InputError, UnknownNameError

ALONE: dict[str, Callable[[], Embedder]] = {"minilm": MiniLMEmbedder, "wordllama": WordLlamaEmbedder}
WITH_MODEL = {"fastembed": "BAAI/bge-small-en-v1.5", "openai": "text-embedding-3-small"}
SPECS = (*ALONE, *(f"{kind}:MODEL" for kind in WITH_MODEL))


def get_embedder(spec: str, cache: EmbeddingCache | None = None) -> Embedder:
    """The embedder that `spec` names, behind `cache` when one is given; no model is loaded before the first new text.

    `spec`: `wordllama`, `minilm`, `fastembed:BAAI/bge-small-en-v1.5`, `openai:text-embedding-3-small` (or any other
    model after the colon; the endpoint and its key come from OPENAI_BASE_URL and OPENAI_API_KEY).

    Raises `UnknownNameError` for any other spec, `MissingExtraError` when an optional package is not installed.
    """
    embedder = _named(spec, cache)
    return embedder if cache is None else CachedEmbedder(embedder, cache)


def _named(spec: str, cache: EmbeddingCache | None) -> Embedder:
    kind, _, model = spec.partition(":")
    if spec in ALONE:
        return ALONE[spec]()
    if kind in WITH_MODEL and not model:
        raise InputError(f"embedder {spec!r} needs a model after a colon, such as '{kind}:{WITH_MODEL[kind]}'")
    if kind == "fastembed":
        return FastEmbedEmbedder(model, models_folder=cache.folder / "fastembed-models" if cache else None)
    if kind == "openai":
        return OpenAIEmbedder(model)
    raise UnknownNameError("embedder", spec, SPECS)
