"""A killed search for SIMILAR_TO goes on at its last round, its last stage of tags, and to the same edges."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from hopbench.retrieval.graph.construction import similarity
from hopbench.retrieval.graph.construction.plan import APPROXIMATE, EXACT, BuildSettings
from hopbench.retrieval.graph.construction.similarity import SEARCH, nearest, similar_stages
from hopbench.retrieval.graph.construction.staging import Search, Staging, Work
from hopbench.retrieval.graph.schema import SIMILAR_TO
from hopbench.retrieval.search import candidates as neighbours
from hopbench.retrieval.search.candidates import Candidates, Pairs
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

METHODS = pytest.mark.parametrize("method", [EXACT, APPROXIMATE])


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "TILE_ROWS", 64)
    monkeypatch.setattr(neighbours, "MIN_HELD", 1000)
    monkeypatch.setattr(similarity, "TAG_BATCH", 100)
    monkeypatch.setattr(similarity, "PAIRS_PER_STAGE", 500)


def drawn(count: int = 600) -> NDArray[np.float32]:
    generator = np.random.default_rng(3)
    vectors = generator.standard_normal((12, 16))[generator.integers(0, 12, count)]
    vectors = vectors + 0.6 * generator.standard_normal((count, 16))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def killed_after(works_done: int, search: Search) -> tuple[Search, list[int]]:
    """A search whose process is killed when it has done some works, and which of them it has begun."""
    begun: list[int] = []

    def counted(found: Candidates, works: Sequence[Work]) -> None:
        def one(number: int) -> Work:
            def work() -> None:
                if len(begun) == works_done:
                    raise KeyboardInterrupt
                begun.append(number)
                works[number]()

            return work

        search(found, [one(number) for number in range(len(works))])

    return counted, begun


def same(one: tuple[Pairs, Mapping[str, Any]], other: tuple[Pairs, Mapping[str, Any]]) -> bool:
    return one[1] == other[1] and all(
        np.array_equal(ours, theirs) for ours, theirs in zip(one[0], other[0], strict=True)
    )


def parts_of(number: int, parent: int, survives: bool) -> list[tuple[str, pd.DataFrame]]:
    if number == 1 and os.getpid() != parent and not survives:
        os.kill(os.getpid(), signal.SIGKILL)
    return [("t", pd.DataFrame({"number": [number], "process": [os.getpid()]}))]


@pytest.mark.parametrize("survives", [True, False])
def test_stages_are_computed_by_workers_and_what_a_killed_one_leaves_in_this_process(
    survives: bool, tmp_path: Path
) -> None:
    computes = [partial(parts_of, number, os.getpid(), survives) for number in range(3)]

    tables = list(Staging(tmp_path).each("some", computes, processes=2).parts("t"))

    assert [0, 1, 2] == [table["number"].iloc[0] for table in tables]
    assert survives == (tables[1]["process"].iloc[0] != os.getpid())


@METHODS
def test_a_killed_search_goes_on_after_its_last_round(tmp_path: Path, method: str) -> None:
    vectors, limits = drawn(), {"top_k": 4, "floor": 0.2}
    whole = nearest(vectors, method, **limits)
    rounds = partial(Staging(tmp_path).search, "rounds", seconds=0.0)  # a work each
    first, begun = killed_after(12, rounds)
    with pytest.raises(KeyboardInterrupt):
        nearest(vectors, method, **limits, search=first)

    second, begun_then = killed_after(10**6, rounds)
    found = nearest(vectors, method, **limits, search=second)

    assert same(whole, found)
    assert len(begun) == 12
    assert not set(begun) & set(begun_then), "what was kept was done again"


@METHODS
def test_a_damaged_round_is_done_again(tmp_path: Path, method: str, capsys: pytest.CaptureFixture[str]) -> None:
    vectors, limits = drawn(), {"top_k": 4, "floor": 0.2}
    rounds = partial(Staging(tmp_path).search, "rounds", seconds=0.0)
    with pytest.raises(KeyboardInterrupt):
        nearest(vectors, method, **limits, search=killed_after(12, rounds)[0])
    (file,) = (tmp_path / "rounds").glob("candidates-*.parquet")
    file.write_bytes(file.read_bytes()[:-1])

    assert same(nearest(vectors, method, **limits), nearest(vectors, method, **limits, search=rounds))
    assert "is damaged (its checksums differ)" in capsys.readouterr().err


def test_rounds_of_another_division_are_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, limits = drawn(), {"top_k": 4, "floor": 0.2}
    rounds = partial(Staging(tmp_path).search, "rounds", seconds=0.0)
    with pytest.raises(KeyboardInterrupt):
        nearest(vectors, EXACT, **limits, search=killed_after(12, rounds)[0])
    monkeypatch.setattr(similarity, "TILE_ROWS", 100)  # as another version may divide the chunks

    assert same(nearest(vectors, EXACT, **limits), nearest(vectors, EXACT, **limits, search=rounds))


def killed_at(stage: str, folder: Path, saved: list[str]) -> Staging:
    """Stages that are listed in `saved`, and a process that is killed when it is to save one of them."""

    class Killed(Staging):
        def save(self, name: str, parts: Any) -> Any:
            if name == stage:
                raise KeyboardInterrupt
            saved.append(name)
            return super().save(name, parts)

    return Killed(folder)


@METHODS
@pytest.mark.parametrize("killed", ["near", "similar-00000", "similar-00001"])
def test_a_killed_stage_goes_on_at_its_last_part(tmp_path: Path, method: str, killed: str) -> None:
    vectors = drawn()
    chunks = [Chunk(f"c{row}", f"c{row}", 0, "", f"river {row % 7} boat {row % 11}") for row in range(len(vectors))]
    tagger = Tagger(chunk.content for chunk in chunks)
    settings = BuildSettings(similar=method, similar_top_k=4)

    def made(staging: Staging) -> tuple[pd.DataFrame, pd.DataFrame]:
        stages = similar_stages(settings, chunks, vectors, tagger, staging)
        return pd.concat(stages.parts(SIMILAR_TO), ignore_index=True), next(stages.parts(SEARCH))

    whole = made(Staging(tmp_path / "whole"))
    saved: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        made(killed_at(killed, tmp_path / "killed", saved))
    found = made(killed_at("none", tmp_path / "killed", saved))

    assert all(one.equals(other) for one, other in zip(whole, found, strict=True))
    assert len(saved) == len(set(saved)), "a stage was made twice"
    assert {"near", "similar-00000", "similar-00001"} <= set(saved)
