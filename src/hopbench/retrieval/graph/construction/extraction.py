"""The extract stage: tables of entities, mentions and relations, by the extractor that the plan names.

A large corpus is extracted by rules in blocks: each block of chunks, and each bucket of relations, is a stage of its
own. Memory then holds the words of one block and the relations of one bucket, and a killed build resumes at the block
it had reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import ceil

import pandas as pd

from hopbench.retrieval.graph.construction.plan import BUILT_IN, GraphPlan
from hopbench.retrieval.graph.construction.staging import Part, Stage, Stages, Staging
from hopbench.retrieval.graph.extract.model import resolve_names
from hopbench.retrieval.graph.extract.names import alias_table
from hopbench.retrieval.graph.extract.rules import (
    CHUNKS_PER_BLOCK,
    PHRASES,
    TITLED,
    entities,
    frequencies,
    joined_names,
    joined_statements,
    read_names,
    read_statements,
    rule_parts,
    rule_tables,
    statements,
)
from hopbench.retrieval.graph.extract.spacy_names import SpacyNames
from hopbench.retrieval.graph.extract.triples import triple_tables, with_triples
from hopbench.retrieval.graph.schema import MENTIONED_IN
from hopbench.retrieval.llm.faults import LASTING
from hopbench.retrieval.plugins.registry import EXTRACTORS, Registry
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, InputError
from hopbench.retrieval.support.processes import collector_off
from hopbench.retrieval.text import Tagger, name_key
from hopbench.retrieval.types import Chunk, Triple


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity named in a passage; type and description are empty if the extractor does not know them."""

    passage_id: str
    name: str
    type: str = ""
    description: str = ""


Extractor = Callable[[Sequence[Chunk]], Iterable[Mention | Triple]]
"""The function that a package offers under `hopbench.extractors`: chunks of the corpus → mentions and triples."""


def plugin_triples(name: str, extractor: Extractor, chunks: Sequence[Chunk]) -> list[Triple]:
    """Run a plug-in's extractor and validate its results; mentions become triples without a relation.

    Raises InputError if the plug-in fails, or returns another type, an unknown passage, an entity without a name or a
    confidence outside 0..1.
    """
    passages = {chunk.passage_id: chunk.title for chunk in chunks}
    try:
        found = list(extractor(chunks))
    except HopBenchError:
        raise
    except Exception as error:  # a plug-in may raise anything
        raise InputError(f"extractor {name!r} failed with {type(error).__name__}: {error}") from error
    return list(_checked(name, found, passages))


def _checked(name: str, found: Iterable[Mention | Triple], passages: Mapping[str, str]) -> Iterator[Triple]:
    for one in found:
        if not isinstance(one, Mention | Triple):
            raise InputError(f"extractor {name!r} returned {type(one).__name__}: it returns Mention and Triple objects")
        if one.passage_id not in passages:
            raise InputError(f"extractor {name!r} names the passage {one.passage_id!r}, which the corpus lacks: {one}")
        names = (one.name,) if isinstance(one, Mention) else (one.subject, one.object)
        if not all(map(name_key, names)):
            raise InputError(f"extractor {name!r} names an entity without a word in its name: {one}")
        if isinstance(one, Triple):
            if not 0.0 <= one.confidence <= 1.0:
                raise InputError(f"extractor {name!r} states the confidence {one.confidence}, outside 0..1: {one}")
            yield one
        else:
            yield Triple(one.passage_id, one.name, "", "", subject_type=one.type, subject_description=one.description)


Each = Callable[[str, Sequence[Callable[[], Iterable[Part]]]], list[Stage]]
BUCKET_CHUNKS = 100_000  # chunks whose relations are assembled at a time: 300 MB


def extract_in_blocks(
    chunks: Sequence[Chunk], tagger: Tagger, staging: Staging, size: int = CHUNKS_PER_BLOCK, processes: int = 1
) -> Stages:
    """Extract ENTITY, MENTIONED_IN and RELATED_TO by rules in blocks of `size` chunks; see `extract.rules`.

    With `processes` above 1 several blocks are read in parallel; the tables are the same.
    """
    buckets = ceil(len(chunks) / max(BUCKET_CHUNKS, size))
    run_each: Each = partial(staging.each, processes=processes)
    with collector_off():
        named, stated = _read(chunks, tagger, run_each, size, buckets)
        stages = Stages([named, *stated, *_related(stated, buckets, len(chunks), tagger, run_each)])
    if processes > 1:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown()  # idle workers keep the memory of their blocks
    return stages


