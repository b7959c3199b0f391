"""Languages of a corpus: detection, stop words, stemmers, search, and the salient stems by which texts are compared."""

from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.text.words import fold, folded_words, units

STOP_WORDS = frozenset(
    """a an the and or but if of to in on at by for with from as is are was were be been being am do does did done has
    have had having he it she its they them his her their him this that these those there here who whom whose which what
    when where why how i you we us our your me my not no nor so than then too very can could will would shall should may
    might must also into about over under between during after before above below out off up down again further once
    more most other some such only own same both each few all any s t d ll m o re ve y""".split()
)
_EN, UNKNOWN, MIXED = "en", "und", "mul"  # the last two as in ISO 639-2
NAMES: Mapping[str, str] = dict(
    pair.split(":")
    for pair in """en:English af:Afrikaans am:Amharic ar:Arabic az:Azerbaijani be:Belarusian bg:Bulgarian bn:Bengali
    bo:Tibetan ca:Catalan cs:Czech cy:Welsh da:Danish de:German el:Greek eo:Esperanto es:Spanish et:Estonian eu:Basque
    fa:Persian fi:Finnish fr:French ga:Irish gl:Galician gu:Gujarati he:Hebrew hi:Hindi hr:Croatian hu:Hungarian
    hy:Armenian id:Indonesian is:Icelandic it:Italian ja:Japanese ka:Georgian kk:Kazakh km:Khmer kn:Kannada ko:Korean
    lo:Lao lt:Lithuanian lv:Latvian mk:Macedonian ml:Malayalam mn:Mongolian mr:Marathi ms:Malay my:Burmese ne:Nepali
    nl:Dutch no:Norwegian or:Odia pa:Punjabi pl:Polish pt:Portuguese ro:Romanian ru:Russian si:Sinhala sk:Slovak
    sl:Slovenian sq:Albanian sr:Serbian sv:Swedish sw:Swahili ta:Tamil te:Telugu th:Thai tl:Tagalog tr:Turkish
    uk:Ukrainian ur:Urdu vi:Vietnamese zh:Chinese und:unknown mul:mixed""".split()
)
_LIKE_ENGLISH = (_EN, UNKNOWN, MIXED)
_ENGLISH_EMBEDDERS = ("wordllama", "minilm")
# What the embedder `multilingual` knows beside English; of mixed texts most.
_MULTILINGUAL = frozenset("ar de es fr it ja ko nl pl pt ru th tr zh mul".split())
_PAIRED = frozenset(("ja", "zh", "th", "lo", "km", "my", "bo"))  # their stop words and stems would be of words
_SCRIPTS: Mapping[str, str] = dict(
    pair.split(":")
    for pair in """HANGUL:ko THAI:th LAO:lo KHMER:km MYANMAR:my HEBREW:he GREEK:el ARMENIAN:hy GEORGIAN:ka TAMIL:ta
    TELUGU:te BENGALI:bn GUJARATI:gu GURMUKHI:pa MALAYALAM:ml KANNADA:kn SINHALA:si ETHIOPIC:am ORIYA:or
    TIBETAN:bo""".split()
)
_ALIKE = tuple(map(frozenset, ("no nb nn da", "hr bs sr", "id ms", "hi mr ne", "ja zh", "pt gl", "en pcm", "ru be uk")))
_KANA = ("HIRAGANA", "KATAKANA")
_WEIGHT = 3  # letters of an alphabet that a character of a word stands for

SAMPLE, CHARACTERS = 200, 600  # texts read, and of each so many characters
MIN_LETTERS = 120  # fewer letters of an alphabet do not tell the language
ENGLISH_SHARE = 0.25  # of stop words in a text: 0.3 to 0.5 in English, at most 0.15 in its relatives
TAGGER = "tagger.json"
MIN_SHARE = 0.8  # share of the texts that a corpus's language has


