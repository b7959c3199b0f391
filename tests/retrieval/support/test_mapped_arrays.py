"""Mapped arrays: the values of the file, which nobody writes to, whatever the system is told of them."""

from __future__ import annotations

import gc
import mmap
import os
import sys
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopbench.retrieval.support import mapped_arrays, mapped_pages
from hopbench.retrieval.support.kept_files import kept
from hopbench.retrieval.support.mapped_arrays import mapped_array, read_whole, read_whole_for_now, rows_of
from hopbench.retrieval.support.mapped_pages import (
    give_back_memory,
    give_back_pages,
    read_whole_again,
    reading_whole_files,
)

VALUES = np.arange(200_000).reshape(-1, 100)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.save(tmp_path / "values.npy", VALUES)
    return tmp_path / "values.npy"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each part of a map that is asked for."""
    found: list[int] = []

    def need(held: mmap.mmap, begins: Iterable[int], length: int) -> None:
        found.extend(min(length, len(held) - begin) for begin in begins)

    monkeypatch.setattr(mapped_pages, "_need", need)
    return found


def test_a_mapped_array_has_the_values_of_its_file_and_cannot_be_written_to(file: Path) -> None:
    found = mapped_array(file)

    assert type(found) is np.ndarray
    assert np.array_equal(VALUES, found)
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 7


def test_an_empty_array_is_mapped_and_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "empty.npy", np.zeros((0, 3)))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)

    assert (0, 3) == mapped_array(tmp_path / "empty.npy").shape
    with pytest.raises(ValueError, match="Array can't be memory-mapped"):
        mapped_array(tmp_path / "objects.npy")


@pytest.mark.parametrize("of", ["mapped", "part", "memory"])
def test_rows_are_those_of_the_array_however_it_is_held(of: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_arrays, "LARGE", 0)
    arrays: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {
        "mapped": (mapped_array(file), VALUES),
        "part": (mapped_array(file)[10:20], VALUES[10:20]),
        "memory": (VALUES, VALUES),
    }
    found, expected = arrays[of]

    for rows in ([3, 1, 3], [7], []):
        assert np.array_equal(expected[np.array(rows, int)], rows_of(found, rows))


@pytest.mark.parametrize(("questions", "read"), [(99, False), (100, True)])
def test_whole_files_are_read_for_many_questions(
    questions: int, read: bool, file: Path, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_pages, "_POPULATE", None)  # as before Linux 5.14
    found = mapped_array(file)

    read_whole(found)
    with reading_whole_files(questions):
        read_whole(found, VALUES)

    assert (file.stat().st_size if read else 0) == sum(asked)
    assert max(asked, default=0) <= mapped_pages.AT_A_TIME

    asked.clear()
    monkeypatch.setattr(mapped_arrays, "LARGE", 0)
    assert np.array_equal(VALUES[:1], rows_of(found, [0]))
    assert ([] if read else [mapped_pages._PAGE]) == asked  # of a file that was read there is no page to ask for


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process cannot say that it needs pages no longer")
def test_rows_are_asked_for_once_and_again_after_their_pages_were_given_back(
    file: Path, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_arrays, "LARGE", 0)
    found = mapped_array(file)

    for _ in range(2):
        rows_of(found, [0, 0, 1])
        assert [mapped_pages._PAGE] == asked
    give_back_pages(least=1 << 50)  # gives nothing back
    rows_of(found, [1])
    assert [mapped_pages._PAGE] == asked
    give_back_pages()
    rows_of(found, [1, 0])
    assert [mapped_pages._PAGE] * 2 == asked


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process cannot say that it needs pages no longer")
def test_a_whole_file_that_is_read_for_now_is_read_again_only_after_its_pages_were_given_back(
    file: Path, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_pages, "_POPULATE", None)  # as before Linux 5.14
    monkeypatch.setattr(mapped_arrays, "LARGE", 0)
    found, size = mapped_array(file), file.stat().st_size

    read_whole_for_now(found)  # for few questions
    assert not asked
    with reading_whole_files(100):
        for times in (1, 2):
            for _ in range(2):
                read_whole_for_now(found)
                rows_of(found, [0])
                assert times * size == sum(asked)
            give_back_pages()
        read_whole_again()
        assert times * size == sum(asked)
        rows_of(found, [0])
        assert times * size < sum(asked)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process cannot ask for all pages at once")
@pytest.mark.parametrize("advice", [mapped_pages._IN_LARGE_PAGES, -1])  # -1: a system without large pages
def test_a_file_that_was_read_whole_is_in_memory_and_asked_for_in_no_other_way(
    advice: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_pages, "_need", lambda *_: pytest.fail("asked for in pieces"))
    monkeypatch.setattr(mapped_pages, "_IN_LARGE_PAGES", advice)
    values = np.arange(400_000)
    np.save(tmp_path / "values.npy", values)
    found = mapped_array(tmp_path / "values.npy")

    with reading_whole_files(100):
        assert read_whole(found)

    assert values.nbytes <= _resident(tmp_path / "values.npy")
    assert np.array_equal(values, found)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process cannot say that it needs pages no longer")
def test_pages_that_were_read_to_make_something_leave_the_memory_of_the_process(file: Path, tmp_path: Path) -> None:
    found = mapped_array(file)
    total = found.sum()
    assert VALUES.nbytes <= _resident(file)

    give_back_memory()
    assert _resident(file) == 0
    assert total == found.sum()

    made = kept(tmp_path / "made", "1", lambda place: np.save(place / "sum.npy", found.sum(axis=0)), _only_array)
    assert _resident(file) == 0
    assert np.array_equal(VALUES.sum(axis=0), made)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process cannot ask for all pages at once")
def test_what_was_read_whole_is_read_again_after_something_was_made_and_not_held(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, again = mapped_array(file), list[mmap.mmap]()
    populate = mapped_pages._populate
    with reading_whole_files(100):
        read_whole(found)
        monkeypatch.setattr(mapped_pages, "_populate", lambda held: (again.append(held), populate(held))[1])
        kept(tmp_path / "made", "1", lambda place: np.save(place / "sum.npy", found.sum(axis=0)), _only_array)

    assert mapped_arrays._map_of(found) in again
    assert _resident(file) == 0
    assert np.array_equal(VALUES, found)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process cannot say that it needs pages no longer")
def test_pages_are_given_back_where_they_are_many_and_met_again(file: Path) -> None:
    found = mapped_array(file)
    total = found.sum()

    give_back_pages(least=1 << 50)
    assert _resident(file) >= VALUES.nbytes

    give_back_pages(least=file.stat().st_size)
    assert _resident(file) == 0
    assert total == found.sum()


@pytest.mark.parametrize("maps", ["_maps", "_read"])
def test_what_another_thread_maps_meanwhile_stops_nobody(maps: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Growing(weakref.WeakSet[mmap.mmap]):
        def __iter__(self) -> Iterator[mmap.mmap]:
            raise RuntimeError("Set changed size during iteration")

    monkeypatch.setattr(mapped_pages, maps, Growing())

    with reading_whole_files(100):
        give_back_pages()
        read_whole_again()


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="elsewhere a process cannot say so of a file")
@pytest.mark.parametrize(("rows", "forgotten"), [(1000, 0), (3000, 1)])  # .8 and 2.4 MB
def test_a_large_file_that_was_made_is_on_the_disk_before_the_system_forgets_it(
    rows: int, forgotten: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    sync, advise = os.fsync, os.posix_fadvise
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("on the disk"), sync(file)))
    monkeypatch.setattr(os, "posix_fadvise", lambda *its: (calls.append("forgotten"), advise(*its)))
    values = np.arange(rows * 100).reshape(-1, 100)

    made = kept(tmp_path / "made", "1", lambda place: np.save(place / "sum.npy", values), _only_array)

    assert ["on the disk", "forgotten"] * forgotten == calls
    assert np.array_equal(values, made)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="elsewhere nothing is written out")
def test_nothing_is_kept_of_what_the_disk_does_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(OSError, match="No space left"):
        kept(tmp_path / "made", "1", lambda place: np.save(place / "sum.npy", np.zeros(300_000)), _only_array)

    assert [] == [*tmp_path.iterdir()]


def test_cycles_that_were_left_by_making_something_are_collected_where_the_collector_waits(tmp_path: Path) -> None:
    class Left:
        """A part of a cycle."""

    left: list[weakref.ref[Left]] = []

    def write(place: Path) -> None:
        one = Left()
        vars(one)["itself"] = one
        left.append(weakref.ref(one))
        np.save(place / "sum.npy", VALUES)

    gc.disable()
    try:
        kept(tmp_path / "made", "1", write, _only_array)
        assert [None] == [one() for one in left]
    finally:
        gc.enable()


def _only_array(place: Path) -> NDArray[Any]:
    return mapped_array(place / "sum.npy")


def _resident(file: Path) -> int:
    """Bytes of a mapped file in this process's memory."""
    _, _, entry = Path("/proc/self/smaps").read_text().partition(f"{file}\n")
    return int(entry.partition("Rss:")[2].split()[0]) * 1024
