"""The webhook: what is sent, to whom, and what is never shown; and processes by names no later one can take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from hopbench.flows.cli.nightly import without_webhook
from hopbench.flows.cli.run import command_line
from hopbench.flows.nights.options import check_webhook, post, shown
from hopbench.flows.orchestration.runtime import is_gone, process_tag
from hopbench.retrieval.support.errors import InputError

SECRET = "sk-planted-0123456789"


class Hook(HTTPServer):
    received: list[tuple[str, Any]]
    status: int = 200


class Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, json.loads(body)))
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook(("127.0.0.1", 0), Handler) as server:
        server.received = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_the_verdict_is_sent_without_secrets(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    url = f"http://127.0.0.1:{hook.server_port}/hooks/T0KEN"
    assert post(url, {"outcome": "regression", "text": f"the key {SECRET} at http://me:pass@host/"}) is None
    ((path, content),) = hook.received
    assert path == "/hooks/T0KEN"
    assert content == {"outcome": "regression", "text": "the key [redacted] at http://[redacted]@host/"}


@pytest.mark.parametrize("status", [500, 302])
def test_a_failed_call_is_told_without_the_url(hook: Hook, status: int) -> None:
    hook.status = status
    place = f"http://127.0.0.1:{hook.server_port}"
    assert post(f"{place}/T0KEN?key=T0KEN", {}) == f"the webhook at {place} answered {status}"
    assert len(hook.received) == 1  # no other address is followed


def test_nobody_there_is_told() -> None:
    failure = post("http://127.0.0.1:9/T0KEN", {})
    assert failure == "the webhook at http://127.0.0.1:9 could not be reached (ConnectionRefusedError)"


def test_what_may_be_a_webhook() -> None:
    assert check_webhook("https://hooks.example.org/x") == "https://hooks.example.org/x"
    assert shown("https://me:T0KEN@hooks.example.org:8443/T0KEN") == "https://hooks.example.org:8443"
    for text in ("hooks.example.org", "file:///etc/passwd", "https://", "http://[bad"):
        with pytest.raises(InputError, match="--webhook"):
            check_webhook(text)


@pytest.mark.parametrize("words", [["--webhook", "https://h/T0KEN"], ["--webhook=https://h/T0KEN"]])
def test_the_url_reaches_neither_the_command_line_nor_prefects_parameters(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPBENCH_WEBHOOK", "")
    monkeypatch.setattr(sys, "argv", ["hopbench", "nightly", "--keep", "3", *words, "--seed", "1"])
    assert "T0KEN" not in command_line("nightly")
    assert command_line("nightly").startswith("hopbench nightly --keep 3 --webhook")
    assert without_webhook(["--keep", "3", *words, "--seed", "1"]) == ["--keep", "3", "--seed", "1"]
    assert os.environ["HOPBENCH_WEBHOOK"] == "https://h/T0KEN"


def test_a_process_is_gone_when_it_ended_or_another_has_its_number() -> None:
    assert not is_gone(process_tag())
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    tag = process_tag(child.pid)
    assert not is_gone(tag)
    child.communicate(b"\n")
    assert is_gone(tag)
    here = process_tag()
    assert is_gone(here.rsplit(":", 1)[0] + ":1")  # the same number, started at another time
    assert not is_gone("process:elsewhere.example:1:1")
    assert not is_gone("hopbench")
    assert not is_gone("process:")