@dataclass(frozen=True)
class Language:
    """A corpus's language by its ISO 639 code; `und` and `mul` (unknown, mixed) are read as English is."""

    code: str = _EN

    def __post_init__(self) -> None:
        if self.code not in NAMES:
            raise ParameterError(f"language {self.code!r} is unknown; known: {', '.join(sorted(NAMES))}")

    @property
    def english(self) -> bool:
        """Whether it is English, in which all is read as before other languages were."""
        return self.code == _EN

    @property
    def name(self) -> str:
        """Its English name."""
        return NAMES[self.code]

    @property
    def spaced(self) -> bool:
        """Whether spaces stand between its words."""
        return self.code not in _PAIRED

    @property
    def capital_nouns(self) -> bool:
        """Whether all nouns have capitals, so that a capital makes no name."""
        return self.code == "de"

    @cached_property
    def stop(self) -> frozenset[str]:
        """Its stop words, folded; empty where no list is known."""
        return STOP_WORDS if self.code in _LIKE_ENGLISH else frozenset(map(fold, self._listed))

    @cached_property
    def search_stop(self) -> frozenset[str]:
        """The stop words of BM25, in lower case."""
        if self.code in _LIKE_ENGLISH:
            from bm25s.stopwords import STOPWORDS_EN

            return frozenset(STOPWORDS_EN)
        return frozenset(word.casefold() for word in self._listed)

    @cached_property
    def stemmer(self) -> str:
        """Its Snowball stemmer; "" where there is none."""
        import Stemmer

        name = "english" if self.code in _LIKE_ENGLISH else self.name.lower()
        return name if self.spaced and name in Stemmer.algorithms() else ""

    def meaning(self, embedder: str = "wordllama") -> str:
        """What the language means for search, rules and tags, and for the embedder of this name, by default ours."""
        if not self.spaced:
            words = "searched by pairs of characters, without stop words and stems"
        else:
            own = "English" if self.code in _LIKE_ENGLISH else "its"
            stop = f"{own} stop words" if self.stop else "no list of stop words"
            words = f"{stop}, {f'{own} stems' if self.stemmer else 'no stemmer'}"
        model = embedder.partition(":")[0]
        if model in _ENGLISH_EMBEDDERS and self.code in _MULTILINGUAL:
            take = "--embedder multilingual (pip install 'hopbench[multilingual]')"
            words += f"; {model} knows English alone: take {take}"
        elif model in (*_ENGLISH_EMBEDDERS, "multilingual") and self.code not in {_EN, UNKNOWN, *_MULTILINGUAL}:
            take = "--embedder fastembed:intfloat/multilingual-e5-large or openai:MODEL"
            words += f"; {model} does not know {self.name}: take {take}"
        return words

    @property
    def _listed(self) -> Iterable[str]:
        from stop_words import LANGUAGE_MAPPING, get_stop_words

        return get_stop_words(self.code) if self.code in LANGUAGE_MAPPING and self.spaced else ()


ENGLISH = Language()


def sampled(texts: int) -> range:
    """The rows of those among so many texts by which their language is told, evenly from the first to the last."""
    return range(0, texts, max(-(-texts // SAMPLE), 1))


def detect(texts: Iterable[str]) -> Language:
    """The language of most texts, by their script, by English stop words, else by py3langid.

    `mul` where fewer than 80% of the texts have the same, `und` where they are too short to tell.
    """
    votes: Counter[str] = Counter()
    undecided: list[tuple[str, int]] = []
    long_enough: set[str] = set()
    waiting: dict[str, list[str]] = {}  # texts of an alphabet, until they are long enough together
    for text in (text[:CHARACTERS] for text in texts):
        script, letters = _script(text)
        if script in NAMES:
            votes[script] += 1
        elif letters:
            joined = waiting.setdefault(script, [])
            joined.append(text)
            if sum(character.isalpha() for one in joined for character in one) >= MIN_LETTERS:
                long_enough.add(script)
                undecided.append((" ".join(waiting.pop(script)), len(joined)))
    votes[UNKNOWN] += sum(len(joined) for script, joined in waiting.items() if script not in long_enough)
    rest = []
    for text, count in undecided:
        words = folded_words(text)
        if sum(word in STOP_WORDS for word in words) >= ENGLISH_SHARE * len(words):
            votes[_EN] += count
        else:
            rest.append((text, count))
    if rest and votes[_EN] < MIN_SHARE * (votes.total() + sum(count for _, count in rest)):
        import py3langid  # whose model takes half a second: only where it matters

        for text, count in rest:
            votes[str(py3langid.classify(text)[0])] += count
    merged: Counter[str] = Counter()  # votes of languages alike counted together
    for code, count in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0])):
        alike = next((group for group in _ALIKE if code in group), frozenset({code}))
        merged[next((known for known in merged if known in alike), code)] += count
    if not merged.total():
        return Language(UNKNOWN)
    (first, count), total = merged.most_common(1)[0], merged.total()
    if first in {"nb", "nn"}:
        first = "no"
    return Language((first if first in NAMES else UNKNOWN) if count >= MIN_SHARE * total else MIXED)


