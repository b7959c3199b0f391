"""An explanation in words: a strategy's notes, the sentence that names an entity, the facts that relations state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import regex

from hopbench.retrieval.context import Relationship, relation_words
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RELATED_TO, RULE_RELATIONS, statements_of
from hopbench.retrieval.index import Index
from hopbench.retrieval.text import is_unspaced, sentences, split_qualifier
from hopbench.retrieval.types import Step

Name = Callable[[str], str]
MAX_NOTED = 10


def note_words(value: object, name: Name) -> str:
    """What a strategy notes: ids by their names, the first of long lists, nested lists as chains."""
    if isinstance(value, Mapping):
        items = [f"{name(str(key))}: {_item_words(item, name)}" for key, item in islice(value.items(), MAX_NOTED)]
    elif isinstance(value, list | tuple):
        items = [_item_words(item, name) for item in value[:MAX_NOTED]]
    else:
        return _item_words(value, name)
    more = f", and {len(value) - MAX_NOTED} more" if len(value) > MAX_NOTED else ""
    return ", ".join(items) + more if items else "none"


def _item_words(value: object, name: Name) -> str:
    if isinstance(value, Mapping):
        return "(" + "; ".join(f"{key} {_item_words(item, name)}" for key, item in value.items()) + ")"
    if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        return note_words(value, name)
    if isinstance(value, list | tuple):
        return " → ".join(
            _group_words(item, name) if isinstance(item, list | tuple) else _item_words(item, name) for item in value
        )
    return f"{value:.4g}" if isinstance(value, float) else name(str(value)) or "none"


def _group_words(values: Sequence[object], name: Name) -> str:
    """A list that is one link of a chain, such as the tags of an edge: its items in no order."""
    return "{" + ", ".join(_item_words(item, name) for item in values) + "}"


LONGEST = 240  # characters shown on either side of the mention


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence around a mention."""

    before: str
    mention: str
    after: str


@lru_cache(maxsize=16_384)  # labels reach the same passages by the same entities
def quote(title: str, text: str, name: str) -> Quote | None:
    """The first sentence of the text (else the title) that spells `name`, or the part of it before a comma.

    None where neither is spelled so, as when an alias was meant.
    """
    for spelling in _spellings(name):
        pattern = _pattern(spelling)
        for sentence in (*sentences(text), title):
            match = pattern.search(sentence)
            if match:
                before, after = sentence[: match.start()], sentence[match.end() :]
                return Quote(before[-LONGEST:], match.group(), after[:LONGEST])
    return None


def _spellings(name: str) -> Iterator[str]:
    plain = split_qualifier(name)[0]
    yield plain
    first, comma, _ = plain.partition(",")
    if comma and first.strip():
        yield first.strip()


@lru_cache(maxsize=4096)
def _pattern(spelling: str) -> regex.Pattern[str]:
    """A name as a word of its own, but for scripts without spaces, where it may stand anywhere but before a mark."""
    before = "" if is_unspaced(spelling[:1]) else r"(?<![\w\p{M}])"
    after = r"(?!\p{M})" if is_unspaced(spelling[-1:]) else r"(?![\w\p{M}])"
    return regex.compile(f"{before}{regex.escape(spelling)}{after}", regex.IGNORECASE)


MOST = 3  # relations shown of one pair, strongest first
Pair = tuple[str, str]


def pairs_of(path: Iterable[Step]) -> list[Pair]:
    """The entities that each RELATED_TO step joins, sorted, each pair once."""
    joined = (sorted((step.source, step.target)) for step in path if step.edge == RELATED_TO)
    return list(dict.fromkeys((first, second) for first, second in joined))


def stated(index: Index, pairs: Iterable[Pair], name: Callable[[str], str]) -> Mapping[Pair, Sequence[str]]:
    """`Auth Service -> OAuth Provider: "depends_on" (strength: 8)` for each of some sorted pairs of entities.

    Pairs without a stated fact are left out: entities that the rules related by co-occurrence have no direction.
    """
    wanted = [{"id": first, "other_id": second} for first, second in sorted(set(pairs))]
    if not wanted:
        return {}
    relations: dict[Pair, dict[object, Relationship]] = {}
    for record in index.store.read(cypher.STATED, pairs=wanted, usual=list(RULE_RELATIONS)):
        pair = record["source"], record["target"]
        first, second = pair if record["forward"] else pair[::-1]
        unit = record["types"] or (), record["description"] or ""
        for statement in statements_of(first, second, record["weight"], *unit, record["statements"]):
            if statement.directed:
                ends = name(statement.subject), name(statement.object)
                relation = Relationship(*ends, statement.type, statement.description, round(statement.weight, 1))
                known = relations.setdefault(pair, {}).get(statement.key, relation)
                relations[pair][statement.key] = max(known, relation, key=lambda stated: stated.weight)
    return {pair: list(map(relation_words, _strongest(by_key.values()))) for pair, by_key in relations.items()}


def _strongest(relations: Iterable[Relationship]) -> list[Relationship]:
    return sorted(relations, key=lambda r: (-r.weight, r.source, r.type, r.target, r.description))[:MOST]
