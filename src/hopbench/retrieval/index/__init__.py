"""What strategies search: an index over one corpus and its graph, and batches of questions put to it."""

from hopbench.retrieval.index.batch import Batch
from hopbench.retrieval.index.index import APPROXIMATE, EXACT, INDEX_VALUES, Index, approximate_dense
from hopbench.retrieval.index.kept import Arrays
from hopbench.retrieval.index.linker import Link, Linker, Uncapitalised
from hopbench.retrieval.index.memo import Memo, ReadCache
from hopbench.retrieval.index.near_rows import nearest_rows, spread
from hopbench.retrieval.index.services import (
    CommunitySummaries,
    Keywords,
    QuestionEntities,
    QuestionKeywords,
    Services,
    Synonyms,
    TreeRelevance,
)
from hopbench.retrieval.search.cell_recall import Asked

__all__ = [
    "APPROXIMATE",
    "EXACT",
    "INDEX_VALUES",
    "Arrays",
    "Asked",
    "Batch",
    "CommunitySummaries",
    "Index",
    "Keywords",
    "Link",
    "Linker",
    "Memo",
    "QuestionEntities",
    "QuestionKeywords",
    "ReadCache",
    "Services",
    "Synonyms",
    "TreeRelevance",
    "Uncapitalised",
    "approximate_dense",
    "nearest_rows",
    "spread",
]
