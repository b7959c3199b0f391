import gc
from collections.abc import Iterator
from threading import Event

import pytest

from hopbench.retrieval.support import collector
from hopbench.retrieval.support.collector import collector_paused


@pytest.fixture
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is frozen, as in a process of the program; the tests' own has what it imported frozen."""
    monkeypatch.setattr(collector, "_somebody_freezes", Event())
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.fixture
def collections(thawed: None) -> Iterator[list[str]]:
    """The collections that begin and end from here on."""
    seen: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        seen.append(phase)

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


def test_the_collector_neither_runs_meanwhile_nor_walks_over_what_was_made_as_soon_as_it_resumes(
    collections: list[str],
) -> None:
    with collector_paused():
        made = [[n] for n in range(5 * gc.get_threshold()[0])]
    after = [[n] for n in range(gc.get_threshold()[0] // 2)]

    assert gc.isenabled()
    assert not collections
    assert len(made) > len(after)


@pytest.mark.usefixtures("thawed")
def test_a_cycle_made_meanwhile_is_found_by_a_full_collection() -> None:
    gc.collect()
    with collector_paused():
        cycle: list[object] = []
        cycle.append(cycle)
        del cycle

    assert gc.collect() >= 1


def test_what_somebody_has_frozen_stays_frozen() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with collector_paused():
        pass

    assert gc.get_freeze_count() > frozen / 2


def test_what_is_frozen_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([0, 5])
    monkeypatch.setattr(collector, "_somebody_freezes", Event())
    monkeypatch.setattr(gc, "get_freeze_count", lambda: next(counts))
    monkeypatch.setattr(gc, "unfreeze", lambda: None)

    for _ in range(4):
        with collector_paused():
            pass

    assert [] == list(counts)


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
