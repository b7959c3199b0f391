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
_log = logging.getLogger(__name__)


def block_of(variable: str) -> str:
    """The name of a variable's Secret block."""
    return variable.lower().replace("_", "-")


def load_secrets() -> list[str]:
    """Set the variables that are not set and have a block; returns their names, which are logged, unlike values."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

    loaded = []
    with get_client(sync_client=True) as client:
        for variable in (name for name in VARIABLES if not os.environ.get(name)):
            # By name: what other secrets the server holds is none of this process's business.
            try:
                found = client.read_block_document_by_name(block_of(variable), "secret")
            except ObjectNotFound:
                continue
            except PrefectHTTPStatusError as error:
                _log.warning("Secret blocks cannot be read: %s", error)
                break
            if value := str(found.data.get("value", "")):
                os.environ[variable] = value
                loaded.append(variable)
    if loaded:
        _log.info("from Secret blocks: %s", ", ".join(sorted(loaded)))
    return loaded
