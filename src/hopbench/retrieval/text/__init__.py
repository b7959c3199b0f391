"""Words, sentences, names, tags and languages, read alike in passages and questions, in every script."""

from hopbench.retrieval.text.languages import ENGLISH, NAMES, STOP_WORDS, UNKNOWN, Language, detect, sampled
from hopbench.retrieval.text.sentences import sentences, shortened
from hopbench.retrieval.text.spellings import Key, Spellings, name_key, split_qualifier, title_key
from hopbench.retrieval.text.tags import Tagger
from hopbench.retrieval.text.words import (
    Token,
    clusters,
    exact,
    fold,
    folded_words,
    is_unspaced,
    mostly_unspaced,
    normalised,
    search_words,
    tokens,
    unit_tokens,
    units,
)

__all__ = [
    "ENGLISH",
    "NAMES",
    "STOP_WORDS",
    "UNKNOWN",
    "Key",
    "Language",
    "Spellings",
    "Tagger",
    "Token",
    "clusters",
    "detect",
    "exact",
    "fold",
    "folded_words",
    "is_unspaced",
    "mostly_unspaced",
    "name_key",
    "normalised",
    "sampled",
    "search_words",
    "sentences",
    "shortened",
    "split_qualifier",
    "title_key",
    "tokens",
    "unit_tokens",
    "units",
]
