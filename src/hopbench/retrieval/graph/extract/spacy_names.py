"""Names from spaCy's entity recogniser, beside those the rules find (`--extractor spacy`, extra `spacy`).

Rules see only capitals: they miss a name at a sentence's start and the boundary in "President Barack Obama". A name
found by spaCy (https://spacy.io/api/entityrecognizer) becomes a phrase like any other, which is an entity if it occurs
in two passages; and phrases get a type, the label that spaCy gives them most often.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from hopbench.retrieval.graph.extract.names import (
    MAX_NAME_WORDS,
    NAME_LABELS,
    PHRASE_WEIGHT,
    AliasTable,
    Mention,
    ReadChunk,
)
from hopbench.retrieval.support.errors import InputError, MissingExtraError
from hopbench.retrieval.text import Key, Token

MODEL_VARIABLE, DEFAULT_MODEL = "HOPBENCH_SPACY_MODEL", "en_core_web_sm"
BATCH_SIZE = 64  # sentences; 32 to 256 take the same time
MAX_CHARACTERS = 5_000  # a longer "sentence" is a table or a log: the rules alone read its rest
_ARTICLES = frozenset(("a", "an", "the"))


def recogniser() -> str:
    """The installed model that HOPBENCH_SPACY_MODEL names, with versions: "en_core_web_sm@3.8.0/spacy@3.8.18".

    Neither spaCy nor the model is loaded. Raises `MissingExtraError` without spaCy, `InputError` without the model.
    """
    if find_spec("spacy") is None:
        raise MissingExtraError("the spaCy extractor", "spacy")
    model = os.environ.get(MODEL_VARIABLE) or DEFAULT_MODEL
    try:
        installed = version(model) if model.isidentifier() and find_spec(model) else None
    except PackageNotFoundError:
        installed = None
    if installed is None:
        raise InputError(
            f"the spaCy model {model!r} is not installed: python -m spacy download {model} (without pip: install its "
            f"wheel from https://github.com/explosion/spacy-models/releases), or name another in {MODEL_VARIABLE}"
        )
    return f"{model}@{installed}/spacy@{version('spacy')}"


def spacy_names(recogniser: str, read: Sequence[ReadChunk], table: AliasTable) -> Mapping[Key, str]:
    """Add spaCy's names to passages that the rules have read; `recogniser` is the result of that function.

    Appends new names to each `phrases`; returns each name's most frequent label, ties alphabetically. Nothing is added
    inside a mention or for a name that `table` knows: the rules read those better.
    """
    nlp = _load(recogniser.partition("@")[0])
    places = [(chunk, number) for chunk in read for number in range(1, len(chunk.sentences))]
    texts = [chunk.sentences[number][:MAX_CHARACTERS] for chunk, number in places]
    labels: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    for (chunk, number), doc in zip(places, nlp.pipe(texts, batch_size=BATCH_SIZE), strict=True):
        for entity in doc.ents:
            name = _name(chunk.words[number], doc.text, entity.start_char, entity.end_char, table)
            if entity.label_ not in NAME_LABELS or name is None:
                continue
            key = tuple(word.folded for word in chunk.words[number][name])
            labels[key][entity.label_] += 1
            phrase = Mention(number, name.start, name.stop - name.start, key, PHRASE_WEIGHT)
            inside = any(
                mention.sentence == number
                and mention.start <= name.start
                and name.stop <= mention.start + mention.length
                for mention in chunk.mentions
            )
            if not inside and key not in table.entries and phrase not in chunk.phrases:
                chunk.phrases.append(phrase)
    return {key: min(counts, key=lambda label: (-counts[label], label)) for key, counts in labels.items()}


def _load(model: str) -> Any:
    """Load the entity recogniser and the components it needs, which take 60% of the full pipeline's time."""
    import spacy

    nlp = spacy.load(model)
    if "ner" not in nlp.pipe_names:
        raise InputError(f"the spaCy model {model!r} has no entity recogniser: name another in {MODEL_VARIABLE}")
    needed = [name for name, pipe in nlp.pipeline if "ner" in getattr(pipe, "listening_components", ())]
    nlp.select_pipes(enable=[*needed, "ner"])
    return nlp


def _name(words: Sequence[Token], sentence: str, begin: int, end: int, table: AliasTable) -> slice | None:
    """The words that the characters `begin`..`end` cover, without a leading article; None if they are not a name."""
    own, start = table.spellings.tokens(sentence[begin:end]), len(table.spellings.tokens(sentence[:begin]))
    stop = start + len(own)
    if [word.text for word in words[start:stop]] != [word.text for word in own]:
        return None  # spaCy split a word that is one token here
    if own and own[0].folded in _ARTICLES:
        start += 1
    name = words[start:stop]
    if not 1 <= len(name) <= MAX_NAME_WORDS or all(word.folded in table.language.stop for word in name):
        return None
    capital = any(word.text[0].isupper() or word.uncased for word in name)
    return slice(start, stop) if capital and (len(name) > 1 or len(name[0].text) > 2) else None
