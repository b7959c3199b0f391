"""An OpenAI-compatible server on loopback that fails as it is told: for a share of the requests, or by their text.

A message that contains "fault:NAME" always meets that fault; `faults` gives each fault's share of all other requests,
drawn with a seed in order of arrival. A model named like a mode of `dialects` answers or refuses as that does.
`per_second` admits so many requests a second (a bucket that holds one second's).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.llm_servers.dialects import REFUSALS, completion

from hopbench.retrieval.llm.adaptation import SCHEMA_PROMPT

FAULTS = ("429", "500", "hang", "truncated", "schema", "empty", "disconnect")
# Status 200 with a body that is no completion, asked for by name only.
BODIES = {
    "error200": '{"error": {"message": "Upstream provider overloaded", "code": 502}}',
    "errortext": '{"error": "Upstream provider overloaded"}',
    "errorlist": '{"error": ["Upstream provider overloaded"]}',
    "errorobject": '{"object": "error", "message": "Upstream provider overloaded", "code": 50001}',
    "errordetail": '{"detail": "Upstream provider overloaded"}',
    "errorchoice": '{"choices": [{"index": 0, "message": {"content": ""}, "finish_reason": "error", '
    '"error": {"code": 502, "message": "Upstream provider overloaded"}}]}',
    "cutthinking": '{"choices": [{"message": {"content": "<think>Long ago, in a"}, "finish_reason": "length"}], '
    '"usage": {"prompt_tokens": 1, "completion_tokens": 100}}',
    "cutreasoning": '{"choices": [{"message": {"content": null, "reasoning_content": "Long ago, in a"}, '
    '"finish_reason": "length"}], "usage": {"prompt_tokens": 1, "completion_tokens": 100}}',
    "noanything": '{"choices": [], "usage": {}}',
    "deepcontent": '{"choices": [{"message": {"content": ' + "[" * 700 + "]" * 700 + "}}]}",
    "deepjson": '{"choices": [{"message": {"content": "' + '{\\"a\\": ' * 700 + "1" + "}" * 700 + '"}}]}',
    "refusal": '{"choices": [{"message": {"content": null, "refusal": "I cannot help"}, "finish_reason": "stop"}]}',
    "filter": '{"choices": [{"message": {"content": null}, "finish_reason": "content_filter"}]}',
    "html": "<!doctype html><html><body>Welcome to the gateway</body></html>",
    "object": "{}",
    "list": "[]",
    "null": "null",
    "text": '"yes"',
    "nothing": "",
    "cut": '{"id": "x", "object": "chat.completion", "choi',
    "deep": "[" * 100_000,
    "choices": '{"choices": {"0": "a"}}',
    "choice": '{"choices": ["a"]}',
    "message": '{"choices": [{"message": "yes", "finish_reason": "stop"}]}',
    "content": '{"choices": [{"message": {"content": {"a": 1}}, "finish_reason": "stop"}]}',
    "usage": '{"choices": [{"message": {"content": "{\\"answer\\": \\"a\\"}"}}], "usage": {"prompt_tokens": "many"}}',
}
Body = dict[str, Any]


def polite(body: Body) -> str:
    """What the model says: JSON of the wanted schema's required fields, or the last message in capitals."""
    form = (body.get("response_format") or {}).get("json_schema")
    shown = str(body["messages"][-1]["content"]).partition(SCHEMA_PROMPT)
    if form is None and not shown[1]:
        return shown[0].upper()
    return json.dumps(instance(form["schema"] if form else json.loads(shown[2])))


