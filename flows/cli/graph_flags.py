"""The flags that name a benchmark and its graph, and those that many commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.config import read_config

Config = Annotated[
    Path | None,
    typer.Option("--config", callback=read_config, is_eager=True, help="YAML file with any of these flags; flags win."),
]
Dataset = Annotated[str, typer.Option(help="A shipped benchmark's name, a folder, an official file or a Hub name.")]
Store = Annotated[str, typer.Option(help="Where the graph is kept: kglite (a file), neo4j (NEO4J_URI or make neo4j).")]
Embedder = Annotated[str, typer.Option(help="wordllama, minilm, fastembed:MODEL or openai:MODEL.")]
Extractor = Annotated[str, typer.Option(help="Who reads entities and relations: rules, spacy, rules+triples or llm.")]
Triples = Annotated[Path | None, typer.Option(help="Ready triples (JSONL) in place of the extractor.")]
NoPrefect = Annotated[bool, typer.Option("--no-prefect", help="Run the same functions without a Prefect server.")]
