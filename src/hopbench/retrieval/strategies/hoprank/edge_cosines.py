"""Cosines of the targets of edges with their anchors, and with what these leave of the question."""

from __future__ import annotations

import numpy as np

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.search.exact import COSINE_DECIMALS
from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.edges import Edges
from hopbench.retrieval.strategies.hoprank.questions import parts_of
from hopbench.retrieval.strategies.hoprank.words import Floats

TINY = 1e-9
LEAST_LEFT = 1e-6  # of the squared length of a question, beside what an anchor says of it


def edge_cosines(candidates: Candidates, edges: Edges) -> tuple[Floats, Floats]:
    """Each target's cosine with what of the question its anchor leaves over, and with the anchor itself."""
    vectors, chunks, count = candidates.corpus.vectors, candidates.corpus.chunks, len(candidates.questions)
    (anchors, anchor), (targets, target) = edges.anchors, edges.targets
    starts, ends = (parts_of(keys // chunks, count) for keys in (anchors, targets))
    from_rows, into_rows = anchors % chunks, targets % chunks
    found = [
        _of_one_question(vectors.take(from_rows[of], axis=0), vectors.take(into_rows[to], axis=0), question)
        for of, to, question in zip(starts, ends, candidates.vectors, strict=True)
    ]
    # One matrix of anchors and targets after the other: where each edge's cell is.
    width = np.array([rows.stop - rows.start for rows in ends], np.int64)
    height = np.array([rows.stop - rows.start for rows in starts], np.int64)
    first = (width * height).cumsum() - width * height
    of = edges.anchor // chunks
    row, column = anchor - (height.cumsum() - height)[of], target - (width.cumsum() - width)[of]
    cell = first[of] + row * width[of] + column
    residual, alike = (np.concatenate([one.ravel() for one in values]) for values in zip(*found, strict=True))
    return residual[cell], alike[cell]


def _of_one_question(*vectors: Vectors) -> tuple[Floats, Floats]:
    """The same for the vectors of anchors (a, d), of targets (t, d), and of the question (d,): (a, t) both."""
    anchors, targets, question = (one.astype(np.float64) for one in vectors)
    # The products are exact (`arithmetic`), so what is left of the question is never made, but its cosines are:
    # (q − (a·q)a)·t = q·t − (a·q)(a·t), and its length is √(q·q − (a·q)²) for an anchor of length 1.
    of_anchor, of_target, alike = anchors @ question, targets @ question, anchors @ targets.T
    # An anchor that says the same as the question leaves nothing but the rounding of vectors.
    square = question @ question - of_anchor * of_anchor
    left = np.sqrt(np.where(square < LEAST_LEFT, np.inf, square)) + TINY  # as the weights were learned
    residual = (of_target - of_anchor[:, None] * alike) / left[:, None]
    return residual.round(COSINE_DECIMALS), alike.round(COSINE_DECIMALS)
