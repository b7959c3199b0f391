"""Embeddings from any endpoint that speaks OpenAI's protocol (POST {base}/embeddings), chosen by OPENAI_BASE_URL."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from hopbench.retrieval.embedding.base import Vectors, embed_with
from hopbench.retrieval.llm.endpoint import refusal
from hopbench.retrieval.llm.faults import masked, reason_of
from hopbench.retrieval.support.errors import InputError

DEFAULT_URL = "https://api.openai.com/v1"
BATCH = 128


@dataclass(frozen=True)
class OpenAIEmbedder:
    """`model` at `base_url`; the key is read from OPENAI_API_KEY for the first request and not stored here.

    `timeout` is seconds per request; `retries` counts repeats of one request, which the client makes after timeouts,
    lost connections and the statuses 408, 409, 429 and 5xx. Endpoints need not repeat their bytes: the cache keeps the
    first answer. Source: https://platform.openai.com/docs/api-reference/embeddings.
    """

    model: str
    base_url: str = field(default_factory=lambda: os.environ.get("OPENAI_BASE_URL", "").rstrip("/") or DEFAULT_URL)
    timeout: float = 60.0
    retries: int = 5
    synonym_threshold: float = 0.7

    @cached_property
    def name(self) -> str:
        """Model and endpoint (without credentials that a URL may carry)."""
        try:
            address = urlsplit(self.base_url)
        except ValueError as error:
            raise InputError(f"OPENAI_BASE_URL: {self.base_url!r} is no address ({error}): correct it") from error
        return f"openai:{self.model}@{address.netloc.rpartition('@')[2]}{address.path}"

    @cached_property
    def dimension(self) -> int:
        """The length of a vector; asks the endpoint for one vector, since only it knows."""
        return int(self._request(["dimension"]).shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (n, dimension), see `Embedder.embed`; `InputError` names the variable to set."""
        return embed_with(self._encode, lambda: self.dimension, texts)

    def _encode(self, texts: list[str]) -> Vectors:
        rows = [self._request(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        self.__dict__.setdefault("dimension", rows[0].shape[1])  # fills the cached property: no request for it
        for part in rows:
            if part.shape[1] != self.dimension:
                raise self._bad(f"gave vectors of {part.shape[1]} dimensions after vectors of {self.dimension}")
        return np.concatenate(rows)

    @cached_property
    def _client(self) -> Any:
        import openai

        key = os.environ.get("OPENAI_API_KEY", "")
        if not key and self.base_url == DEFAULT_URL:
            raise InputError(
                f"OPENAI_API_KEY is not set, and {DEFAULT_URL} needs it for {self.model!r}: set it, or set "
                "OPENAI_BASE_URL to an endpoint that needs no key"
            )
        if (reason := refusal(self.base_url)) is not None:
            raise self._bad(
                f"does not answer ({reason}): start its server, or correct OPENAI_BASE_URL ({self.base_url})"
            )
        return openai.OpenAI(
            base_url=self.base_url, api_key=key or "none", timeout=self.timeout, max_retries=self.retries
        )

    def _request(self, texts: list[str]) -> Vectors:
        client = self._client
        import openai

        try:
            reply = client.embeddings.create(model=self.model, input=texts, encoding_format="float")
            if error := getattr(reply, "error", None):  # a gateway's, with status 200
                raise self._bad(f"failed: {masked(reason_of(error), os.environ.get('OPENAI_API_KEY', ''))}")
            with np.errstate(over="ignore"):  # becomes infinity, which is refused below
                items = sorted(reply.data, key=lambda item: int(item.index))
                rows = [np.asarray(item.embedding, dtype=np.float32).ravel() for item in items]
            if [int(item.index) for item in items] != list(range(len(items))):
                raise ValueError("its vectors are not numbered from 0 on")  # noqa: TRY301 - as any other wrong form
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise self._bad(f"refused the key (status {error.status_code}): set OPENAI_API_KEY") from error
        except openai.OpenAIError as error:
            reason = masked(str(error), os.environ.get("OPENAI_API_KEY", ""))
            raise self._bad(
                f"failed: {reason} Check the model's name, OPENAI_BASE_URL ({self.base_url}) and OPENAI_API_KEY"
            ) from error
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            raise self._bad(
                f"gave a reply that is not OpenAI's: {str(error)[:200]}. Check that OPENAI_BASE_URL ({self.base_url}) "
                "ends with the version, as in http://localhost:8000/v1"
            ) from error
        lengths = sorted({len(row) for row in rows})
        if len(rows) != len(texts) or len(lengths) != 1 or lengths[0] == 0:
            raise self._bad(f"gave {len(rows)} vectors of {lengths} dimensions for {len(texts)} texts")
        vectors = np.stack(rows)
        if not np.isfinite(vectors).all():
            raise self._bad("gave a vector with NaN or infinity")
        return vectors

    def _bad(self, problem: str) -> InputError:
        return InputError(f"embeddings from {self.name!r}: the endpoint {problem}")
