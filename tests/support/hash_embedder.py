"""An embedder that needs no model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from hopbench.retrieval.embedding.base import Vectors, embed_with


@dataclass
class HashEmbedder:
    """Each text's SHA-256 as a direction; notes what it was asked."""

    name: str = "hash@1"
    size: int = 8
    synonym_threshold: float = 0.7
    asked: list[str] = field(default_factory=list)

    @property
    def dimension(self) -> int:
        return self.size

    def embed(self, texts: list[str]) -> Vectors:
        self.asked += texts
        return embed_with(self._encode, lambda: self.size, texts)

    def _encode(self, texts: list[str]) -> Vectors:
        digests = [hashlib.sha256(text.encode()).digest()[: self.size] for text in texts]
        return np.array([list(digest) for digest in digests], dtype=np.float32) - 127.5
