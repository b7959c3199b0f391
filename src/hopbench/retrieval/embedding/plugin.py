"""Embedders of installed packages, made to follow the rules of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hopbench.retrieval.embedding.base import Embedder, Vectors, embed_with
from hopbench.retrieval.support.errors import HopBenchError, InputError

SYNONYM_THRESHOLD = 0.7


class PluginEmbedder(Protocol):
    """What a package offers under `hopbench.embedders`: a class or function of the model's name that returns this.

    `name` is the model's own, version included. Vectors need no unit length, and blank texts are not asked for. A
    package that has measured it states its `synonym_threshold` (cosine, .7 without) as `Embedder` does.
    """

    name: str
    dimension: int

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.floating[Any]]:
        """Vectors of shape (len(texts), dimension)."""
        ...


@dataclass(frozen=True)
class Adapted:
    """A plug-in's embedder with unit rows on the grid; `code` is its package's version and digest."""

    inner: PluginEmbedder
    spec: str
    code: str

    @property
    def name(self) -> str:
        """What was asked for, the model's own name, and the code that computes the vectors."""
        return f"{self.spec}:{self.inner.name}@{self.code}"

    @property
    def dimension(self) -> int:
        """Length of a vector, as the plug-in states it."""
        return int(self.inner.dimension)

    @property
    def synonym_threshold(self) -> float:
        """As the plug-in states it."""
        return float(getattr(self.inner, "synonym_threshold", SYNONYM_THRESHOLD))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors; see `Embedder.embed`. Raises InputError for what the plug-in cannot or does not give."""
        return embed_with(self._encode, lambda: self.dimension, texts)

    def _encode(self, texts: list[str]) -> npt.NDArray[np.float64]:
        try:
            vectors = np.asarray(self.inner.embed(texts), dtype=np.float64)
        except HopBenchError:
            raise
        except Exception as error:  # a plug-in may raise anything
            raise InputError(f"embedder {self.spec!r} failed with {type(error).__name__}: {error}") from error
        wanted = (len(texts), self.dimension)
        if vectors.shape != wanted or not np.isfinite(vectors).all():
            found = "numbers that are not finite" if vectors.shape == wanted else f"the shape {vectors.shape}"
            raise InputError(f"embedder {self.spec!r} returned {found} where finite vectors {wanted} belong")
        return vectors


def adapted(embedder: object, spec: str, code: str) -> Embedder:
    """The embedder of a plug-in. Raises InputError where it lacks what `PluginEmbedder` has."""
    if missing := [name for name in ("name", "dimension", "embed") if not hasattr(embedder, name)]:
        raise InputError(f"embedder {spec!r} of the plug-in {code} has no {', '.join(missing)}")
    return Adapted(embedder, spec, code)  # type: ignore[arg-type]
