"""WordLlama: static token vectors, mean-pooled; the default, because it needs no download, key or accelerator.

Source: https://github.com/dleemiller/WordLlama (l2_supercat, 256 dimensions, bundled in its wheel).

Pooling is done here, as a sparse count matrix times the token matrix, and not by `WordLlamaInference.embed`: that pads
a batch to its longest text, so one passage of 1 MiB beside 63 others asks for 16 GB, and it took 2.2 s where this
takes 0.5 s (4,937 HotpotQA passages, 2 cores). The result differs from it only by rounding (3e-8 a component at most).
The token vectors are multiples of 2⁻²⁴ within ±9 (they are float16 in the model's file), so float64 holds the sum of a
hundred million of them exactly: a text's bytes depend neither on its neighbours nor on the processor. No length limit.

Synonym threshold .7, measured on the 50 answer/alias pairs of the tuning benchmarks among 4,000 of their
passages' titles, three nearest accepted: it keeps 38% of the aliases at a precision of .68, just what MiniLM has at
.7 (.69). At .6 half of what is accepted is another entity; above .7 precision stays flat to .8 while a third of the
aliases are lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from hopbench.retrieval.embedding.base import Vectors, embed_with
from hopbench.retrieval.support.timing import done_once

Sums = NDArray[np.float64]
# Bounds the tokenizer's memory; has no effect on results.
SLICE = 1024
SUMS = "exact"  # in the name, since vectors summed in float32 by an older version may lie in the same cache


@dataclass(frozen=True)
class WordLlamaEmbedder:
    """The bundled l2_supercat model. Loads on the first text, offline; thread-safe."""

    dimension: int = 256
    synonym_threshold: float = 0.7

    @cached_property
    def name(self) -> str:
        """Model, dimension, the version of the package that carries the weights, and how they are summed."""
        return f"wordllama:l2_supercat-{self.dimension}@{version('wordllama')}+{SUMS}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (n, 256); see `Embedder.embed`."""
        return embed_with(self._pool, lambda: self.dimension, texts)

    @cached_property
    @done_once()
    def _model(self) -> Any:
        return _loaded(self.dimension)

    def _pool(self, texts: list[str]) -> Sums:
        return np.concatenate([self._sums(texts[start : start + SLICE]) for start in range(0, len(texts), SLICE)])

    def _sums(self, texts: list[str]) -> Sums:
        """Sums of the token vectors: a sum and a mean have the same direction."""
        encoded = self._model.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        ids = [encoding.ids for encoding in encoded]
        ends = np.cumsum([0, *map(len, ids)])
        tokens = np.fromiter(chain.from_iterable(ids), np.int32, ends[-1])
        used, places = np.unique(tokens, return_inverse=True)
        counts = csr_array((np.ones(len(tokens)), places, ends), shape=(len(texts), len(used)))
        return np.asarray(counts @ self._model.embedding[used].astype(np.float64))


@cache
def _loaded(dimension: int) -> Any:
    """One model a process: hoprank compares words by it beside whatever embeds the passages."""
    with _root_logger_untouched():
        import wordllama
    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(dim=dimension, cache_dir=folder, disable_download=True)
    model.tokenizer.no_padding()
    return model


@contextmanager
def _root_logger_untouched() -> Iterator[None]:
    """Importing wordllama calls `logging.basicConfig(level=INFO)`, which would make every library talk."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers
