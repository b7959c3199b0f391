"""The types and descriptions of entities, merged over the passages that state them.

A type or description that an extractor or a triple states comes before what passages suggest: the qualifier of a title
as a type, and as a description the first sentence of the entity's own passage (the one titled by it). What has no
passage of its own gets the first sentence that names it where something is stated of it, or else the fact itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hopbench.retrieval.text import Key, Spellings, fold, sentences, shortened, split_qualifier
from hopbench.retrieval.types import Chunk, Triple

LONGEST = 300  # characters of a description


@dataclass(slots=True)
class Profile:
    """What passages state about an entity. `own` and `others` are descriptions from its own passage and from others."""

    name: str
    titled: str = ""
    types: Counter[str] = field(default_factory=Counter)
    own: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    own_sentence: str = ""
    named_in: str = ""
    fact: str = ""

    @property
    def stated_type(self) -> str:
        """The type that was stated most often, the alphabetically first of equals; "" where none was."""
        return min(self.types, key=lambda kind: (-self.types[kind], kind), default="")

    @property
    def stated_description(self) -> str:
        """Its stated descriptions, own passage first, each once, as many as fit whole; "" without any."""
        stated = list(dict.fromkeys([*self.own, *self.others]))
        text = shortened(stated[0], LONGEST) if stated else ""
        for more in stated[1:]:
            if len(text) + 1 + len(more) <= LONGEST:
                text = f"{text} {more}"
        return text

    @property
    def has_description(self) -> bool:
        """Whether a description was stated or can be taken from a sentence."""
        return bool(self.own or self.others or self.own_sentence or self.named_in)

    @property
    def type(self) -> str:
        """As stated, else its title's qualifier, else "title", or "entity" for what has no passage."""
        return self.stated_type or self.titled or "entity"

    @property
    def description(self) -> str:
        """As stated, else a sentence of a passage."""
        return self.stated_description or self.own_sentence or self.named_in or self.fact


def first_sentence(text: str) -> str:
    """The first sentence of a text, cut between words: the description where none is given."""
    return shortened(next(iter(sentences(text)), ""), LONGEST)


def profiles(
    chunks: Sequence[Chunk], by_passage: Mapping[str, Sequence[Triple]], spellings: Spellings
) -> dict[Key, Profile]:
    """All entities with a passage or a triple, by name key, in the order in which chunks name them."""
    by_key: dict[Key, Profile] = {}
    for chunk in chunks:
        subject = spellings.title_key(chunk.title)
        if subject:
            _title(by_key, subject, chunk)
        if chunk.index == 0:
            for triple in by_passage.get(chunk.passage_id, ()):
                _tell(by_key, triple, subject, spellings)
    _name(by_key, chunks, by_passage, spellings)
    by_key.pop((), None)
    return by_key


def _title(by_key: dict[Key, Profile], subject: Key, chunk: Chunk) -> None:
    title, qualifier = split_qualifier(chunk.title)
    profile = by_key.setdefault(subject, Profile(title))
    profile.titled = profile.titled or qualifier or "title"
    if chunk.index == 0:
        profile.own_sentence = profile.own_sentence or first_sentence(chunk.text)


def _tell(by_key: dict[Key, Profile], triple: Triple, subject: Key, spellings: Spellings) -> None:
    for name, kind, description in (
        (triple.subject, triple.subject_type, triple.subject_description),
        (triple.object, triple.object_type, triple.object_description),
    ):
        key = spellings.key(name)
        profile = by_key.setdefault(key, Profile(name))
        if kind:
            profile.types[kind] += 1
        profile.fact = profile.fact or shortened(_fact(triple), LONGEST)
        if description:
            (profile.own if key == subject else profile.others).append(description)


def _fact(triple: Triple) -> str:
    return triple.description or " ".join(filter(None, (triple.subject, triple.relation, triple.object)))


def _name(
    by_key: Mapping[Key, Profile],
    chunks: Sequence[Chunk],
    by_passage: Mapping[str, Sequence[Triple]],
    spellings: Spellings,
) -> None:
    """Look up the sentence that names those of which nothing else is known."""
    for chunk in chunks:
        names = (name for triple in by_passage.get(chunk.passage_id, ()) for name in (triple.subject, triple.object))
        wanted = {key for key in map(spellings.key, names) if key and not by_key[key].has_description}
        if wanted:
            _read(by_key, wanted, sentences(chunk.text), spellings)


def _read(by_key: Mapping[Key, Profile], wanted: Iterable[Key], text: Sequence[str], spellings: Spellings) -> None:
    read = [(sentence, [token.folded for token in spellings.tokens(sentence)]) for sentence in text]
    for key in wanted:
        sentence = next((sentence for sentence, words in read if occurrences(words, key)), "")
        by_key[key].named_in = shortened(sentence, LONGEST)


def occurrences(words: Sequence[str], key: Key) -> int:
    """How often the words of a name occur consecutively in `words`, which are folded."""
    if not all(map(str.isascii, key)):
        key = tuple(map(fold, key))
    if key and key[0] not in words:
        return 0
    return sum(tuple(words[i : i + len(key)]) == key for i in range(len(words) - len(key) + 1))
