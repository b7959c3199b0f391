"""Keys and passwords of flows from Prefect's Secret blocks: parameters are shown to all who see its pages.

A variable that is not set in the environment of the flow's process is taken from the block of the same name, in small
letters and with dashes: OPENAI_API_KEY from `openai-api-key`.
"""

from __future__ import annotations

import logging
import os

VARIABLES = (
    *("OPENAI_API_KEY", "JUDGE_API_KEY"),
    *("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD"),
    "HOPBENCH_WEBHOOK",
)
NOT_FOUND = 404
_log = logging.getLogger(__name__)


def block_of(variable: str) -> str:
    """The name of a variable's Secret block."""
    return variable.lower().replace("_", "-")


def load_secrets() -> list[str]:
    """Set the variables that are not set and have a block; returns their names, which are logged, unlike values."""
    lacking = {block_of(name): name for name in VARIABLES if not os.environ.get(name)}
    loaded = []
    for block, value in _blocks().items():
        if (variable := lacking.get(block)) and value:
            os.environ[variable] = value
            loaded.append(variable)
    if loaded:
        _log.info("from Secret blocks: %s", ", ".join(sorted(loaded)))
    return loaded


def _blocks() -> dict[str, str]:
    """The values of all Secret blocks by name, in one request; none where the server has none, or refuses them."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectHTTPStatusError

    with get_client(sync_client=True) as client:
        try:
            found = client.read_block_documents_by_type("secret", include_secrets=True)
        except PrefectHTTPStatusError as error:
            if error.response.status_code != NOT_FOUND:  # which no server says that ever saved one
                _log.warning("Secret blocks cannot be read: %s", error)
            return {}
    return {str(one.name): str(one.data.get("value", "")) for one in found}