def _script(text: str) -> tuple[str, int]:
    """The script of most letters, or the language if only one is written in it; and how many letters there are."""
    if text.isascii():
        return "LATIN", sum(map(str.isalpha, text))
    scripts: Counter[str] = Counter()
    for letter, count in Counter(filter(str.isalpha, text)).items():
        scripts[_script_of(letter)] += count
    kana = sum(scripts.pop(name, 0) for name in _KANA)
    if kana or scripts["CJK"]:
        scripts["CJK"] = _WEIGHT * (scripts["CJK"] + kana)
    script = min(scripts, key=lambda name: (-scripts[name], name), default="")
    if script == "CJK":
        script = "ja" if _WEIGHT * kana * 20 >= scripts["CJK"] else "zh"
    return _SCRIPTS.get(script, script), scripts.total()


@lru_cache(maxsize=1 << 14)
def _script_of(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0].partition("-")[0]


class Tagger:
    """Picks the salient stems of a text, by which edges and questions are compared (spreading activation's tags).

    Salience is the inverse document frequency ln(1 + N/df) of a stem among the texts the tagger was fitted on; a stem
    never seen counts as df = 1. Stop words and single letters are no tags. Stems and stop words are those of the
    language; scripts without spaces give pairs of characters.
    """

    def __init__(self, texts: Iterable[str] = (), language: Language = ENGLISH) -> None:
        self.language = language
        self._frequency: Counter[str] = Counter()
        self._texts = 0
        self._stem_of: dict[str, str] = {}  # a corpus repeats its words
        for text in texts:
            self._frequency.update(set(self.stem_words(set(folded_words(text)))))
            self._texts += 1

    @cached_property
    def _stemmer(self) -> Any:
        import Stemmer

        return Stemmer.Stemmer(self.language.stemmer) if self.language.stemmer else None

    def __getstate__(self) -> dict[str, Any]:
        """Without the stemmer, which cannot be pickled."""
        return {name: value for name, value in vars(self).items() if name != "_stemmer"}

    def save(self, folder: Path) -> None:
        """Write what the tagger was fitted on into an empty folder."""
        fitted = {"texts": self._texts, "frequency": self._frequency, "language": self.language.code}
        (folder / TAGGER).write_text(json.dumps(fitted, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The tagger that was saved."""
        fitted = json.loads((folder / TAGGER).read_text(encoding="utf-8"))
        tagger = cls(language=Language(fitted["language"]))
        tagger._texts, tagger._frequency = fitted["texts"], Counter(fitted["frequency"])
        return tagger

    def stems(self, text: str) -> list[str]:
        """The stems of a text's content words, in order, with repetitions."""
        return self.stem_words(folded_words(text))

    def stem_words(self, folded: Iterable[str]) -> list[str]:
        """The stems of words that are folded already."""
        if not self.language.english:
            folded = (unit for word in folded for unit in units(word))
        stop = self.language.stop
        words = [word for word in folded if len(word) > 1 and word not in stop]
        known = self._stem_of
        new = [word for word in words if word not in known]
        if new:
            known.update(zip(new, self._stemmer.stemWords(new) if self._stemmer else new, strict=True))
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
