from retrieval.embedding.base import Embedder, Vectors
from retrieval.embedding.cache import EmbeddingCache
from retrieval.embedding.cached import CachedEmbedder
from retrieval.embedding.factory import get_embedder

__all__ = ["CachedEmbedder", "Embedder", "EmbeddingCache", "Vectors", "get_embedder"]
