"""What strategies search: an index over one corpus and its graph, and batches of questions put to it."""

from hopbench.retrieval.index.cache import Arrays, Memo, ReadCache
from hopbench.retrieval.index.index import (
    APPROXIMATE,
    EXACT,
    INDEX_VALUES,
    Batch,
    Index,
    approximate_dense,
    nearest_rows,
    spread,
)
from hopbench.retrieval.index.linker import (
    CommunitySummaries,
    Keywords,
    Link,
    Linker,
    QuestionEntities,
    QuestionKeywords,
    Services,
    Synonyms,
    TreeRelevance,
    Uncapitalised,
)
from hopbench.retrieval.search.cells import Queries

__all__ = [
    "APPROXIMATE",
    "EXACT",
    "INDEX_VALUES",
    "Arrays",
    "Batch",
    "CommunitySummaries",
    "Index",
    "Keywords",
    "Link",
    "Linker",
    "Memo",
    "Queries",
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
