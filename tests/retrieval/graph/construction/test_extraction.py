"""Extraction in blocks: the tables of extraction in one, and a killed build that goes on at its last block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hopbench.eval.benchmarks import load_benchmark
from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.graph.construction import extraction
from hopbench.retrieval.graph.construction.extraction import extract_in_blocks
from hopbench.retrieval.graph.construction.staging import Staging
from hopbench.retrieval.graph.extract.rules import rule_tables
from hopbench.retrieval.graph.schema import ENTITY, MENTIONED_IN, RELATED_TO
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

TABLES = (ENTITY, MENTIONED_IN, RELATED_TO)


@pytest.fixture(scope="module")
def corpus() -> tuple[Sequence[Chunk], Tagger]:
    """Some chunks of hopworld, more than one of a passage among them."""
    chunks = chunk_passages(load_benchmark("hopworld").passages[:240], 40)
    assert any(chunk.index for chunk in chunks)
    return chunks, Tagger(chunk.content for chunk in chunks)


def rows(parts: Iterator[pd.DataFrame]) -> list[str]:
    return sorted(chain.from_iterable(map(repr, part.itertuples(index=False, name=None)) for part in parts))


@pytest.mark.parametrize(("size", "processes"), [(1, 1), (7, 1), (100, 1), (10_000, 1), (100, 2)])
def test_blocks_of_any_size_give_the_tables_of_the_whole(
    corpus: tuple[Sequence[Chunk], Tagger], size: int, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks, tagger = corpus if size > 1 else (corpus[0][:80], corpus[1])
    monkeypatch.setattr(extraction, "BUCKET_CHUNKS", 50)
    whole = rule_tables(chunks, tagger)

    found = extract_in_blocks(chunks, tagger, Staging(tmp_path / "stages"), size, processes)

    for name in TABLES:
        assert rows(iter([whole[name]])) == rows(found.parts(name)), name
        assert len(whole[name])


@pytest.mark.parametrize("killed", ["names-00001", "entities-00000", "statements-00001", "related-00002"])
def test_a_killed_extraction_goes_on_at_its_last_block(
    corpus: tuple[Sequence[Chunk], Tagger], killed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks, tagger = corpus
    monkeypatch.setattr(extraction, "BUCKET_CHUNKS", 80)
    done: list[str] = []

    class Counted(Staging):
        def load_or_compute(self, name: str, compute: Any) -> Any:
            def counted() -> Iterator[Any]:
                if name == killed and done.count("killed") == 0:
                    done.append("killed")
                    raise KeyboardInterrupt
                done.append(name)
                yield from compute()

            return super().load_or_compute(name, counted)

    with pytest.raises(KeyboardInterrupt):
        extract_in_blocks(chunks, tagger, Counted(tmp_path / "stages"), 80)
    found = extract_in_blocks(chunks, tagger, Counted(tmp_path / "stages"), 80)

    done.remove("killed")
    assert len(set(done)) == len(done), "a block was read twice"
    whole = rule_tables(chunks, tagger)
    for name in TABLES:
        assert rows(iter([whole[name]])) == rows(found.parts(name)), name
