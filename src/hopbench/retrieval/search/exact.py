"""The two searches every strategy starts from: BM25 and exact cosine, each with a total order."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.candidates import Candidates, Indices, blocks, kth_at_least, set_cells, top_columns
from hopbench.retrieval.support.arrays import Lists, expand_ranges, rows_of
from hopbench.retrieval.text import ENGLISH, Language, mostly_unspaced, search_words

DEPTH = 100
QUESTION_BATCH = 1024  # questions that pass over the vectors together
MAX_PRODUCTS, MIN_ROWS = 1 << 21, 4096  # held at a time: 8 MB, and of at least so many vectors
SAMPLE = 1000  # rows: the standard error of a recall of 0.97 is about 0.002
COSINE_DECIMALS = 6
SIZE = "size"  # the file beside a saved BM25 index
_TOKEN = re.compile(r"\b\w\w+\b")


@dataclass(frozen=True, slots=True)
class TopRows:
    """The best rows of a matrix (such as chunks of an index) for one question, best first, ties by row."""

    rows: NDArray[np.intp]
    scores: NDArray[np.float64]


class LexicalIndex:
    """BM25 over title and text by bm25s: Lucene's variant, k1 1.5, b 0.75, the language's stop words, no stemmer.

    Scripts without spaces are searched by overlapping pairs of characters.
    """

    def __init__(self, contents: Sequence[str], language: Language = ENGLISH) -> None:
        import bm25s

        self._language, self._size = language, len(contents)
        tokens = [self._tokens(content) for content in contents]
        self._index: Any = bm25s.BM25(method="lucene", k1=1.5, b=0.75) if any(tokens) else None
        if self._index is not None:
            self._index.index(tokens, show_progress=False)

    def save(self, folder: Path) -> None:
        """Write the index into an empty folder."""
        (folder / SIZE).write_text(str(self._size), encoding="ascii")
        if self._index is not None:
            self._index.save(folder, show_progress=False)

    @classmethod
    def load(cls, folder: Path, language: Language = ENGLISH) -> Self:
        """The index that was saved, memory-mapped: processes that load the same one share its pages."""
        import bm25s

        found = cls((), language)
        found._size = int((folder / SIZE).read_text(encoding="ascii"))
        if any(folder.glob("*.npy")):
            found._index = bm25s.BM25.load(folder, mmap=True, show_progress=False)
            # Plain arrays over the same maps: each slice of an np.memmap takes as long as ten of theirs.
            found._index.scores = {name: np.asarray(part) for name, part in found._index.scores.items()}
        return found

    def _tokens(self, text: str) -> list[str]:
        return search_tokens(text, self._language)

    def top(self, questions: Sequence[str], depth: int = DEPTH) -> list[TopRows]:
        """Each question's best chunks with a positive score."""
        return [best_positive(self.scores(question), depth) for question in questions]

    def scores(self, question: str) -> NDArray[np.float64]:
        """BM25 of every chunk for one question, shape (n,)."""
        if not (known := self._known(question)):
            return np.zeros(self._size)
        return np.asarray(np.round(self._index.get_scores(known), COSINE_DECIMALS), np.float64)

    def scorer(self, question: str) -> Callable[[NDArray[np.integer[Any]]], NDArray[np.float64]]:
        """`scores` of any chunks, (k,), from their places in the tokens' postings: no array of all chunks is made."""
        known = self._known(question)
        index = self._index.scores if known else {}
        tokens = self._index.get_tokens_ids(known) if known else ()
        postings = [tuple(index["indptr"][token : token + 2].tolist()) for token in tokens]

        def scores_of(rows: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
            scores, places = np.zeros(len(rows), np.float32), np.empty((len(postings), len(rows)), np.int64)
            if not postings:
                return scores.astype(np.float64)
            wanted = rows.astype(index["indices"].dtype)  # of another type, searchsorted would copy all postings
            for place, (begin, end) in zip(places, postings, strict=True):
                np.add(index["indices"][begin : end - 1].searchsorted(wanted), begin, out=place)  # the last if beyond
            for of_token in np.where(index["indices"][places] == wanted, index["data"][places], np.float32(0.0)):
                scores += of_token  # float32 sums in the order of `get_scores`
            return np.asarray(np.round(scores, COSINE_DECIMALS), np.float64)

        return scores_of

    def sharing(self, texts: Sequence[str], most: int) -> Lists:
        """For each text the chunks that have one of its tokens which at most `most` chunks have."""
        if self._index is None:
            return Lists.of([np.zeros(0, np.intp)] * len(texts))
        index, vocabulary = self._index.scores, self._index.vocab_dict
        known = [[vocabulary[token] for token in self._known(text)] for text in texts]
        tokens = np.array([token for each in known for token in each], np.int64)
        begins, ends = index["indptr"][tokens], index["indptr"][tokens + 1]
        ends = np.where(ends - begins <= most, ends, begins)
        places, _ = expand_ranges(begins, ends)
        before, of_text = np.concatenate([[0], np.cumsum(ends - begins)]), np.cumsum([0, *map(len, known)])
        return Lists(index["indices"][places].astype(np.intp), before[of_text])

    def _known(self, question: str) -> list[str]:
        vocabulary = self._index.vocab_dict if self._index is not None else {}
        return [token for token in self._tokens(question) if token in vocabulary]


def search_tokens(text: str, language: Language) -> list[str]:
    """The tokens of `bm25s.tokenize` for English, of other scripts those of `search_words`; without stop words."""
    if text.isascii() or (language.english and not mostly_unspaced(text)):
        words = _TOKEN.findall(unicodedata.normalize("NFC", text).lower())
    else:
        words = search_words(text)
    stop = language.search_stop
    return [token for token in words if token not in stop]


def best_positive(scores: NDArray[np.float64], depth: int) -> TopRows:
    """The best rows of (n,) scores, of the positive ones."""
    (rows,) = best_rows(scores[None, :], depth)
    rows = rows[scores[rows] > 0]
    return TopRows(rows, scores[rows])


def dense_top(questions: NDArray[np.float32], chunks: NDArray[np.float32], depth: int = DEPTH) -> list[TopRows]:
    """The best chunks by cosine for (q, d) question vectors against (n, d) chunk vectors: unit vectors on the grid.

    The float32 product only preselects: its last digits depend on the processor and on which questions share a batch.
    What may be among the best is scored again by `cosines`. Products are made for a block of chunks after the other, so
    that they stay within the cache.
    """
    depth = min(depth, len(chunks))
    if not depth:
        return [TopRows(np.zeros(0, np.intp), np.zeros(0)) for _ in questions]
    tops: list[TopRows] = []
    for block in (questions[part] for part in blocks(len(questions), QUESTION_BATCH)):
        found = Candidates(chunks, depth, -np.inf, block)
        size = min(max(MAX_PRODUCTS // len(block), MIN_ROWS), len(chunks))
        memory = np.empty(len(block) * size, np.float32)  # fresh memory for each block takes as long as its product
        for part in blocks(len(chunks), size):
            products = memory[: len(block) * (part.stop - part.start)].reshape(len(block), -1)
            np.matmul(block, chunks[part].T, out=products)
            if part.start == 0:
                found.raise_least(slice(None), kth_at_least(products, depth)[:, 0])
            asking, rows = set_cells(products >= found.least[:, None])
            found.offer(asking, rows + part.start, products[asking, rows])
        asking, rows = found.remaining()
        candidates = np.split(rows, np.searchsorted(asking, np.arange(1, len(block))))
        tops += [best_of(chunks, *pair, depth) for pair in zip(candidates, block, strict=True)]
    return tops


def best_of(chunks: NDArray[np.float32], rows: NDArray[np.intp], question: NDArray[np.float32], depth: int) -> TopRows:
    """The best `depth` of some rows of (n, d) chunk vectors for a question's vector (d,)."""
    exact = cosines(chunks, rows, question)
    order = np.lexsort((rows, -exact))[:depth]
    return TopRows(rows[order], exact[order])


def cosines(chunks: NDArray[np.float32], rows: Sequence[int] | NDArray[np.intp], question: Any) -> NDArray[np.float64]:
    """Cosines of some rows of (n, d) chunk vectors with a question's vector (d,), whatever else is in the batch.

    Of vectors on the grid the product is exact (`arithmetic`), so they are the same on every processor.
    """
    exact = rows_of(chunks, rows).astype(np.float64) @ question.astype(np.float64)
    return np.asarray(exact.round(COSINE_DECIMALS), np.float64)


def best_rows(scores: NDArray[np.floating[Any]], depth: int) -> list[NDArray[np.intp]]:
    """Column indices of each row's `depth` best values of a (q, n) matrix, best first, ties to the lower index."""
    rows, columns = top_columns(scores, depth)
    return np.split(columns, np.searchsorted(rows, np.arange(1, len(scores))))


def true_neighbours(vectors: NDArray[np.float32], top_k: int, floor: float, sample: int) -> tuple[Indices, Indices]:
    """The `top_k` nearest rows of each of `SAMPLE` rows at equal distances: (row, neighbour), exactly.

    Samples 0 and 1 have no row in common, or are all rows, of a corpus too small for both.
    """
    step = len(vectors) // SAMPLE
    rows = np.arange(sample * (step // 2), len(vectors), step)[:SAMPLE] if step > 1 else np.arange(len(vectors))
    found, near = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
    for row, top in zip(rows, dense_top(vectors[rows], vectors, top_k + 1), strict=True):
        nearest = top.rows[(top.rows != row) & (top.scores >= floor)][:top_k]
        found.append(np.full(len(nearest), row))
        near.append(nearest)
    return np.concatenate(found), np.concatenate(near)
