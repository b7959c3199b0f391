"""Which names mean the same thing: equal words first, then nearness of the embeddings, then a model for the doubtful.

Names with the same words (`name_key`) are one entity already. Of the others only near neighbours are looked at: at a
cosine of at least SURE they are the same if all their letters are Latin; from the embedder's own synonym threshold up
they are doubtful, and a model decides where there is one. Names that differ in a number (dates, versions, "Henry IV"
and "Henry V") are never one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import regex

from hopbench.retrieval.embedding.base import Embedder
from hopbench.retrieval.llm import LLM, Call, ask
from hopbench.retrieval.search.exact import dense_top
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.text import name_key, normalised
from hopbench.retrieval.types import Triple

PROMPT_VERSION = "resolve-1"
SURE = 0.98
NEIGHBOURS = 3
TOGETHER = 20  # pairs in one call
_NUMBER = regex.compile(r"\d+|\b[ivxlc]+\b|[〇零一二三四五六七八九十百千]+")
_NOT_LATIN = regex.compile(r"[\p{L}--\p{Latin}]", regex.V1)  # embedders see few of the letters, and not their order
Pair = tuple[str, str]

INSTRUCTIONS = """For each numbered pair of names, say whether both name the same thing (true) or not (false).
A person and a work or a place named after them are not the same; a full and a short name of one thing are."""


@dataclass(frozen=True)
class Resolution:
    """`canonical` maps each replaced name to the name that replaces it.

    `undecided` maps doubtful pairs on which the model gave no answer ("20 pairs of names from …") to the reason.
    """

    canonical: Mapping[str, str]
    undecided: Mapping[str, str]

    def apply(self, triples: Sequence[Triple]) -> list[Triple]:
        """The triples with canonical names, without those whose ends are now the same."""
        renamed = (
            replace(triple, subject=self._name(triple.subject), object=self._name(triple.object)) for triple in triples
        )
        return [triple for triple in renamed if name_key(triple.subject) != name_key(triple.object)]

    def aliases(self) -> dict[str, list[str]]:
        """The other names of each canonical name, sorted."""
        aliases: dict[str, list[str]] = {}
        for name, canonical in sorted(self.canonical.items()):
            aliases.setdefault(canonical, []).append(name)
        return aliases

    def _name(self, name: str) -> str:
        return self.canonical.get(name, name)


def resolve_names(triples: Sequence[Triple], embedder: Embedder, llm: LLM | None = None) -> Resolution:
    """Find the names that mean the same thing; the most frequent name wins, then the longest."""
    counts = Counter(name for triple in triples for name in (triple.subject, triple.object))
    spelled: dict[tuple[str, ...], str] = {}
    for name in sorted(counts, key=lambda triple: (-counts[triple], -len(triple), triple)):
        spelled.setdefault(name_key(name), name)
    names = list(spelled.values())  # best first
    sure, doubtful = _near(names, embedder)
    decided, undecided = _decided(doubtful, llm)
    parent = {name: name for name in names}
    for first, second in [*sure, *decided]:
        roots = _root(parent, first), _root(parent, second)
        winner, loser = sorted(roots, key=names.index)
        parent[loser] = winner
    canonical = {name: _root(parent, spelled[name_key(name)]) for name in counts}
    return Resolution({name: winner for name, winner in canonical.items() if name != winner}, undecided)


def _root(parent: Mapping[str, str], name: str) -> str:
    while parent[name] != name:
        name = parent[name]
    return name


def _near(names: Sequence[str], embedder: Embedder) -> tuple[list[Pair], list[Pair]]:
    """Pairs of names that are the same, and pairs in doubt."""
    if len(names) < 2:
        return [], []
    vectors = on_grid(embedder.embed(names))
    sure: set[Pair] = set()
    doubtful: set[Pair] = set()
    for row, best in enumerate(dense_top(vectors, vectors, NEIGHBOURS + 1)):
        others = [pair for pair in zip(best.rows.tolist(), best.scores.tolist(), strict=True) if pair[0] != row]
        for other, cosine in others[:NEIGHBOURS]:
            pair = (names[min(row, other)], names[max(row, other)])
            if cosine < embedder.synonym_threshold or _numbers(pair[0]) != _numbers(pair[1]):
                continue
            (sure if cosine >= SURE and not _NOT_LATIN.search("".join(pair)) else doubtful).add(pair)
    return sorted(sure), sorted(doubtful - sure)


def _numbers(name: str) -> list[str]:
    return list(_NUMBER.findall(normalised(name).lower()))


def _decided(doubtful: Sequence[Pair], llm: LLM | None) -> tuple[list[Pair], dict[str, str]]:
    """The doubtful pairs that the model calls the same."""
    if llm is None or not doubtful:
        return [], {}
    parts = [doubtful[begin : begin + TOGETHER] for begin in range(0, len(doubtful), TOGETHER)]
    same: list[Pair] = []
    undecided: dict[str, str] = {}
    for part, reply in zip(parts, ask(llm, [_call(part) for part in parts]), strict=True):
        if reply.failure is not None:
            undecided[f"{len(part)} pairs of names from {part[0]}"] = reply.failure
        else:
            same += [pair for pair, yes in zip(part, reply.value["same"], strict=True) if yes]
    return same, undecided


def _call(part: Sequence[Pair]) -> Call:
    lines = [f"{number}. {first} | {second}" for number, (first, second) in enumerate(part, 1)]
    answers = {"type": "array", "items": {"type": "boolean"}, "minItems": len(part), "maxItems": len(part)}
    form = {
        "type": "object",
        "properties": {"same": answers},
        "required": ["same"],
        "additionalProperties": False,
    }
    talk = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": "\n".join(lines)}]
    return Call("resolve", talk, form, 256, version=PROMPT_VERSION)
