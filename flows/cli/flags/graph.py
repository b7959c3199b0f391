"""The flags that name a benchmark and its graph: the same for every command, and those that many commands share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.config import read_config
from hopbench.flows.cli.flags.models import Gleaning, Llm
from hopbench.flows.cli.flags.panels import DATA, EXECUTION, option

if TYPE_CHECKING:
    from hopbench.flows.settings.options import GraphOptions

T = TypeVar("T")

Config = Annotated[
    Path | None,
    option(
        EXECUTION, "--config", callback=read_config, is_eager=True, help="YAML file with any of these flags; flags win."
    ),
]
Dataset = Annotated[
    str,
    option(
        DATA, help="A shipped benchmark's name, a folder, an official file or a Hub name.", complete=complete.datasets
    ),
]
Embedder = Annotated[
    str, option(DATA, help="wordllama, minilm, fastembed:MODEL or openai:MODEL.", complete=complete.embedders)
]
Extractor = Annotated[
    str,
    option(
        DATA, help="Who reads entities and relations: rules, spacy, rules+triples or llm.", complete=complete.extractors
    ),
]
Triples = Annotated[Path | None, option(DATA, help="Ready triples (JSONL) in place of the extractor.")]
Questions = Annotated[
    Path | None,
    option(
        DATA, help="Questions (JSONL, CSV, TSV, Parquet) in place of the data set's own; qrels/ beside, or gold in it."
    ),
]
NoPrefect = Annotated[bool, option(EXECUTION, "--no-prefect", help="Run the same functions without a Prefect server.")]


@dataclass(frozen=True, kw_only=True)
class GraphFlags:
    """Which graph of a benchmark: who reads it and how it is built. What is named otherwise is another graph."""

    embedder: Embedder = "wordllama"
    extractor: Extractor = "rules"
    triples: Triples = None
    similar_top_k: Annotated[int | None, option(DATA, help="SIMILAR_TO edges of a chunk (default 10).")] = None
    similar_floor: Annotated[float | None, option(DATA, help="Their least similarity (default 0.3).")] = None
    max_tokens: Annotated[int | None, option(DATA, help="Longer passages are split (default 1200).")] = None
    limit: Annotated[int | None, option(DATA, min=1, help="Only the first N questions (the whole corpus stays).")] = (
        None
    )
    questions: Questions = None
    llm: Llm = None
    gleaning: Gleaning = 0

    def graph_options(self, **said: Any) -> GraphOptions:
        """The options of the graph; `said` are those that are no flags here."""
        from hopbench.flows.settings.options import GraphOptions

        return GraphOptions(**self.alike(GraphOptions, **said))

    def alike(self, options: type[Any], **said: object) -> Mapping[str, Any]:
        """The flags that are options of the same name, and what is `said` beside them."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        return {one.name: given[one.name] for one in fields(options) if one.name in given} | said


@dataclass(frozen=True, kw_only=True)
class StoredGraphFlags(GraphFlags):
    """And where the graph is kept."""

    store: Annotated[
        str,
        option(
            DATA,
            help="Where the graph is kept: kglite (a file), neo4j (NEO4J_URI or make neo4j).",
            complete=complete.stores,
        ),
    ] = "kglite"
    mapping: Annotated[
        Path | None,
        option(DATA, help="YAML with the names of a Neo4j graph built elsewhere, which is only read (docs/neo4j.md)."),
    ] = None
    neo4j_vector_index: Annotated[
        bool,
        option(
            DATA,
            "--neo4j-vector-index",
            help="Search chunks by Neo4j's own vector index: approximate, so rankings may differ.",
        ),
    ] = False
