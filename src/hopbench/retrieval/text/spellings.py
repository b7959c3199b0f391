"""Names in comparable form, and the names of one corpus, of which no two spellings are taken for one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import regex

from hopbench.retrieval.text.words import UNSPACED, Token, exact, is_beyond, normalised, parts, tokens

Key = tuple[str, ...]
"""A name's folded words, by which equal names are one entity."""

_QUALIFIER = regex.compile(r"\s*[(（]([^()（）]*)[)）]\s*$")
_SIGNED = regex.compile(r"[\p{L}\p{N}\p{M}]([\p{Sm}\p{Sc}\p{So}#♯]+)")
_HANGUL = regex.compile(r"\p{Hangul}")
_DIVISIBLE = regex.compile(rf"[\p{{Hangul}}{UNSPACED}]")
# Where a letter of one of these stands on both sides of a name's edge, the name is a part of a longer word.
_JOINED = tuple(map(regex.compile, (r"[\p{Katakana}ー]", r"\p{N}", r"[\p{Latin}\p{Cyrillic}\p{Greek}]")))


def name_key(name: str) -> Key:
    """A name's comparable form: its folded words. `name_key("Ed Wood")` is `("ed", "wood")`.

    Of a name without a letter or digit it is the name itself: "→" is not "!!!".
    """
    return tuple(token.folded for token in tokens(name)) or tuple(normalised(name).lower().split())


def split_qualifier(title: str) -> tuple[str, str]:
    """A title and its parenthesised qualifier: "Ed Wood (film)" gives ("Ed Wood", "film")."""
    match = _QUALIFIER.search(title)
    return (title[: match.start()], match.group(1)) if match and match.start() else (title, "")


def title_key(title: str) -> Key:
    """The key of a title: its words without the parenthesised qualifier, or with it where nothing else is."""
    return name_key(_base(title))


def _base(title: str) -> str:
    return split_qualifier(title)[0].strip() or title


def _exact_key(name: str) -> Key:
    """A name's words with their accents, and with the signs that follow them: "C++" is not "C"."""
    words = tuple(exact(token.text) for token in tokens(name))
    return _signed(words, name) if words else name_key(name)


def _signed(words: Key, name: str) -> Key:
    return (*words[:-1], words[-1] + "".join(_SIGNED.findall(name)))


class Spellings:
    """The names of a corpus: titles, and names that its triples state.

    Two names that differ in accents or signs only ("Müller" and "Muller", "C" and "C++") have keys of their own, the
    accented one its exact words; where just one of them is known, its folded words find it however it is spelt. Names
    that are `others` are kept apart by their signs alone, since accents are often left out of them.
    """

    def __init__(self, names: Iterable[str] = (), others: Iterable[str] = ()) -> None:
        spelled: defaultdict[Key, set[Key]] = defaultdict(set)
        self._lengths: dict[str, tuple[int, ...]] = {}
        self._pieces: set[str] = set()
        for spelt, form in ((names, _exact_key), (others, lambda name: _signed(name_key(name), name))):
            for name in spelt:
                key = name_key(name)
                spelled[key].add(key if _plain(name) else form(name))
                self._add_pieces(key)
        self.apart = frozenset(
            exact_key for key, forms in spelled.items() if len(forms) > 1 for exact_key in forms if exact_key != key
        )

    @classmethod
    def of_titles(cls, titles: Iterable[str], others: Iterable[str] = ()) -> Self:
        """The spellings of titles without their qualifiers, and of other names."""
        return cls(map(_base, titles), others)

    def saved(self) -> Mapping[str, Sequence[Any]]:
        """What is read back by `of_saved`."""
        return {"apart": sorted(self.apart), "pieces": sorted(self._pieces)}

    @classmethod
    def of_saved(cls, saved: Mapping[str, Sequence[Any]]) -> Self:
        """The spellings that were saved."""
        spellings = cls()
        spellings.apart = frozenset(map(tuple, saved["apart"]))
        spellings._add_pieces(saved["pieces"])
        return spellings

    def key(self, name: str) -> Key:
        """The key of a name."""
        if self.apart and not _plain(name):
            for key in (_exact_key(name), _signed(name_key(name), name)):
                if key in self.apart:
                    return key
        return name_key(name)

    def title_key(self, title: str) -> Key:
        """The key of a title, without its qualifier."""
        return self.key(_base(title)) if title else ()

    def tokens(self, sentence: str) -> list[Token]:
        """The words of a sentence; of runs without spaces the longest known names are words, and what is between."""
        words = tokens(sentence)
        if not is_beyond(sentence) or not _DIVISIBLE.search(sentence):
            return words
        return [part for word in words for part in self._divided(word)]

    def _add_pieces(self, key: Sequence[str]) -> None:
        for word in key:
            if is_beyond(word) and word not in self._pieces and _DIVISIBLE.search(word):
                self._pieces.add(word)
                lengths = {*self._lengths.get(word[0], ()), len(word)}
                self._lengths[word[0]] = tuple(sorted(lengths, reverse=True))

    def _divided(self, word: Token) -> Iterator[Token]:
        if not _DIVISIBLE.search(word.text):
            yield word
            return
        hangul = _HANGUL.match(word.text)
        text = word.text if len(word.text) == len(word.folded) else word.folded
        begin, breaks = 0, word.breaks
        for start, end in [*self._known(word.folded, only_first=bool(hangul)), (len(text), len(text))]:
            between = [len(part) for part in parts(word.folded[begin:start])]
            for length in (*between, end - start):
                if length:
                    yield Token(text[begin : begin + length], word.folded[begin : begin + length], breaks)
                    begin, breaks = begin + length, False

    def _known(self, run: str, only_first: bool) -> Iterator[tuple[int, int]]:
        start = 0
        while start < (1 if only_first else len(run)):
            for length in self._lengths.get(run[start], ()):
                end = start + length
                if run[start:end] in self._pieces and end <= len(run) and _free(run, start) and _free(run, end):
                    yield start, end
                    break
            else:
                end = start + 1
            start = end


def _plain(name: str) -> bool:
    return name.isascii() and "+" not in name and "#" not in name and "$" not in name


def _free(run: str, edge: int) -> bool:
    """Whether a name may begin or end there: not before a mark, nor inside a word of letters that hold together."""
    if edge in (0, len(run)):
        return True
    before, after = run[edge - 1], run[edge]
    return not regex.match(r"\p{M}", after) and not any(kind.match(before) and kind.match(after) for kind in _JOINED)
