"""Which files are a data set as HippoRAG or GFM-RAG publishes it."""

from __future__ import annotations

from pathlib import Path

from hopbench.eval.benchmarks.documents import holds_documents
from hopbench.eval.benchmarks.file_sets import FileSet
from hopbench.eval.benchmarks.gfm_rag import raw_files
from hopbench.eval.benchmarks.hipporag import only_pair, pair_of


def published_files(path: Path) -> FileSet | None:
    """The data set that a folder holds or a file belongs to; among documents a corpus alone is none.

    Raises
    ------
    InputError
        For a folder with several of which none is named.
    """
    if not path.is_dir():
        return raw_files(path) or pair_of(path)
    found = raw_files(path) or only_pair(path)
    return None if found and found.questions is None and holds_documents(path) else found
