"""The extract stage: the tables of entities, mentions and relations, by the extractor that the plan names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import pandas as pd

from hopbench.retrieval.graph.construction.plan import GraphPlan
from hopbench.retrieval.graph.extract.extractor_names import BUILT_IN
from hopbench.retrieval.graph.extract.joined import with_triples
from hopbench.retrieval.graph.extract.plugin import stated
from hopbench.retrieval.graph.extract.resolution import resolve_names
from hopbench.retrieval.graph.extract.rules import Part, rule_parts, rule_tables
from hopbench.retrieval.graph.extract.spacy_names import SpacyNames
from hopbench.retrieval.graph.extract.triples import triple_tables
from hopbench.retrieval.llm.faults import LASTING
from hopbench.retrieval.plugins.groups import EXTRACTORS
from hopbench.retrieval.plugins.registry import Registry
from hopbench.retrieval.support.collector import collector_paused
from hopbench.retrieval.support.errors import IncompleteError, InputError
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

GAPS = "gaps"
MAX_UNREAD = 0.05  # share of chunks that a graph may lack because a model could not read them

Extraction = Callable[[GraphPlan, Sequence[Chunk], Tagger], Iterable[Part]]


@cache
def extractors() -> Registry[Extraction]:
    """The built-in extractors and those that installed packages offer under the entry point `hopbench.extractors`."""
    return Registry("extractor", EXTRACTORS, BUILT_IN, _usable)


def extract(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterable[Part]:
    """ENTITY, MENTIONED_IN and RELATED_TO of `schema` in parts, and GAPS where a model could not read all."""
    return extractors().get(plan.settings.extractor)(plan, chunks, tagger)


def _usable(name: str, extractor: object) -> Extraction:
    """One of ours as it is; a plug-in's function of chunks as one of the plan."""
    if not callable(extractor):
        raise InputError("it is no function of chunks")
    if name in BUILT_IN:
        return extractor

    def by_plugin(_: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterable[Part]:
        return triple_tables(chunks, stated(name, extractor, chunks), tagger).items()

    return by_plugin


def by_rules(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterator[Part]:
    """Titles, aliases and phrases; see `extract.rules`."""
    with collector_paused():
        yield from rule_parts(chunks, tagger)


def by_spacy(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterator[Part]:
    """The rules with the names that spaCy recognises; see `extract.spacy_names`."""
    with collector_paused():
        yield from rule_parts(chunks, tagger, SpacyNames(plan.settings.recogniser))


def by_rules_and_triples(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterable[Part]:
    """The rules' graph with the plan's triples beside it; see `extract.joined`."""
    with collector_paused():
        rules = rule_tables(chunks, tagger)
    return with_triples(rules, chunks, plan.triples, tagger).items()


def from_triples(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterable[Part]:
    """The plan's triples alone; see `extract.triples`."""
    return triple_tables(chunks, plan.triples, tagger).items()


def by_model(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterable[Part]:
    """The tables of triples read by a language model; refuses a graph that would lack more than a few passages."""
    if plan.reader is None:
        raise InputError("extractor 'llm' needs a model to build with: --llm MODEL[@URL]")
    reading = plan.reader.read(chunks)
    resolution = resolve_names(reading.triples, plan.embedder, plan.reader.llm)
    gaps = [*sorted(reading.unread.items()), *sorted(resolution.undecided.items())]
    passing = [gap for gap in gaps if gap[1].partition(":")[0] not in LASTING]
    if passing or len(reading.unread) > MAX_UNREAD * len(chunks):
        raise IncompleteError(
            f"{plan.reader.llm.endpoint.name} did not read {len(reading.unread)} of {len(chunks)} passages; the first "
            f"gap: {': '.join((passing or gaps)[0])}. What was read is kept: the same command asks only for the rest"
        )
    tables = triple_tables(chunks, resolution.apply(reading.triples), tagger, resolution.aliases())
    return [*tables.items(), (GAPS, pd.DataFrame(gaps, columns=["what", "reason"], dtype=str))]
