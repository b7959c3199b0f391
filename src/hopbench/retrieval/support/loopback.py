"""Addresses of this machine alone."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(url: str) -> bool:
    """Whether a URL is one of this machine alone.

    >>> [is_loopback(url) for url in ("http://[::1]:4200/api", "http://localhost", "http://localhost.example.org")]
    [True, True, False]
    """
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
