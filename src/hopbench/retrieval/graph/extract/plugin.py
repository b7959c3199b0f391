"""Extractors of installed packages: functions that read entities and relations from chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hopbench.retrieval.support.errors import HopBenchError, InputError
from hopbench.retrieval.text import name_key
from hopbench.retrieval.types import Chunk, Triple


@dataclass(frozen=True, slots=True)
class Mention:
    """A passage names an entity; its type and description are empty where the extractor does not know them."""

    passage_id: str
    name: str
    type: str = ""
    description: str = ""


Extractor = Callable[[Sequence[Chunk]], Iterable[Mention | Triple]]
"""What a package offers under `hopbench.extractors`: what all chunks of the corpus mention and state."""


def stated(name: str, extractor: Extractor, chunks: Sequence[Chunk]) -> list[Triple]:
    """What a plug-in's extractor reads, mentions as triples without a relation; each is checked.

    Raises InputError where the plug-in fails, or returns something else, an unknown passage, an entity without a name
    or a confidence outside 0..1.
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
