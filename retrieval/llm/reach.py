"""Whether anything listens at an address: asked before work begins, since a closed port is known in milliseconds."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

SECONDS = 3.0


def refusal(url: str) -> str | None:
    """Why no connection to an http(s) address can be made; None where one was made, or where that is not known.

    An address that does not answer in `SECONDS`, or is reached through a proxy, is left to the first request.
    """
    address = urlsplit(url)
    host, port = address.hostname or "", address.port or (443 if address.scheme == "https" else 80)
    if address.scheme in getproxies() and not proxy_bypass(host):
        return None
    try:
        socket.create_connection((host, port), SECONDS).close()
    except TimeoutError:
        return None
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that cannot be one
        return getattr(error, "strerror", None) or str(error)
    return None
