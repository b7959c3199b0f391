"""Two nights in their own process, the second with another preset of pagerank; its argument is JSON for `nightly`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from hopbench.flows import nightly
from hopbench.retrieval.strategies import registry
from hopbench.retrieval.support.errors import RegressionError

if __name__ == "__main__":
    night = json.loads(sys.argv[1])
    nightly(**night)
    pagerank = registry.preset("pagerank")
    assert pagerank is not None
    edited = replace(pagerank, parameters={**pagerank.parameters, "restart": 0.99})
    registry.preset = lambda name: edited if name == "pagerank" else None
    try:
        nightly(**night)
    except RegressionError:
        sys.exit(3)
