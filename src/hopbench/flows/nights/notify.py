"""Calls a webhook when a nightly run needs attention: one POST of JSON to the user's URL.

The URL may carry a token: it is never printed, logged or tracked, only its host is.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from hopbench.flows.tracking.payload import redact, secrets
from hopbench.retrieval.support.errors import InputError

TIMEOUT_SECONDS = 10


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: another host must not receive the content."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def check_webhook(url: str) -> str:
    """`url`, if it is one of http or https with a host. Raises InputError, without showing it, where it is not."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        fits = False
    if not fits:
        raise InputError("--webhook: not a URL of http or https with a host, such as https://hooks.example.org/KEY")
    return url


def shown(url: str) -> str:
    """The part of the URL that is not secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def post(url: str, content: Mapping[str, Any]) -> str | None:
    """Post `content`, without the values of secret variables; returns the reason of a failure, else None."""
    body = redact(json.dumps(content, ensure_ascii=False), secrets()).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", "User-Agent": "hopbench"})
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_SECONDS):
            return None
    except urllib.error.HTTPError as error:
        with error:  # its body may quote the URL
            return f"the webhook at {shown(url)} answered {error.code}"
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = type(getattr(error, "reason", error)).__name__
        return f"the webhook at {shown(url)} could not be reached ({reason})"
