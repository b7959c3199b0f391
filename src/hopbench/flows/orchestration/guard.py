"""Refuses requests to our server that neither its own pages nor a program of this machine sends.

A page of another site that is open in a browser here can reach 127.0.0.1 too, under a name of its own. So a request
names this machine as its host, comes from no other site, and where it changes something, as JSON does: a browser asks
the server first before it sends that for another site.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hopbench.retrieval.support.loopback import is_loopback

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import ASGIApp, Receive, Scope, Send

READS = frozenset({"GET", "HEAD", "OPTIONS"})
JSON = "application/json"
CLIENTS = ("x-prefect-api-version", "x-prefect-ui")
"""Headers of Prefect's client and pages, which send them without a body too. No form of another site can."""
ORIGINS = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"


def guarded(app: ASGIApp, origins: Iterable[str]) -> ASGIApp:
    """`app` behind the checks of this module; `origins` (https://NAME) may send requests, and their hosts name us."""
    listed = frozenset(origin.strip().lower().rstrip("/") for origin in origins) - {"", "*"}
    names = frozenset(urlsplit(origin).netloc for origin in listed)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.datastructures import Headers
        from starlette.responses import JSONResponse

        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            refused = _foreign_host(headers, names) or _foreign_page(scope, headers, listed) or _no_json(scope, headers)
            if refused is not None:
                code, reason = refused
                await JSONResponse({"detail": reason}, code)(scope, receive, send)
                return
        await app(scope, receive, send)

    return answer


Refusal = tuple[int, str]


def _foreign_host(headers: Headers, names: frozenset[str]) -> Refusal | None:
    """Refuse a Host that is not this machine: a name that leads here by its owner's will only."""
    hosts = headers.getlist("host")
    if len(hosts) == 1 and (hosts[0].lower() in names or is_loopback(f"http://{hosts[0]}")):
        return None
    return 421, (
        f"Host {', '.join(hosts)!r}: this server answers to localhost and addresses of loopback only; a proxy's name "
        f"is allowed by {ORIGINS}=https://NAME"
    )


def _foreign_page(scope: Scope, headers: Headers, listed: frozenset[str]) -> Refusal | None:
    """Refuse what the page of another site sends; a link to a page of ours may be followed from anywhere."""
    origins = [origin.lower() for origin in headers.getlist("origin")]
    if origins and all(origin in listed for origin in origins):
        return None
    own = {f"{scheme}://{headers['host'].lower()}" for scheme in ("http", "https")}
    link = (
        scope["type"] == "http"
        and scope["method"] == "GET"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )
    site = headers.get("sec-fetch-site", "none")
    if own.issuperset(origins) and (site in ("none", "same-origin") or link):
        return None
    return 403, (
        f"Origin {', '.join(origins) or site!r}: another site's pages may not use this server; one is allowed by "
        f"{ORIGINS}=https://NAME"
    )


def _no_json(scope: Scope, headers: Headers) -> Refusal | None:
    """Refuse a change that is not sent as JSON, or, where it has no body, not by Prefect's client or pages."""
    if scope["type"] != "http" or scope["method"] in READS:
        return None
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    empty = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
    if kind == JSON or (empty and not kind and any(name in headers for name in CLIENTS)):
        return None
    return 415, f"Content-Type {kind or 'none'!r}: a {scope['method']} is taken with Content-Type: {JSON} only"
