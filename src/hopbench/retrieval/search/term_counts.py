"""BM25 from counts of terms: stemmed words and parts of identifiers, with its parameters chosen when searching."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import regex
from numpy.typing import NDArray

from hopbench.retrieval.search.exact import COSINE_DECIMALS, DEPTH, TopRows, best_positive, search_tokens
from hopbench.retrieval.support.arithmetic import ln
from hopbench.retrieval.support.arrays import mapped_array
from hopbench.retrieval.text import ENGLISH, Language
from hopbench.retrieval.types import Chunk

VERSION = "term-counts-1"  # every change of what is found gives it another name
VOCABULARY, ARRAYS = "vocabulary.json", ("starts", "rows", "titles", "texts", "lengths")
_IDENTIFIER = regex.compile(r"[\p{L}\p{N}\p{M}]+(?:[._-]+[\p{L}\p{N}\p{M}]+)+")


class LexicalFields(NamedTuple):
    """How BM25 reads texts and weighs terms; the defaults are those of `LexicalIndex`."""

    stemmer: bool = False
    parts: bool = False
    k1: float = 1.5
    b: float = 0.75
    title_weight: float = 1.0


PLAIN = LexicalFields()


def analyser(language: Language, fields: LexicalFields) -> Callable[[str], list[str]]:
    """Read a text as BM25's terms: words, with `parts` those of identifiers too, with `stemmer` their Snowball stems.

    With `parts`, `flow_run.name` is `flow_run.name`, `flow`, `run` and `name`; without, `flow_run` and `name`.
    """
    import Stemmer

    stemmer = Stemmer.Stemmer(language.stemmer) if fields.stemmer and language.stemmer else None

    def terms(text: str) -> list[str]:
        found = search_tokens(text.replace("_", " ") if fields.parts else text, language)
        if fields.parts:
            found += [whole.casefold() for whole in _IDENTIFIER.findall(text)]
        return list(stemmer.stemWords(found)) if stemmer else found

    return terms


@dataclass(frozen=True, eq=False)
class TermCounts:
    """How often each term stands in the titles and texts of n chunks.

    The postings of term t are `starts[t]` to `starts[t + 1]` of `rows`, `titles` and `texts` (counts); `lengths` (n, 2)
    are numbers of terms in title and text.
    """

    terms: Callable[[str], list[str]]
    vocabulary: Mapping[str, int]
    arrays: Mapping[str, NDArray[Any]]

    @classmethod
    def fit(cls, chunks: Sequence[Chunk], language: Language = ENGLISH, fields: LexicalFields = PLAIN) -> Self:
        """Count the terms of all chunks."""
        from sklearn.feature_extraction.text import CountVectorizer

        terms, n = analyser(language, fields), len(chunks)
        counter = CountVectorizer(analyzer=terms, dtype=np.int64)
        try:
            counts = counter.fit_transform(chain((one.title for one in chunks), (one.text for one in chunks)))
        except ValueError:  # no term in any chunk
            nothing = dict.fromkeys(ARRAYS, np.zeros(0, np.int64))
            return cls(terms, {}, nothing | {"lengths": np.zeros((n, 2), np.int64)})
        titles, texts = counts[:n], counts[n:]
        both = (titles + texts * _TEXT).tocsc()  # one entry for a term of a chunk, with both counts
        both.sort_indices()
        in_text, in_title = np.divmod(both.data, _TEXT)
        lengths = np.stack([np.asarray(part.sum(axis=1)).ravel() for part in (titles, texts)], axis=1)
        of_each = (part.astype(np.int32) for part in (in_title, in_text))
        arrays = both.indptr.astype(np.int64), both.indices, *of_each, lengths
        vocabulary = {term: int(column) for term, column in counter.vocabulary_.items()}
        return cls(terms, vocabulary, dict(zip(ARRAYS, arrays, strict=True)))

    def save(self, folder: Path) -> None:
        """Write the counts into an empty folder."""
        (folder / VOCABULARY).write_text(json.dumps(self.vocabulary, ensure_ascii=False), encoding="utf-8")
        for name in ARRAYS:
            np.save(folder / f"{name}.npy", self.arrays[name])

    @classmethod
    def load(cls, folder: Path, language: Language, fields: LexicalFields) -> Self:
        """The counts that were saved, memory-mapped."""
        vocabulary = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
        arrays = {name: mapped_array(folder / f"{name}.npy") for name in ARRAYS}
        return cls(analyser(language, fields), vocabulary, arrays)

    def top(self, questions: Sequence[str], fields: LexicalFields, depth: int = DEPTH) -> list[TopRows]:
        """Each question's best chunks with a positive score."""
        norms = self._norms(fields)
        return [best_positive(self._scores(question, fields, norms), depth) for question in questions]

    def _norms(self, fields: LexicalFields) -> NDArray[np.float64]:
        """What a chunk's length adds to the count of a term: k1 · (1 − b + b · length / mean length), shape (n,)."""
        title, text = self.arrays["lengths"].T
        mean = (fields.title_weight * int(title.sum()) + int(text.sum())) / max(len(title), 1)
        lengths = (fields.title_weight * title + text) / (mean or 1.0)
        return np.asarray(fields.k1 * (1.0 - fields.b + fields.b * lengths), np.float64)

    def _scores(self, question: str, fields: LexicalFields, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Lucene's BM25 of every chunk: Σ ln(1 + (n − df + 0.5) / (df + 0.5)) · tf / (tf + norm), 6 decimals."""
        starts, rows, titles, texts = (self.arrays[name] for name in ARRAYS[:4])
        scores = np.zeros(len(norms))
        for term in self.terms(question):
            if (column := self.vocabulary.get(term)) is None:
                continue
            postings = slice(int(starts[column]), int(starts[column + 1]))
            counts = fields.title_weight * titles[postings] + texts[postings]
            there = counts > 0.0  # a title of weight 0 holds nothing
            having, counts = rows[postings][there], counts[there]
            rarity = ln(1.0 + (len(norms) - len(having) + 0.5) / (len(having) + 0.5))
            scores[having] += rarity * (counts / (counts + norms[having]))
        return scores.round(COSINE_DECIMALS)


_TEXT = 1 << 32  # holds a text's count above a title's in one number
