"""The extract stage: tables of entities, mentions and relations, by the extractor that the plan names.

A large corpus is extracted by rules in blocks: each block of chunks, and each bucket of relations, is a stage of its
own. Memory then holds the words of one block and the relations of one bucket, and a killed build resumes at the block
it had reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from math import ceil

import pandas as pd

from hopbench.retrieval.graph.construction.plan import BUILT_IN, GraphPlan
from hopbench.retrieval.graph.construction.staging import Part, Stage, Staging
from hopbench.retrieval.graph.extract.names import alias_table
from hopbench.retrieval.graph.extract.rules import (
    CHUNKS_PER_BLOCK,
    PHRASES,
    TITLED,
    entity_parts,
    joined_names,
    joined_statements,
    read_names,
    read_statements,
    rule_parts,
    rule_tables,
    statements,
)
from hopbench.retrieval.graph.extract.spacy_names import spacy_names
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
    passages = {chunk.passage_id for chunk in chunks}
    try:
        found = list(extractor(chunks))
    except HopBenchError:
        raise
    except Exception as error:  # a plug-in may raise anything
        raise InputError(f"extractor {name!r} failed with {type(error).__name__}: {error}") from error
    triples: list[Triple] = []
    for one in found:
        if not isinstance(one, Mention | Triple):
            raise InputError(f"extractor {name!r} returned {type(one).__name__}: it returns Mention and Triple objects")
        if one.passage_id not in passages:
            raise InputError(f"extractor {name!r} names the passage {one.passage_id!r}, which the corpus lacks: {one}")
        names = (one.name,) if isinstance(one, Mention) else (one.subject, one.object)
        if not all(map(name_key, names)):
            raise InputError(f"extractor {name!r} names an entity without a word in its name: {one}")
        if isinstance(one, Mention):
            triples.append(
                Triple(one.passage_id, one.name, "", "", subject_type=one.type, subject_description=one.description)
            )
        elif 0.0 <= one.confidence <= 1.0:
            triples.append(one)
        else:
            raise InputError(f"extractor {name!r} states the confidence {one.confidence}, outside 0..1: {one}")
    return triples


BUCKET_CHUNKS = 100_000  # chunks whose relations are assembled at a time: 300 MB


def extract_in_blocks(
    chunks: Sequence[Chunk], tagger: Tagger, staging: Staging, size: int = CHUNKS_PER_BLOCK, processes: int = 1
) -> Stage:
    """Extract ENTITY, MENTIONED_IN and RELATED_TO by rules in blocks of `size` chunks; see `extract.rules`.

    With `processes` above 1 several blocks are read in parallel; the tables are the same.
    """
    buckets = ceil(len(chunks) / max(BUCKET_CHUNKS, size))
    blocks = [chunks[begin : begin + size] for begin in range(0, len(chunks), size)]
    each = partial(staging.each, processes=processes)
    with collector_off():
        table = alias_table(chunks, tagger.language)
        read = each("names", [partial(read_names, block, table) for block in blocks])
        titled, names = joined_names(read.parts(TITLED), read.parts(PHRASES))
        named = each("entities", [partial(entity_parts, titled, names)])
        del titled
        stated = each(
            "statements", [partial(read_statements, block, table, names, tagger, buckets) for block in blocks]
        )
        frequency = Counter(chain.from_iterable(part["source"] for part in stated.parts(MENTIONED_IN, ["source"])))

        def related(bucket: int) -> Iterator[Part]:
            return joined_statements(stated.parts(statements(bucket)), frequency, len(chunks), tagger)

        stage = named + stated + each("related", [partial(related, bucket) for bucket in range(buckets)])
    if processes > 1:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown()  # idle workers keep the memory of their blocks
    return stage


GAPS = "gaps"
MAX_UNREAD = 0.05  # the largest share of chunks that a model may fail to read

Extraction = Callable[[GraphPlan, Sequence[Chunk], Tagger], Iterable[Part]]


@cache
def extractors() -> Registry[Extraction]:
    """The built-in extractors and those that installed packages offer under the entry point `hopbench.extractors`."""
    return Registry("extractor", EXTRACTORS, BUILT_IN, _usable)


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
    """Titles, aliases and phrases (see `extract.rules`), with `spacy` also the names that it recognises."""
    with collector_off():
        more_names = partial(spacy_names, plan.settings.recogniser) if plan.settings.extractor == "spacy" else None
        yield from rule_parts(chunks, tagger, more_names)


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
    from hopbench.retrieval.graph.extract.model import aliases_of, renamed, resolve_names

    if plan.reader is None:
        raise InputError("extractor 'llm' needs a model to build with: --llm MODEL[@URL]")
    triples, unread = plan.reader.read(chunks)
    canonical, undecided = resolve_names(triples, plan.embedder, plan.reader.llm)
    gaps = [*sorted(unread.items()), *sorted(undecided.items())]
    transient = [gap for gap in gaps if gap[1].partition(":")[0] not in LASTING]
    if transient or len(unread) > MAX_UNREAD * len(chunks):
        raise IncompleteError(
            f"{plan.reader.llm.endpoint.name} did not read {len(unread)} of {len(chunks)} passages; the first "
            f"gap: {': '.join((transient or gaps)[0])}. Replies so far are cached: the same command requests the rest"
        )
    tables = triple_tables(chunks, renamed(triples, canonical), tagger, aliases_of(canonical))
    return [*tables.items(), (GAPS, pd.DataFrame(gaps, columns=["what", "reason"], dtype=str))]
