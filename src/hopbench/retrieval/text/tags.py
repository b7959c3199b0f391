"""The salient stems of texts, by which edges and questions are compared."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from hopbench.retrieval.text.languages import ENGLISH, Language
from hopbench.retrieval.text.words import folded_words, units


class Tagger:
    """Picks the salient stems of a text, by which edges and questions are compared (document 3's tags).

    Salience is the inverse document frequency ln(1 + N/df) of a stem among the texts the tagger was fitted on; a stem
    never seen counts as df = 1. Stop words and single letters are no tags. Stems and stop words are those of the
    language; scripts without spaces give pairs of characters.
    """

    def __init__(self, texts: Iterable[str] = (), language: Language = ENGLISH) -> None:
        import Stemmer

        self.language = language
        self._stemmer = Stemmer.Stemmer(language.stemmer) if language.stemmer else None
        self._frequency: Counter[str] = Counter()
        self._texts = 0
        self._stem_of: dict[str, str] = {}  # a corpus repeats its words
        for text in texts:
            self._frequency.update(set(self.stem_words(set(folded_words(text)))))
            self._texts += 1

    def save(self, file: Path) -> None:
        """Write what the tagger was fitted on."""
        fitted = {"texts": self._texts, "frequency": self._frequency, "language": self.language.code}
        file.write_text(json.dumps(fitted, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> Self:
        """The tagger that was saved."""
        fitted = json.loads(file.read_text(encoding="utf-8"))
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
