"""The interface of embedders, and the rules that all of them follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from hopbench.retrieval.support.arithmetic import on_grid, row_lengths

Vectors = npt.NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors. The same text gives the same bytes, whatever else is in the batch."""

    @property
    def name(self) -> str:
        """Stable identity, model and version included; part of cache keys and of a graph's build key."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def synonym_threshold(self) -> float:
        """The cosine, 0..1, from which two entity names may count as synonyms for this model."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), dimension), float32; rows have length 1, or 0 for texts without a known token.

        Texts beyond the model's limit are cut by the model. Raises `InputError` when an optional package, a key or an
        endpoint is missing.
        """
        ...


def embed_with(
    encode: Callable[[list[str]], npt.NDArray[np.floating[Any]]], dimension: Callable[[], int], texts: Sequence[str]
) -> Vectors:
    """Unit rows for `texts`; `encode` sees only those that are not blank, `dimension` is asked after it.

    Lone surrogates, which JSON can carry and no tokenizer accepts, become question marks.
    """
    refuse_text(texts)
    clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    known = [row for row, text in enumerate(clean) if text.strip()]
    encoded = encode([clean[row] for row in known]) if known else None
    vectors = np.zeros((len(clean), dimension()), dtype=np.float32)
    if encoded is not None:
        vectors[known] = unit_rows(encoded)
    return vectors


def refuse_text(texts: Sequence[str]) -> None:
    """Raise TypeError for one text in place of a sequence of texts."""
    if isinstance(texts, str):
        raise TypeError("embed() takes a sequence of texts, not one text: pass [text]")


def unit_rows(vectors: npt.NDArray[np.floating[Any]]) -> Vectors:
    """Each row of (n, d) divided by its Euclidean length, on the grid; zero rows stay zero."""
    exact = vectors.astype(np.float64)
    lengths = row_lengths(exact)
    zero = lengths == 0.0
    exact[zero], lengths[zero] = 0.0, 1.0  # dividing only where there is a length takes twice as long
    exact /= lengths[:, None]
    return on_grid(exact)
