"""The difficulty of questions: how often BM25 and vector search find their evidence, and which ones are left out.

Wordings are chosen so that both searches find the evidence about as rarely as on real questions. Questions that one
passage answers are dropped, and so is evidence that the corpus holds twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hopbench.eval.synthesize._drafts import Draft
from hopbench.eval.synthesize._evidence import Evidence
from hopbench.eval.synthesize._wording import Wording
from hopbench.eval.trials.trial import batches
from hopbench.retrieval.index import Index
from hopbench.retrieval.index.cache import Memo
from hopbench.retrieval.search.exact import TopRows
from hopbench.retrieval.text import STOP_WORDS, folded_words
from hopbench.retrieval.types import Question

DEPTH = 10  # of all_gold@10


NONE, SOME, ALL = 0, 1, 2
# Measured on the real questions of the tuning sets (docs/synthesize.md), whose types agree in this but for the share of
# two-hop questions of which BM25 finds both passages: .14 where there is little to quote, .34 and .67 where there is
# more. Fewer are found here: what every search finds tells labels apart the least.
MIN_FOUND, MAX_FOUND = 0.05, 0.50
TWIN_COSINE = 0.9  # of two chunks that may say the same
TWIN_WORDS = 0.8  # Jaccard of the words of two chunks from which on they do
ANSWERED = 0.8  # share of a question's words that a passage with the answer must have to answer it alone


class Found(NamedTuple):
    """How much of a question's evidence each of the two searches has in its first ten: NONE, SOME or ALL."""

    bm25: int
    vector: int


class Searched(NamedTuple):
    """A wording, which search finds its evidence, and BM25's first ten chunks."""

    wording: Wording
    found: Found
    nearest: tuple[int, ...]


Target = Mapping[Found, float]

IF_FOUND: Target = {Found(ALL, ALL): 0.68, Found(ALL, SOME): 0.30, Found(ALL, NONE): 0.02}
IF_NOT: Target = {
    Found(SOME, ALL): 0.12,
    Found(SOME, SOME): 0.72,
    Found(SOME, NONE): 0.13,
    Found(NONE, SOME): 0.02,
    Found(NONE, NONE): 0.01,
}
CHAIN: Target = {Found(ALL, SOME): 0.05, Found(SOME, SOME): 0.70, Found(SOME, NONE): 0.20, Found(NONE, SOME): 0.05}
COMPARISON: Target = {Found(ALL, ALL): 0.72, Found(ALL, SOME): 0.21, Found(SOME, ALL): 0.03, Found(SOME, SOME): 0.04}
BRIDGE_COMPARISON: Target = {Found(ALL, SOME): 0.02, Found(SOME, SOME): 0.85, Found(SOME, NONE): 0.13}


def targets(room: float) -> Mapping[str, Target]:
    """Compute type → how often each search should find how much of the evidence; see `Evidence.room`."""
    found = MIN_FOUND + room * (MAX_FOUND - MIN_FOUND)
    both = {cell: share * found for cell, share in IF_FOUND.items()}
    not_both = {cell: share * (1 - found) for cell, share in IF_NOT.items()}
    two_hops = {**both, **not_both}
    return {
        "bridge": two_hops,
        "compositional": CHAIN,
        "intersection": two_hops,
        "comparison": COMPARISON,
        "bridge-comparison": BRIDGE_COMPARISON,
    }


def searched(index: Index, wordings: Sequence[Wording]) -> list[Searched]:
    """Search for each wording by BM25 and by vectors, equal texts once."""
    texts = list(dict.fromkeys(wording.text for wording in wordings))
    tops: dict[str, tuple[TopRows, TopRows]] = {}
    for batch in batches(index, [Question(str(number), text) for number, text in enumerate(texts)]):
        for question, lexical, dense in zip(batch.questions, batch.lexical, batch.dense, strict=True):
            tops[question.text] = lexical, dense
    return [_searched(wording, *tops[wording.text]) for wording in wordings]


def _searched(wording: Wording, lexical: TopRows, dense: TopRows) -> Searched:
    found = Found(_level(lexical, wording), _level(dense, wording))
    return Searched(wording, found, tuple(map(int, lexical.rows[:DEPTH])))


def _level(top: TopRows, wording: Wording) -> int:
    gold = set(wording.draft.gold)
    found = len(gold & set(map(int, top.rows[:DEPTH])))
    return ALL if found == len(gold) else SOME if found else NONE


class Quota:
    """How many questions of a type are still wanted, by which search finds their evidence."""

    def __init__(self, target: Target, count: int) -> None:
        self._target, self._count = target, count
        self._taken: Counter[Found] = Counter()

    @property
    def missing(self) -> int:
        """How many questions are still wanted."""
        return self._count - self._taken.total()

    def lack(self, found: Found) -> float:
        """Compute how far questions found like this are below their share."""
        return self._target.get(found, 0.0) * self._count - self._taken[found]

    def best(self, wordings: Sequence[Searched], least: float) -> Searched | None:
        """Choose the wording of the cell that lacks most, if it lacks more than `least`."""
        chosen = max(wordings, key=lambda each: self.lack(each.found), default=None)
        return chosen if chosen is not None and self.lack(chosen.found) > least else None

    def take(self, found: Found) -> None:
        """Count a question."""
        self._taken[found] += 1


class Filters:
    """Judges drafts and wordings over one corpus."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._words = Memo(4096)
        self._twin = Memo(1 << 16)

    def words(self, chunk: int) -> frozenset[str]:
        """The words of a chunk."""
        return self._words.get(chunk, lambda: frozenset(folded_words(self._evidence.chunks[chunk].content)))

    def twofold(self, draft: Draft) -> bool:
        """Whether another passage says nearly the same as one of the draft's: then that one would be evidence too."""
        return any(self._has_twin(chunk) for chunk in draft.gold)

    def _has_twin(self, chunk: int) -> bool:
        return self._twin.get(chunk, lambda: self._find_twin(chunk))

    def _find_twin(self, chunk: int) -> bool:
        similar = self._evidence.corpus.graph.similar
        row = slice(similar.indptr[chunk], similar.indptr[chunk + 1])
        near = similar.indices[row][similar.data[row] >= TWIN_COSINE]
        own = self.words(chunk)
        others = (self.words(other) for other in map(int, near) if not self._evidence.same_passage([chunk, other]))
        return any(len(own & words) >= TWIN_WORDS * len(own | words) for words in others)

    def answered_by_one(self, searched: Searched) -> bool:
        """Whether one passage, of the evidence or of BM25's first ten, has the answer and what the question says.

        Of two things compared, a passage that names both with all that is said of them would do.
        """
        said = frozenset(folded_words(searched.wording.text)) - STOP_WORDS
        vocabulary = self._evidence.corpus.words.vocabulary
        weight = {word: self._evidence.idf(word) for word in sorted(said) if word in vocabulary}
        needed = ANSWERED * sum(weight.values())
        answer = frozenset(folded_words(searched.wording.draft.answer))  # empty for comparisons
        for chunk in {*searched.wording.draft.gold, *searched.nearest}:
            words = self.words(chunk)
            if answer <= words and sum(value for word, value in weight.items() if word in words) >= needed:
                return True
        return False
