"""The options of a night besides those of a run, and the webhook that it calls when it needs attention."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator

from hopbench.flows.settings.setting import NIGHTLY, Settings, flag
from hopbench.retrieval.support.errors import InputError

TIMEOUT_SECONDS = 10


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
    import urllib.error  # takes as long as all flags together
    import urllib.request

    from hopbench.flows.tracking.payload import redact, secrets

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        """Refuses redirects: another host must not receive the content."""

        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    body = redact(json.dumps(content, ensure_ascii=False), secrets()).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", "User-Agent": "hopbench"})
    try:
        with urllib.request.build_opener(NoRedirect).open(request, timeout=TIMEOUT_SECONDS):
            return None
    except urllib.error.HTTPError as error:
        with error:  # its body may quote the URL
            return f"the webhook at {shown(url)} answered {error.code}"
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = type(getattr(error, "reason", error)).__name__
        return f"the webhook at {shown(url)} could not be reached ({reason})"


EVERYTHING = "all,all:tuned"
"""Every strategy as its source documents it, and as it was tuned."""

LATENCY_FACTOR = 2.0
"""Unchanged code stays within 1.5 on a machine with four busy processes; what became three times as slow is beyond."""


class NightlyOptions(Settings):
    """The options of `hopbench nightly` besides those of a run; the fields are its flags.

    A webhook's URL may hold a token, so it is no parameter of the flow: Prefect shows those.
    """

    keep: int | None = flag(
        None,
        "Nights of this benchmark to keep; older ones go, with their graphs and files.",
        ge=1,
        ranged=False,
        group=NIGHTLY,
    )
    latency_factor: float = flag(
        LATENCY_FACTOR,
        "A label that became this many times slower, relative to the yardstick, is a regression.",
        gt=1,
        group=NIGHTLY,
    )
    accept: bool = flag(False, "Take tonight as the new baseline, whatever it shows.", group=NIGHTLY, name="--accept")
    webhook: Annotated[str | None, AfterValidator(check_webhook)] = None
