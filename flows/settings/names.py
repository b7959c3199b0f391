"""Names that flags take, for who checks them and who completes them: this loads nothing."""

from __future__ import annotations

STORES = ("kglite", "neo4j")
EXTRACTORS = ("rules", "spacy", "rules+triples", "llm")
RUNNERS = ("threads", "processes", "dask")
