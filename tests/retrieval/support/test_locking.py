"""A lock between processes is one lock, also while its file comes and goes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hopbench.retrieval.support.locking import exclusive_and_gone


def test_only_one_holds_the_lock_and_its_file_goes_at_the_end(tmp_path: Path) -> None:
    """flock belongs to the open file: threads that open it by themselves exclude each other as processes do."""
    lock, holders, most = tmp_path / "lock", [], []

    def hold() -> None:
        for _ in range(50):
            with exclusive_and_gone(lock):
                holders.append(1)
                most.append(len(holders))
                holders.pop()

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert [1] * 200 == most
    assert not lock.exists()


def test_a_lock_is_let_go_when_its_work_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyError), exclusive_and_gone(tmp_path / "lock"):
        raise KeyError

    with exclusive_and_gone(tmp_path / "lock"):
        assert (tmp_path / "lock").exists()
