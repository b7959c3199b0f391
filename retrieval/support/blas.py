"""How many threads BLAS uses: one, where products are so small that its threads wait longer than they compute."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[object]:
    """Let BLAS use one thread within; where several threads of the process ask for it, the first one decides."""
    limit: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limit


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries that are loaded by now, NumPy's among them; looked up once, which takes milliseconds."""
    return ThreadpoolController()
