"""Any text model of fastembed (ONNX on the CPU, downloaded from the Hub on first use).

Source: https://qdrant.github.io/fastembed/. Texts are cut at the model's own limit (512 word pieces for bge-small). One
text per run, so that padding cannot make the bytes depend on the batch. Questions and passages go through the same
`embed`: models that want different prefixes for the two lose a little.

The synonym threshold is document 4's .7, not measured for these models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from hopbench.retrieval.embedding.base import Vectors, embed_with
from hopbench.retrieval.support.errors import InputError, MissingExtraError, UnknownNameError


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
