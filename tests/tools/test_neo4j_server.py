"""What a server of our own refuses before it starts; what it does is in tests/retrieval/graph/stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.neo4j_server.server import start

from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError


@pytest.mark.parametrize("name", ["NEO4J_HEAP", "NEO4J_PAGECACHE"])
@pytest.mark.parametrize("size", ["lots", "4", "4 g", "0g", "-1g", "4g -version"])
def test_a_size_of_memory_that_is_none_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, size: str
) -> None:
    monkeypatch.setenv(name, size)

    with pytest.raises(InputError, match=rf"{name} '{size}' is no size of memory: .* such as 4g"):
        start(Home(tmp_path / "home"), 0)

    assert [] == list(tmp_path.iterdir())
