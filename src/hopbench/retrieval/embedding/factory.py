"""The embedder that `--embedder` names."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache as once
from typing import Any

from hopbench.retrieval.embedder_names import BUILT_IN, EXAMPLES
from hopbench.retrieval.embedding.base import Embedder
from hopbench.retrieval.embedding.cache import EmbeddingCache
from hopbench.retrieval.embedding.cached import CachedEmbedder
from hopbench.retrieval.embedding.plugin import adapted
from hopbench.retrieval.plugins.groups import EMBEDDERS
from hopbench.retrieval.plugins.identity import stamp
from hopbench.retrieval.plugins.registry import Registry
from hopbench.retrieval.support.errors import HopBenchError, InputError, UnknownNameError


@once
def embedders() -> Registry[Callable[..., Any]]:
    """The built-in embedders and those that installed packages offer under the entry point `hopbench.embedders`."""
    return Registry("embedder", EMBEDDERS, BUILT_IN, _usable)


def get_embedder(spec: str, cache: EmbeddingCache | None = None) -> Embedder:
    """The embedder that `spec` names, behind `cache` when one is given; no model is loaded before the first new text.

    `spec`: `wordllama`, `minilm`, `fastembed:BAAI/bge-small-en-v1.5`, `openai:text-embedding-3-small` (or any other
    model after the colon; the endpoint and its key come from OPENAI_BASE_URL and OPENAI_API_KEY), or the name of a
    plug-in, with a model after a colon where it takes one.

    Raises `UnknownNameError` for any other spec, `MissingExtraError` when an optional package is not installed.
    """
    embedder = _named(spec, cache)
    # WordLlama adds up vectors of tokens, the same bytes on every processor, and needs no cache for many short texts.
    return embedder if cache is None else CachedEmbedder(embedder, cache, quick=spec == "wordllama")


def specs() -> list[str]:
    """What can be asked for, `:MODEL` where one must be named."""
    return [f"{name}:MODEL" if name in EXAMPLES else name for name in embedders().names()]


def _named(spec: str, cache: EmbeddingCache | None) -> Embedder:
    kind, colon, model = spec.partition(":")
    if kind in EXAMPLES and not model:
        raise InputError(f"embedder {spec!r} needs a model after a colon, such as '{kind}:{EXAMPLES[kind]}'")
    if kind in BUILT_IN:
        if colon and kind not in EXAMPLES:
            raise UnknownNameError("embedder", spec, specs())
        folder = {"models_folder": cache.folder / "fastembed-models" if cache else None}
        made: Embedder = embedders().get(kind)(*([model] if model else []), **(folder if kind == "fastembed" else {}))
        return made
    if kind not in embedders().names() and kind not in embedders().broken:
        raise UnknownNameError("embedder", spec, specs())
    return _of_plugin(spec, kind, model)


def _of_plugin(spec: str, kind: str, model: str) -> Embedder:
    make = embedders().get(kind)
    try:
        made = make(model) if model else make()
    except HopBenchError:
        raise
    except Exception as error:  # a plug-in may raise anything
        hint = "" if model else f"; does it need a model, as in {kind}:MODEL?"
        raise InputError(f"embedder {spec!r} cannot be made: {type(error).__name__}: {error}{hint}") from error
    return adapted(made, spec, stamp(embedders().code_of(kind)))


def _usable(name: str, make: object) -> Callable[..., Any]:
    """Refuse what makes no embedder, and a name that no spec can have."""
    if not callable(make):
        raise InputError("it is neither a class nor a function that makes an embedder")
    if ":" in name:
        raise InputError(f"its name {name!r} has a colon, which separates a model")
    return make
