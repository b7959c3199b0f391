"""Vectors that were computed before, beside the model that computes the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hopbench.retrieval.embedding.base import Embedder, Vectors
from hopbench.retrieval.embedding.cache import text_key


@dataclass(frozen=True)
class StoredEmbedder:
    """`inner`, asked only for texts without a row in `vectors` (n, d); `rows` is key of a text → row.

    Nothing is written: a folder that holds the vectors may be read-only, and many processes may share it.
    """

    inner: Embedder
    rows: Mapping[bytes, int]
    vectors: Vectors = field(repr=False)

    @property
    def name(self) -> str:
        """The model's."""
        return self.inner.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    @property
    def synonym_threshold(self) -> float:
        """The model's."""
        return self.inner.synonym_threshold

    def embed(self, texts: Sequence[str]) -> Vectors:
        """As `Embedder.embed`."""
        if isinstance(texts, str):
            raise TypeError("embed() takes a sequence of texts, not one text: pass [text]")
        found = np.array([self.rows.get(text_key(text), -1) for text in texts], dtype=np.intp)
        result = np.zeros((len(texts), self.dimension), dtype=np.float32)
        known = found >= 0
        result[known] = self.vectors[found[known]]
        if not known.all():
            result[~known] = self.inner.embed([text for text, there in zip(texts, known, strict=True) if not there])
        return result


@dataclass
class RecordingEmbedder:
    """`inner`, whose texts are noted in `texts` in the order in which they were first asked."""

    inner: Embedder
    texts: dict[str, None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The inner embedder's."""
        return self.inner.name

    @property
    def dimension(self) -> int:
        """The inner embedder's."""
        return self.inner.dimension

    @property
    def synonym_threshold(self) -> float:
        """The inner embedder's."""
        return self.inner.synonym_threshold

    def embed(self, texts: Sequence[str]) -> Vectors:
        """As `Embedder.embed`."""
        self.texts.update(dict.fromkeys(texts))
        return self.inner.embed(texts)


def save_vectors(folder: Path, embedder: Embedder, texts: Sequence[str]) -> None:
    """Write the vectors of texts into `folder`: `keys.txt`, a key per line, and `vectors.npy` (n, d) in its order."""
    (folder / "keys.txt").write_text("".join(f"{text_key(text).hex()}\n" for text in texts), encoding="ascii")
    np.save(folder / "vectors.npy", embedder.embed(texts), allow_pickle=False)


def load_vectors(folder: Path, inner: Embedder) -> StoredEmbedder:
    """The embedder that reads what `save_vectors` wrote; vectors are mapped into memory, not copied.

    Raises OSError or ValueError where the files are missing or damaged.
    """
    keys = [bytes.fromhex(key) for key in (folder / "keys.txt").read_text(encoding="ascii").split()]
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", mode="r")  # refuses objects, which a pickle could hold
    if vectors.ndim != 2 or len(keys) != len(vectors):
        raise ValueError(f"vectors of shape {vectors.shape} for {len(keys)} keys")
    return StoredEmbedder(inner, {key: row for row, key in enumerate(keys)}, vectors)
