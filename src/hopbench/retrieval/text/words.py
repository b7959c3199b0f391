"""Words and sentences of any script: where they begin and end, and the form in which spellings compare equal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import regex

# Texts without marks and scripts beyond Cyrillic, which `re` reads alike, in half of the time that `regex` takes.
_BEYOND = re.compile("[\u0300-\u036f\u0483-\u0489\u0590-\u1dff\u200c\u200d\u20d0-\u20ff\u2de0-\U0010ffff]")
_PLAIN_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]{2,})?")
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}\u200c\u200d]*(?:['’][\p{L}\p{M}]{2,})?")
_SEARCHED = regex.compile(r"[\p{L}\p{N}\p{M}_\u200c\u200d]+")
_BREAKS = frozenset(',;:()"“”/–—،؛、，；：（）「」『』《》〈〉【】')
_FOLDS = str.maketrans({"ł": "l", "ø": "o", "ı": "i", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe", "’": "'"})
_FRACTIONS = {mark: f" {unicodedata.normalize('NFKC', mark)}" for mark in "½¼¾⅓⅔⅛⅜⅝⅞"}  # 2½ is not 21
_SIGNS = str.maketrans({"™": " ", "℠": " ", **_FRACTIONS})  # NFKC makes letters or digits of them

# Scripts whose words follow one another without spaces: by Unicode's line breaking, Thai and its like are lb=SA.
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Yi}\p{lb=SA}ー"
_UNSPACED = regex.compile(f"[{UNSPACED}]")
_PART = regex.compile(rf"[{UNSPACED}][{UNSPACED}\p{{M}}]*|[^{UNSPACED}]+")
_CLUSTER = regex.compile(r"\X")
_UNCASED = regex.compile(r"[\p{Lo}--\p{Latin}]", regex.V1)

# Accents of Latin and Greek letters, Russian stress and ё, Arabic and Hebrew vowel points, tatweel, joiners.
_ACCENTS = regex.compile(r"([\p{Latin}\p{Greek}\p{N}])\p{M}+")
_RUSSIAN = regex.compile(r"(?<=е)\u0308|(?<=[аеиоуыэюя])\u0301")
_POINTS = regex.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u200c-\u200f\u00ad\ufe00-\ufe0f]+"
)


class Token(NamedTuple):
    """A word of a sentence. `folded` is its comparable form; `breaks` tells that punctuation stands before it."""

    text: str
    folded: str
    breaks: bool

    @property
    def capital(self) -> bool:
        """Whether the word can begin or continue a name: an upper-case letter or a digit comes first."""
        return self.text[0].isupper() or self.text[0].isdigit()

    @property
    def uncased(self) -> bool:
        """Whether it is written in a script without capital letters."""
        return not self.text.isascii() and (_UNCASED.match(self.text) is not None or is_unspaced(self.text))


def normalised(text: str) -> str:
    """NFKC, the one form in which texts are read."""
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return text
    return unicodedata.normalize("NFKC", text.translate(_SIGNS))


@lru_cache(maxsize=1 << 18)
def fold(word: str) -> str:
    """Lower-case `word` without the accents that spellings of one word may lack; the result has no spaces.

    "Björk" and "bjork" compare equal, and so do Russian е and ё, pointed and plain Arabic and Hebrew. Marks that make
    another letter stay: й is not и, バ is not ハ, कि is not का.
    """
    if word.isascii():
        return word.lower()
    letters = _ACCENTS.sub(r"\1", unicodedata.normalize("NFKD", word.lower()))
    letters = _POINTS.sub("", _RUSSIAN.sub("", letters)).lower().translate(_FOLDS)
    return unicodedata.normalize("NFC", "".join(letters.split())) or word


@lru_cache(maxsize=1 << 18)
def exact(word: str) -> str:
    """Lower-case `word` with all its accents."""
    return normalised(word).lower() if not word.isascii() else word.lower()


@lru_cache(maxsize=1 << 18)
def _token(word: str, breaks: bool) -> Token:
    """A shared token for all occurrences of a word, since large corpora have too many for one each."""
    return Token(word, fold(word), breaks)


def tokens(sentence: str) -> list[Token]:
    """The words of a sentence in order. A possessive 's is no token: "Wood's" is "Wood", "O'Neal" stays whole.

    Of scripts without spaces a whole run is one word; `Spellings.tokens` finds names in it, `units` its bigrams.
    """
    words: list[Token] = []
    end = 0
    sentence = normalised(sentence)
    pattern = _WORD if is_beyond(sentence) else _PLAIN_WORD
    for match in pattern.finditer(sentence):
        word, start = match.group(), match.start()
        if word in ("s", "S") and start and sentence[start - 1] in "'’":
            end = match.end()
            continue
        gap = sentence[end:start]
        words.append(_token(word, bool(gap) and gap != " " and not _BREAKS.isdisjoint(gap)))
        end = match.end()
    return words


def folded_words(text: str) -> list[str]:
    """The folded words of a text; faster than `tokens`, but with the "s" of possessives."""
    if text.isascii():
        return _PLAIN_WORD.findall(text.lower())
    text = normalised(text)
    return [fold(word) for word in (_WORD if is_beyond(text) else _PLAIN_WORD).findall(text)]


def is_beyond(text: str) -> bool:
    """Whether a text has marks of their own, or letters beyond Latin, Greek and Cyrillic."""
    return not text.isascii() and _BEYOND.search(text) is not None


def is_unspaced(text: str) -> bool:
    """Whether a text has letters of a script that writes no spaces between words."""
    return is_beyond(text) and _UNSPACED.search(text) is not None


def mostly_unspaced(text: str) -> bool:
    """Whether most letters of a text are of such scripts."""
    return is_unspaced(text) and 2 * len(_UNSPACED.findall(text)) > sum(map(str.isalpha, text))


def parts(word: str) -> list[str]:
    """A word cut where a script without spaces begins or ends."""
    return list(_PART.findall(word))


def clusters(text: str) -> list[str]:
    """A text's characters as a reader counts them: a letter with all its marks is one."""
    return list(_CLUSTER.findall(text))


