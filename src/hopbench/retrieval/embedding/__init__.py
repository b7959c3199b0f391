from hopbench.retrieval.embedding.base import Embedder, Vectors
from hopbench.retrieval.embedding.cache import EmbeddingCache
from hopbench.retrieval.embedding.cached import CachedEmbedder
from hopbench.retrieval.embedding.factory import get_embedder

__all__ = ["CachedEmbedder", "Embedder", "EmbeddingCache", "Vectors", "get_embedder"]