def instance(schema: Mapping[str, Any]) -> Any:
    """The plainest value of a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: instance(part) for name, part in schema.get("properties", {}).items()}
    plain: dict[str, Any] = {"array": [], "string": "text", "integer": schema.get("minimum", 1), "number": 1.0}
    return plain.get(schema.get("type", ""), True)


@dataclass
class ScriptedServer:
    """Counts what it was asked (`requests`: the bodies) and what it did (`served`: "ok", "429" or a fault's name)."""

    reply: Callable[[Body], str] = polite
    faults: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    retry_after: str = "0.05"
    per_second: float | None = None
    latency: float = 0.0
    requests: list[Body] = field(default_factory=list)
    served: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0
    url: str = ""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._tokens, self._filled = self.per_second or 0.0, time.monotonic()
        self._now = 0
        self._connections: list[asyncio.Task[None]] = []

    @contextlib.contextmanager
    def running(self) -> Iterator[ScriptedServer]:
        """Serve on a free port in a thread of its own."""
        ready = threading.Event()
        stop: list[Callable[[], object]] = []

        async def serve() -> None:
            loop, end = asyncio.get_running_loop(), asyncio.Event()
            stop.append(lambda: loop.call_soon_threadsafe(end.set))
            async with await asyncio.start_server(self._connected, "127.0.0.1", 0) as server:
                self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
                ready.set()
                await end.wait()
                server.close()
                for task in self._connections:
                    task.cancel()
                await asyncio.gather(*self._connections)
                await asyncio.sleep(0)  # closed transports say goodbye

        thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
        thread.start()
        ready.wait()
        try:
            yield self
        finally:
            stop[0]()
            thread.join()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.append(asyncio.current_task())  # type: ignore[arg-type]
        try:
            while (head := await reader.readuntil(b"\r\n\r\n")) and await self._answered(head, reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answered(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        body = json.loads(await reader.readexactly(int(length[1]))) if length else {}
        self.requests.append(body)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            fault = self._fault(body)
            self.served[fault or "ok"] += 1
            if self.latency and fault is None:
                await asyncio.sleep(self.latency)
            return await self._respond(fault, body, head, writer)
        finally:
            self._now -= 1

    def _fault(self, body: Body) -> str | None:
        if self.per_second is not None and not self._admits(self.per_second):
            return "429"
        wanted = re.search(r"fault:(\w+)", str(body.get("messages")))
        if wanted is not None:
            return wanted[1]
        drawn = self._random.random()
        for fault, share in self.faults.items():
            drawn -= share
            if drawn < 0:
                return fault
        return None

    def _admits(self, rate: float) -> bool:
        now = time.monotonic()
        self._tokens = min(rate, self._tokens + (now - self._filled) * rate)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    async def _respond(self, fault: str | None, body: Body, head: bytes, writer: asyncio.StreamWriter) -> bool:
        if fault == "hang":
            await asyncio.sleep(3600)
        if fault == "disconnect":
            return False
        status, headers, content = 200, "", self._completion(fault, body)
        if fault is None and (refused := REFUSALS.get(body.get("model", ""), lambda _: None)(body)):
            status, content = refused
        elif fault == "429":
            status, headers, content = 429, f"Retry-After: {self.retry_after}\r\n", {"error": {"message": "slow down"}}
        elif fault in ("500", "401"):
            key = re.search(rb"authorization: *bearer *(\S+)", head, re.IGNORECASE)
            message = f"no luck with key {key[1].decode() if key else None}"  # a careless server repeats the key
            status, content = int(fault), {"error": {"message": message}}
        text = BODIES.get(fault or "", json.dumps(content)).encode()
        kind = "text/html; charset=utf-8" if fault == "html" else "application/json"
        headers += f"Content-Type: {kind}\r\nContent-Length: {len(text)}\r\n"
        writer.write(f"HTTP/1.1 {status} x\r\n{headers}\r\n".encode() + text)
        await writer.drain()
        return True

    def _completion(self, fault: str | None, body: Body) -> Body:
        if fault is None and body.get("messages"):
            return completion(body.get("model", ""), self.reply(body), body)
        text = self.reply(body) if fault is None else {"schema": '{"surprise": 1}', "empty": ""}.get(fault, '{"a": "cu')
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "length" if fault == "truncated" else "stop"}
        words = sum(len(str(one["content"]).split()) for one in body.get("messages", []))
        return {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", ""),
            "choices": [] if fault == "empty" else [choice],
            "usage": {"prompt_tokens": words, "completion_tokens": len(text.split()), "total_tokens": 0},
        }