def units(word: str) -> list[str]:
    """A word as search compares it: of scripts without spaces overlapping pairs of characters, else the word itself."""
    if not is_unspaced(word):
        return [word]
    units_of = []
    for part in parts(word):
        characters = clusters(part) if is_unspaced(part) else [part]
        units_of += [first + second for first, second in pairwise(characters)] or characters
    return units_of


def unit_tokens(words: Iterable[Token]) -> list[Token]:
    """Words as search compares them; see `units`."""
    return [word._replace(folded=unit) for word in words for unit in units(word.folded)]


def search_words(text: str) -> list[str]:
    """A text's words for BM25, in lower case with their accents; a single letter counts in runs without spaces only."""
    if not text.isascii():
        text = _POINTS.sub("", normalised(text).casefold()).replace("i\u0307", "i").replace("ı", "i")
        text = unicodedata.normalize("NFC", _RUSSIAN.sub("", text).replace("ё", "е"))
    words = _SEARCHED.findall(text.lower())
    return [unit for word in words if len(word) > 1 or is_unspaced(word) for unit in units(word)]


_ABBREVIATIONS = frozenset(
    """mr mrs ms dr st jr sr no vs lt col gen prof rev capt sgt maj hon inc ltd co bros mt ft vol ed op cf ca c b d
    feat""".split()
)
_ENGLISH = r"([.!?])[\"'’”)]*\s+(?=[\"“'(]*[^\W\d_a-z]|[\"“'(]*\d)"
_CLOSERS = r"[\"'\p{Pe}\p{Pf}]*"
_OTHER = re.compile("[…‼⁇-⁉\u0589-\u1dff\u2e00-\U0010ffff]")
_PLAIN_END = re.compile(_ENGLISH)
# The full stops of other scripts need no space, nor do ! and ? before letters that have none.
_END = regex.compile(
    rf"{_ENGLISH}|(…){_CLOSERS}(?:\s+(?=[\"“'(]*[\p{{Lu}}\p{{Lo}}])|(?=[{UNSPACED}]))"
    rf"|([\p{{Sentence_Terminal}}--[.!?]]+{_CLOSERS}|(?<=[{UNSPACED}])[.!?]+{_CLOSERS}(?=[{UNSPACED}]))\s*",
    regex.V1,
)


def sentences(text: str) -> list[str]:
    """Split text at sentence ends, never after an initial or an abbreviation ("J. R. Smith", "St. Louis")."""
    found: list[str] = []
    begin = 0
    pattern = _END if not text.isascii() and _OTHER.search(text) else _PLAIN_END
    for match in pattern.finditer(text):
        if match.group(1) == ".":
            start = dot = match.start()
            while start > begin and (text[start - 1].isalnum() or text[start - 1] == "."):
                start -= 1
            word = text[start:dot]
            if (len(word) == 1 and word.isupper()) or "." in word or word.lower() in _ABBREVIATIONS:
                continue
        found.append(text[begin : match.end()].strip())
        begin = match.end()
    rest = text[begin:].strip()
    return [*found, rest] if rest else found


def shortened(text: str, most: int) -> str:
    """A text on one line, of at most `most` characters; a longer one is cut between words and ends in "..."."""
    whole = " ".join(text.split())
    if len(whole) <= most:
        return whole
    head = whole[: most - 2].rpartition(" ")[0] or whole[: most - 3]
    if not whole.isascii() and len(head) < most // 2:  # words that long are of a script without spaces
        head = "".join(clusters(whole[: most - 2])[:-1])
    return head + "..."
