"""The server answers its own pages and programs of this machine alone."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from hopbench.flows.orchestration.server import ORIGINS, guarded

if TYPE_CHECKING:
    from starlette.testclient import TestClient

    from hopbench.flows.orchestration.runtime import PrefectRuntime

OWN = "127.0.0.1:4200"
JSON = {"Content-Type": "application/json"}
LINK = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture
def client() -> TestClient:
    """A client of a small application behind the checks, which allow one name beside this machine's."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.testclient import TestClient
    from starlette.websockets import WebSocket

    def page(_: Request) -> Response:
        return PlainTextResponse("answered")

    async def stream(socket: WebSocket) -> None:
        await socket.accept()
        await socket.close()

    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    app = Starlette(routes=[Route("/", page, methods=methods), WebSocketRoute("/stream", stream)])
    return TestClient(guarded(app, ["https://hop.example.org", "*", ""]), base_url=f"http://{OWN}")


@pytest.mark.parametrize(
    ("host", "code"),
    [
        *((host, 200) for host in (OWN, "127.0.0.1", "localhost", "LOCALHOST:8080", "[::1]:4200", "127.8.9.1:1")),
        ("hop.example.org", 200),
        *(
            (host, 421)
            for host in ("example.com", "example.com:4200", "localhost.example.com", "127.0.0.1.example.com")
        ),
        *((host, 421) for host in ("0.0.0.0:4200", "[::]:4200", "10.0.0.1", "[broken", "", "hop.example.org:8443")),
    ],
)
def test_a_request_names_this_machine(client: TestClient, host: str, code: int) -> None:
    answer = client.get("/", headers={"Host": host})
    assert code == answer.status_code
    if code == 421:
        assert answer.json()["detail"].startswith(f"Host {host!r}: this server answers to localhost")
        assert f"{ORIGINS}=https://NAME" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 200),
        ({"Origin": f"http://{OWN}"}, 200),
        ({"Origin": "https://hop.example.org"}, 200),
        ({"Origin": "https://other.example"}, 403),
        ({"Origin": "http://hop.example.org"}, 403),
        ({"Origin": "http://localhost:4200"}, 403),  # another name is another site to a browser
        ({"Origin": "http://127.0.0.1:3000"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", **LINK}, 200),
        ({"Sec-Fetch-Site": "cross-site", **LINK, "Sec-Fetch-Dest": "iframe"}, 403),
    ],
)
def test_a_request_comes_from_no_other_site(client: TestClient, headers: Mapping[str, str], code: int) -> None:
    assert code == client.get("/", headers=headers).status_code
    if "Sec-Fetch-Mode" not in headers:
        assert code == client.post("/", headers={**headers, **JSON}, content="{}").status_code
        assert code == client.options("/", headers=headers).status_code
    else:
        assert 403 == client.post("/", headers={**headers, **JSON}, content="{}").status_code


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    ("headers", "content", "code"),
    [
        (JSON, "{}", 200),
        ({"Content-Type": "Application/JSON; charset=utf-8"}, "{}", 200),
        ({"Content-Type": "text/plain"}, "{}", 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, "a=1", 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, "--x--", 415),
        ({"Content-Type": "text/plain; application/json"}, "{}", 415),
        ({}, "{}", 415),
        ({}, "", 415),
        ({"X-Prefect-UI": "true"}, "", 200),
        ({"X-PREFECT-API-VERSION": "0.8.4"}, "", 200),
        ({"X-Prefect-UI": "true"}, "{}", 415),
        ({"X-Prefect-UI": "true", "Content-Type": "text/plain"}, "", 415),
    ],
)
def test_a_change_is_sent_as_json(
    client: TestClient, method: str, headers: Mapping[str, str], content: str, code: int
) -> None:
    assert code == client.request(method, "/", headers=headers, content=content).status_code


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, None),
        ({"Origin": f"http://{OWN}"}, None),
        ({"Origin": "https://other.example"}, 403),
        ({"Host": "a.b"}, 421),
    ],
)
def test_a_socket_is_opened_for_the_same_callers(
    client: TestClient, headers: Mapping[str, str], code: int | None
) -> None:
    from starlette.testclient import WebSocketDenialResponse

    try:
        with client.websocket_connect(f"ws://{OWN}/stream", headers=headers):
            refused = None
    except WebSocketDenialResponse as refusal:
        refused = refusal.status_code
    assert code == refused


@pytest.mark.prefect
def test_prefects_server_refuses_other_sites_and_answers_its_client(prefect_runtime: PrefectRuntime) -> None:
    import websockets
    from prefect.client.orchestration import get_client
    from websockets.typing import Origin

    api = prefect_runtime.api_url

    def code(path: str, content: bytes | None = None, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            with urllib.request.urlopen(urllib.request.Request(f"{api}{path}", content, named)) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    async def socket(origin: str | None) -> int | None:
        address = f"{api.replace('http', 'ws', 1)}/events/in"
        try:
            async with websockets.connect(address, origin=None if origin is None else Origin(origin)):
                return None
        except websockets.InvalidStatus as refused:
            return refused.response.status_code

    assert [200, 421, 403] == [
        code("/health"),
        code("/health", Host="example.com"),
        code("/health", Origin="https://other.example"),
    ]
    assert [415, 415] == [
        code("/flow_runs/filter", b"{}", Content_Type="text/plain"),
        code("/flow_runs/filter", b"a=1", Content_Type="application/x-www-form-urlencoded"),
    ]
    assert [None, None, 403] == [
        asyncio.run(socket(origin)) for origin in (None, api.removesuffix("/api"), "https://other.example")
    ]
    with urllib.request.urlopen(f"{api}/admin/settings") as answer:
        assert json.loads(answer.read())["server"]["api"]["csrf_protection_enabled"]
    with prefect_runtime.flow_settings(), get_client(sync_client=True) as client:
        made = client.create_concurrency_limit("guarded", 1)  # with a body
        client.delete_concurrency_limit_by_tag("guarded")  # without one
        assert made
