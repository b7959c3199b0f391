"""Words, sentences, names and tags, read alike in passages and questions."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Self

STOP_WORDS = frozenset(
    """a an the and or but if of to in on at by for with from as is are was were be been being am do does did done has
    have had having he she it its they them his her their him this that these those there here who whom whose which what
    when where why how i you we us our your me my not no nor so than then too very can could will would shall should may
    might must also into about over under between during after before above below out off up down again further once
    more most other some such only own same both each few all any s t d ll m o re ve y""".split()
)
_ABBREVIATIONS = frozenset(
    """mr mrs ms dr st jr sr no vs lt col gen prof rev capt sgt maj hon inc ltd co bros mt ft vol ed op cf ca c b d
    feat""".split()
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]{2,})?")
_SENTENCE_END = re.compile(r"([.!?])[\"'’”)]*\s+(?=[\"“'(]*[^\W\d_a-z]|[\"“'(]*\d)")
_QUALIFIER = re.compile(r"\s*\(([^()]*)\)\s*$")
_BREAKS = frozenset(',;:()"“”/–—')
_FOLDS = str.maketrans({"ł": "l", "ø": "o", "ı": "i", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe", "’": "'"})


class Token(NamedTuple):
    """A word of a sentence. `folded` is its comparable form; `breaks` tells that punctuation stands before it."""

    text: str
    folded: str
    breaks: bool

    @property
    def capital(self) -> bool:
        """Whether the word can begin or continue a name: an upper-case letter or a digit comes first."""
        return self.text[0].isupper() or self.text[0].isdigit()


@lru_cache(maxsize=1 << 18)
def fold(word: str) -> str:
    """Lower-case `word` and strip its accents, so that "Björk" and "bjork" compare equal; the result has no spaces."""
    if word.isascii():
        return word.lower()
    letters = (c for c in unicodedata.normalize("NFKD", word.lower()) if not unicodedata.combining(c))
    return "".join("".join(letters).lower().translate(_FOLDS).split()) or word


@lru_cache(maxsize=1 << 18)
def _token(word: str, breaks: bool) -> Token:
    """A shared token for all occurrences of a word, since large corpora have too many for one each."""
    return Token(word, fold(word), breaks)


def tokens(sentence: str) -> list[Token]:
    """The words of a sentence in order. A possessive 's is no token: "Wood's" is "Wood", "O'Neal" stays whole."""
    words: list[Token] = []
    end = 0
    if not sentence.isascii():  # an accent that is a character of its own would end the word
        sentence = unicodedata.normalize("NFC", sentence)
    for match in _WORD.finditer(sentence):
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
        return _WORD.findall(text.lower())
    return [fold(word) for word in _WORD.findall(unicodedata.normalize("NFC", text))]


def sentences(text: str) -> list[str]:
    """Split text at sentence ends, never after an initial or an abbreviation ("J. R. Smith", "St. Louis")."""
    parts: list[str] = []
    begin = 0
    for match in _SENTENCE_END.finditer(text):
        if match.group(1) == "." and _abbreviated(text, begin, match.start()):
            continue
        parts.append(text[begin : match.end()].strip())
        begin = match.end()
    rest = text[begin:].strip()
    return [*parts, rest] if rest else parts


def shortened(text: str, most: int) -> str:
    """A text on one line, of at most `most` characters; a longer one is cut between words and ends in "..."."""
    whole = " ".join(text.split())
    if len(whole) <= most:
        return whole
    return (whole[: most - 2].rpartition(" ")[0] or whole[: most - 3]) + "..."


def _abbreviated(text: str, begin: int, dot: int) -> bool:
    start = dot
    while start > begin and (text[start - 1].isalnum() or text[start - 1] == "."):
        start -= 1
    word = text[start:dot]
    return (len(word) == 1 and word.isupper()) or "." in word or word.lower() in _ABBREVIATIONS


def name_key(name: str) -> tuple[str, ...]:
    """A name's comparable form: its folded words. `name_key("Ed Wood")` is `("ed", "wood")`."""
    return tuple(token.folded for token in tokens(name))


def split_qualifier(title: str) -> tuple[str, str]:
    """A title and its parenthesised qualifier: "Ed Wood (film)" gives ("Ed Wood", "film")."""
    match = _QUALIFIER.search(title)
    return (title[: match.start()], match.group(1)) if match and match.start() else (title, "")


def _content(folded: str) -> bool:
    return len(folded) > 1 and folded not in STOP_WORDS


class Tagger:
    """Picks the salient stems of a text, by which edges and questions are compared (document 3's tags).

    Salience is the inverse document frequency ln(1 + N/df) of a stem among the texts the tagger was fitted on; a stem
    never seen counts as df = 1. Stop words and single letters are no tags.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        import Stemmer

        self._stemmer = Stemmer.Stemmer("english")
        self._frequency: Counter[str] = Counter()
        self._texts = 0
        self._stem_of: dict[str, str] = {}  # a corpus repeats its words
        for text in texts:
            self._frequency.update(set(self.stem_words(set(folded_words(text)))))
            self._texts += 1

    def save(self, file: Path) -> None:
        """Write what the tagger was fitted on."""
        fitted = {"texts": self._texts, "frequency": self._frequency}
        file.write_text(json.dumps(fitted, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> Self:
        """The tagger that was saved."""
        fitted = json.loads(file.read_text(encoding="utf-8"))
        tagger = cls()
        tagger._texts, tagger._frequency = fitted["texts"], Counter(fitted["frequency"])
        return tagger

    def stems(self, text: str) -> list[str]:
        """The stems of a text's content words, in order, with repetitions."""
        return self.stem_words(folded_words(text))

    def stem_words(self, folded: Iterable[str]) -> list[str]:
        """The stems of words that are folded already."""
        words = [word for word in folded if _content(word)]
        known = self._stem_of
        new = [word for word in words if word not in known]
        if new:
            known.update(zip(new, self._stemmer.stemWords(new), strict=True))
        return [known[word] for word in words]

    def idf(self, stem: str) -> float:
        """ln(1 + N/df), 0 for an unfitted tagger."""
        return math.log1p(self._texts / max(self._frequency[stem], 1))

    def top(self, stems: Sequence[str], limit: int = 8) -> list[str]:
        """The `limit` most salient distinct stems, sorted; ties go to the alphabetically first."""
        distinct = set(stems)
        if len(distinct) > limit:
            distinct = set(sorted(distinct, key=lambda stem: (-self.idf(stem), stem))[:limit])
        return sorted(distinct)

    def tags(self, text: str, limit: int = 8) -> list[str]:
        """The most salient stems of a text."""
        return self.top(self.stems(text), limit)
