"""What is told of entities: their type and description, merged over the passages that tell it.

A type or description that an extractor or a triple states comes before what passages suggest: the qualifier of a title
as a type, and as a description the first sentence of the entity's own passage (the one titled by it). What has no
passage of its own gets the first sentence that names it where something is stated of it, or else the fact itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hopbench.retrieval.graph.extract.names import Key, title_key
from hopbench.retrieval.text import name_key, sentences, shortened, split_qualifier, tokens
from hopbench.retrieval.types import Chunk, Triple

LONGEST = 300  # characters of a description


@dataclass(slots=True)
class Profile:
    """An entity as passages tell of it. `own` and `others` are descriptions stated in its own passage and elsewhere."""

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
        """What was stated of it, own passage first, each once, whole as long as they fit; "" where nothing was."""
        told = list(dict.fromkeys([*self.own, *self.others]))
        text = shortened(told[0], LONGEST) if told else ""
        for more in told[1:]:
            if len(text) + 1 + len(more) <= LONGEST:
                text = f"{text} {more}"
        return text

    @property
    def has_description(self) -> bool:
        """Whether a description was stated, or the entity's own passage or another sentence gives one."""
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
    """What stands for a description where none is given; cut between words."""
    return shortened(next(iter(sentences(text)), ""), LONGEST)


def profiles(chunks: Sequence[Chunk], by_passage: Mapping[str, Sequence[Triple]]) -> dict[Key, Profile]:
    """Every titled and every told entity by its name key, in the order in which chunks name them."""
    found: dict[Key, Profile] = {}
    for chunk in chunks:
        subject = title_key(chunk.title)
        if subject:
            _title(found, subject, chunk)
        if chunk.index == 0:
            for triple in by_passage.get(chunk.passage_id, ()):
                _tell(found, triple, subject)
    _name(found, chunks, by_passage)
    found.pop((), None)
    return found


def _title(found: dict[Key, Profile], subject: Key, chunk: Chunk) -> None:
    title, qualifier = split_qualifier(chunk.title)
    profile = found.setdefault(subject, Profile(title))
    profile.titled = profile.titled or qualifier or "title"
    if chunk.index == 0:
        profile.own_sentence = profile.own_sentence or first_sentence(chunk.text)


def _tell(found: dict[Key, Profile], triple: Triple, subject: Key) -> None:
    for name, kind, said in (
        (triple.subject, triple.subject_type, triple.subject_description),
        (triple.object, triple.object_type, triple.object_description),
    ):
        key = name_key(name)
        profile = found.setdefault(key, Profile(name))
        if kind:
            profile.types[kind] += 1
        profile.fact = profile.fact or shortened(_fact(triple), LONGEST)
        if said:
            (profile.own if key == subject else profile.others).append(said)


def _fact(triple: Triple) -> str:
    return triple.description or f"{triple.subject} {triple.relation} {triple.object}"


def _name(found: Mapping[Key, Profile], chunks: Sequence[Chunk], by_passage: Mapping[str, Sequence[Triple]]) -> None:
    """Look up the sentence that names those of which nothing else is known."""
    for chunk in chunks:
        names = (name for one in by_passage.get(chunk.passage_id, ()) for name in (one.subject, one.object))
        wanted = {key for key in map(name_key, names) if key and not found[key].has_description}
        if wanted:
            _read(found, wanted, sentences(chunk.text))


def _read(found: Mapping[Key, Profile], wanted: Iterable[Key], text: Sequence[str]) -> None:
    read = [(sentence, [token.folded for token in tokens(sentence)]) for sentence in text]
    for key in wanted:
        sentence = next((sentence for sentence, words in read if occurrences(words, key)), "")
        found[key].named_in = shortened(sentence, LONGEST)


def occurrences(words: Sequence[str], key: Key) -> int:
    """How often the words of a name stand in a row among `words`."""
    if key and key[0] not in words:
        return 0
    return sum(tuple(words[i : i + len(key)]) == key for i in range(len(words) - len(key) + 1))