def _read(
    chunks: Sequence[Chunk], tagger: Tagger, run_each: Each, size: int, buckets: int
) -> tuple[Stage, list[Stage]]:
    """The stage of entities, and those of each block's mentions and statements."""
    blocks = [chunks[begin : begin + size] for begin in range(0, len(chunks), size)]
    table = alias_table(chunks, tagger.language)
    read = run_each("names", [partial(read_names, block, table) for block in blocks])
    titled, names = joined_names((_whole(one, TITLED), _whole(one, PHRASES)) for one in read)
    (named,) = run_each("entities", [partial(entities, titled, names)])
    del titled
    return named, run_each(
        "statements", [partial(read_statements, block, table, names, tagger, buckets) for block in blocks]
    )


def _related(stated: Sequence[Stage], buckets: int, chunks: int, tagger: Tagger, run_each: Each) -> list[Stage]:
    """The stages of relations, a bucket each."""
    frequency = frequencies(part for one in stated for part in one.parts(MENTIONED_IN, ["source"]))

    def bucket_parts(bucket: int) -> Iterator[Part]:
        blocks = (part for one in stated for part in one.parts(statements(bucket)))
        return joined_statements(blocks, frequency, chunks, tagger)

    return run_each("related", [partial(bucket_parts, bucket) for bucket in range(buckets)])


def _whole(stage: Stage, table: str) -> pd.DataFrame:
    (part,) = stage.parts(table)
    return part


GAPS = "gaps"
MAX_UNREAD = 0.05  # the largest share of chunks that a model may fail to read

Extraction = Callable[[GraphPlan, Sequence[Chunk], Tagger], Iterable[Part]]


@cache
def extractors() -> Registry[Extraction]:
    """The built-in extractors and those that installed packages offer under the entry point `hopbench.extractors`."""
    return Registry("extractor", EXTRACTORS, BUILT_IN, _usable)


def extract(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterable[Part]:
    """Extract ENTITY, MENTIONED_IN and RELATED_TO in parts, and GAPS if a model could not read everything."""
    return extractors().get(plan.settings.extractor)(plan, chunks, tagger)


def _usable(name: str, extractor: object) -> Extraction:
    """A built-in extractor unchanged; a plug-in's function of chunks wrapped as a function of the plan."""
    if not callable(extractor):
        raise InputError("it is no function of chunks")
    if name in BUILT_IN:
        return extractor

    def by_plugin(_: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterable[Part]:
        return triple_tables(chunks, plugin_triples(name, extractor, chunks), tagger).items()

    return by_plugin


def by_rules(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterator[Part]:
    """Titles, aliases and phrases; see `extract.rules`."""
    with collector_off():
        yield from rule_parts(chunks, tagger)


def by_spacy(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterator[Part]:
    """The rules with the names that spaCy recognises; see `extract.spacy_names`."""
    with collector_off():
        yield from rule_parts(chunks, tagger, SpacyNames(plan.settings.recogniser))


def by_rules_and_triples(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterable[Part]:
    """The rules' graph with the plan's triples beside it; see `extract.triples`."""
    with collector_off():
        rules = rule_tables(chunks, tagger)
    return with_triples(rules, chunks, plan.triples, tagger).items()


def from_triples(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterable[Part]:
    """The plan's triples alone; see `extract.triples`."""
    return triple_tables(chunks, plan.triples, tagger).items()


def by_model(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger) -> Iterable[Part]:
    """The tables of triples read by a language model; raises IncompleteError if it read too few passages."""
    if plan.reader is None:
        raise InputError("extractor 'llm' needs a model to build with: --llm MODEL[@URL]")
    reading = plan.reader.read(chunks)
    resolution = resolve_names(reading.triples, plan.embedder, plan.reader.llm)
    gaps = [*sorted(reading.unread.items()), *sorted(resolution.undecided.items())]
    transient = [gap for gap in gaps if gap[1].partition(":")[0] not in LASTING]
    if transient or len(reading.unread) > MAX_UNREAD * len(chunks):
        raise IncompleteError(
            f"{plan.reader.llm.endpoint.name} did not read {len(reading.unread)} of {len(chunks)} passages; the first "
            f"gap: {': '.join((transient or gaps)[0])}. Replies so far are cached: the same command requests the rest"
        )
    tables = triple_tables(chunks, resolution.apply(reading.triples), tagger, resolution.aliases())
    return [*tables.items(), (GAPS, pd.DataFrame(gaps, columns=["what", "reason"], dtype=str))]
