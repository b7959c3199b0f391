"""The OpenAI-compatible embedder against a scripted server on loopback: order, retries, and every way it can fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopbench.retrieval.embedding.cache import EmbeddingCache
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.embedding.openai_endpoint import OpenAIEmbedder
from hopbench.retrieval.support.errors import InputError


@dataclass
class Endpoint:
    """What the server says (first the scripted replies, then vectors) and what it heard."""

    url: str = ""
    script: list[tuple[int, Any]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


def vectors_reply(texts: list[str], dimension: int = 3) -> dict[str, Any]:
    """(length of the text, 1, 0 …), in the wrong order: only `index` says whose vector it is."""
    rows = [[float(len(text)), 1.0, *[0.0] * (dimension - 2)] for text in texts]
    data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
    return {"object": "list", "model": "m", "data": data[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    heard = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.requests.append(body)
            heard.keys.append(self.headers["Authorization"])
            status, reply = heard.script.pop(0) if heard.script else (200, vectors_reply(body["input"]))
            content = reply.encode() if isinstance(reply, str) else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if isinstance(reply, str) else "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("retry-after-ms", "1")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    heard.url = f"http://127.0.0.1:{server.server_port}/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", heard.url)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    yield heard
    server.shutdown()
    thread.join()
    server.server_close()


def test_vectors_are_put_in_order_and_normalised(endpoint: Endpoint) -> None:
    embedder = get_embedder("openai:m")
    vectors = embedder.embed(["four", "", "a"])
    # (4, 1)/√17 and (1, 1)/√2; the blank text is never sent.
    np.testing.assert_allclose(vectors, [[4 / 17**0.5, 17**-0.5, 0], [0, 0, 0], [2**-0.5, 2**-0.5, 0]], rtol=1e-6)
    assert [request["input"] for request in endpoint.requests] == [["four", "a"]]
    assert (embedder.dimension, len(endpoint.requests)) == (3, 1)
    assert endpoint.keys == ["Bearer key-of-the-test"]


def test_many_texts_go_in_batches(endpoint: Endpoint) -> None:
    assert get_embedder("openai:m").embed([f"text {i}" for i in range(300)]).shape == (300, 3)
    assert [len(request["input"]) for request in endpoint.requests] == [128, 128, 44]


def test_the_name_holds_the_endpoint_and_no_credentials() -> None:
    embedder = OpenAIEmbedder("text-embedding-3-small", base_url="https://user:secret@host.example:8443/v1")
    assert embedder.name == "openai:text-embedding-3-small@host.example:8443/v1"
    assert "api.openai.com/v1" in OpenAIEmbedder("m", base_url="https://api.openai.com/v1").name


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_passing_failures_are_retried(endpoint: Endpoint, status: int) -> None:
    endpoint.script = [(status, {"error": {"message": "later"}})] * 2
    assert get_embedder("openai:m").embed(["a"]).shape == (1, 3)
    assert len(endpoint.requests) == 3


def test_a_lasting_failure_ends_after_the_retries(endpoint: Endpoint) -> None:
    endpoint.script = [(429, {"error": {"message": "quota of 5 used up"}})] * 10
    with pytest.raises(InputError, match=r"quota of 5 used up.*OPENAI_BASE_URL.*OPENAI_API_KEY"):
        OpenAIEmbedder("m", retries=2).embed(["a"])
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_names_the_variable_and_not_the_key(endpoint: Endpoint, status: int) -> None:
    endpoint.script = [(status, {"error": {"message": "Incorrect API key: key-of-the-test"}})]
    with pytest.raises(InputError, match="set OPENAI_API_KEY") as refused:
        get_embedder("openai:m").embed(["a"])
    assert "key-of-the-test" not in str(refused.value)


def test_an_unknown_model_passes_on_what_the_endpoint_says(endpoint: Endpoint) -> None:
    endpoint.script = [(404, {"error": {"message": "no model 'm' here"}})]
    with pytest.raises(InputError, match=r"no model 'm' here.*Check the model's name"):
        get_embedder("openai:m").embed(["a"])


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (vectors_reply(["a"]), r"gave 1 vectors of \[3\] dimensions for 2 texts"),
        (
            {"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}]},
            r"gave 2 vectors of \[1, 2\] dimensions",
        ),
        ({"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}, r"of \[0\] dimensions"),
        ({"data": [{"index": i, "embedding": [1e39, 1.0]} for i in range(2)]}, "NaN or infinity"),
        ({"data": [{"index": i, "embedding": ["x", "y"]} for i in range(2)]}, "not OpenAI's"),
        ("<html>welcome</html>", "not OpenAI's.*ends with the version"),
        ({"detail": "what?"}, "not OpenAI's"),
        ({"error": {"message": "overloaded, key-of-the-test"}}, r"the endpoint failed: overloaded, \*\*\*"),
    ],
)
def test_a_wrong_reply_is_an_error_and_never_a_vector(endpoint: Endpoint, reply: Any, problem: str) -> None:
    endpoint.script = [(200, reply)]
    with pytest.raises(InputError, match=problem):
        get_embedder("openai:m").embed(["a", "b"])


def test_a_dimension_that_changes_between_batches_is_refused(endpoint: Endpoint) -> None:
    endpoint.script = [(200, vectors_reply(["t"] * 128)), (200, vectors_reply(["t"] * 72, dimension=5))]
    with pytest.raises(InputError, match="vectors of 5 dimensions after vectors of 3"):
        get_embedder("openai:m").embed([f"text {i}" for i in range(200)])


def test_a_dimension_that_changes_between_runs_is_refused(endpoint: Endpoint, tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path)
    get_embedder("openai:m", cache).embed(["a"])
    endpoint.script = [(200, vectors_reply(["b"], dimension=5))]
    with pytest.raises(InputError, match="holds vectors of 3 dimensions, the model now gives 5"):
        get_embedder("openai:m", cache).embed(["b"])


def test_an_endpoint_that_is_not_there_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(InputError, match=r"OPENAI_BASE_URL \(http://127.0.0.1:9/v1\)"):
        OpenAIEmbedder("m", retries=0).embed(["a"])


def test_without_a_key_only_openais_own_endpoint_is_refused(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert get_embedder("openai:m").embed(["a"]).shape == (1, 3)
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(InputError, match="OPENAI_API_KEY is not set"):
        get_embedder("openai:text-embedding-3-small").embed(["a"])


def test_what_is_cached_needs_no_endpoint(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = EmbeddingCache(tmp_path)
    expected = get_embedder("openai:m", cache).embed(["a", "b"])
    monkeypatch.delenv("OPENAI_API_KEY")
    again = get_embedder("openai:m", cache)
    np.testing.assert_array_equal(again.embed(["b", "a"]), expected[[1, 0]])
    assert (again.dimension, len(endpoint.requests)) == (3, 1)
