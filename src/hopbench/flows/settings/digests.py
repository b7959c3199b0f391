"""Digests of corpora, kept in the home: a corpus is sorted and written as JSON for its digest only once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hopbench.eval.files import write_atomically
from hopbench.retrieval.corpus import MappedPassages
from hopbench.retrieval.graph.construction.plan import corpus_digest
from hopbench.retrieval.types import Passage

FEW = 10_000  # passages whose digest takes a tenth of a second
_DIGEST = re.compile(r"[0-9a-f]{64}")


def known_digest(passages: Sequence[Passage], cache: Path) -> str:
    """`corpus_digest`, from `cache` where the same passages in the same order were seen before; "" for small ones.

    The key is a digest of ids, titles and texts as they stand, a tenth of the work; what does not read as a digest is
    computed again. Mapped passages have a key of their own.
    """
    if len(passages) <= FEW:
        return ""
    content = passages.key if isinstance(passages, MappedPassages) else _as_they_stand(passages)
    note = cache / "corpora" / content
    with suppress(OSError, ValueError):
        known = note.read_text(encoding="ascii")
        if _DIGEST.fullmatch(known):
            return known
    digest = corpus_digest(passages)
    write_atomically(note, digest.encode())
    return digest


def _as_they_stand(passages: Sequence[Passage]) -> str:
    digest = hashlib.sha256()
    for column in ("id", "title", "text"):
        values = [getattr(passage, column) for passage in passages]
        digest.update(repr([*map(len, values)]).encode())  # lengths, so that no two corpora run together alike
        digest.update("".join(values).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
