"""Embedders by name, as `--embedder` gives it: built-in ones, and those of installed packages under the same rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache as once
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hopbench.retrieval.embedding import BUILT_IN, EXAMPLES
from hopbench.retrieval.embedding.base import Embedder, Vectors, embed_with
from hopbench.retrieval.embedding.cache import CachedEmbedder, EmbeddingCache
from hopbench.retrieval.plugins.code import stamp
from hopbench.retrieval.plugins.registry import EMBEDDERS, Registry
from hopbench.retrieval.support.errors import HopBenchError, InputError, UnknownNameError

SYNONYM_THRESHOLD = 0.7


class PluginEmbedder(Protocol):
    """What a package offers under `hopbench.embedders`: a class or function of the model's name that returns this.

    `name` is the model's own, version included. Vectors need no unit length, and blank texts are not asked for. A
    package that has measured it states its `synonym_threshold` (cosine, 0.7 without) as `Embedder` does.
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


@once
def embedders() -> Registry[Callable[..., Any]]:
    """The built-in embedders and those that installed packages offer under the entry point `hopbench.embedders`."""
    return Registry("embedder", EMBEDDERS, BUILT_IN, _usable)


def get_embedder(spec: str, cache: EmbeddingCache | None = None) -> Embedder:
    """The embedder that `spec` names; no model is loaded before the first new text.

    Args:
        spec: `wordllama`, `minilm`, `multilingual`, `fastembed:BAAI/bge-small-en-v1.5`, `openai:text-embedding-3-small`
            (or any other model after the colon; the endpoint and its key come from OPENAI_BASE_URL and OPENAI_API_KEY),
            or the name of a plug-in, with a model after a colon where it takes one.
        cache: where vectors are stored, so that no text is embedded twice.

    Raises:
        UnknownNameError: for any other spec.
        MissingExtraError: when an optional package is not installed.

    >>> get_embedder("wordllama").embed(["Ada Lovelace"]).shape
    (1, 256)
    """
    kind, colon, model = spec.partition(":")
    if kind in EXAMPLES and not model:
        raise InputError(f"embedder {spec!r} needs a model after a colon, such as '{kind}:{EXAMPLES[kind]}'")
    unknown = kind not in embedders().names() and kind not in embedders().broken
    if unknown or (colon and kind in BUILT_IN and kind not in EXAMPLES):
        raise UnknownNameError("embedder", spec, specs())
    make, arguments = embedders().get(kind), [model] if model else []
    embedder: Embedder
    if kind == "fastembed":
        embedder = make(*arguments, models_folder=cache.folder / "fastembed-models" if cache else None)
    else:
        embedder = make(*arguments) if kind in BUILT_IN else _of_plugin(spec, kind, model)
    # WordLlama adds up vectors of tokens, the same bytes on every processor, and needs no cache for many short texts.
    return embedder if cache is None else CachedEmbedder(embedder, cache, quick=spec == "wordllama")


def specs() -> list[str]:
    """What can be requested, `:MODEL` where one must be named."""
    return [f"{name}:MODEL" if name in EXAMPLES else name for name in embedders().names()]


def _of_plugin(spec: str, kind: str, model: str) -> Embedder:
    make, code = embedders().get(kind), stamp(embedders().code_of(kind))
    try:
        made = make(model) if model else make()
    except HopBenchError:
        raise
    except Exception as error:  # a plug-in may raise anything
        hint = "" if model else f"; does it need a model, as in {kind}:MODEL?"
        raise InputError(f"embedder {spec!r} cannot be made: {type(error).__name__}: {error}{hint}") from error
    if missing := [name for name in ("name", "dimension", "embed") if not hasattr(made, name)]:
        raise InputError(f"embedder {spec!r} of the plug-in {code} has no {', '.join(missing)}")
    return Adapted(made, spec, code)


def _usable(name: str, make: object) -> Callable[..., Any]:
    if not callable(make):
        raise InputError("it is neither a class nor a function that makes an embedder")
    if ":" in name:
        raise InputError(f"its name {name!r} has a colon, which separates a model")
    return make
