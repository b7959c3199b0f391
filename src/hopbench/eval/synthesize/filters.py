"""Leaves out questions that one passage answers, and evidence that stands in the corpus twice."""

from __future__ import annotations

from hopbench.eval.synthesize.draft import Draft
from hopbench.eval.synthesize.evidence import Evidence
from hopbench.eval.synthesize.hardness import Searched
from hopbench.retrieval.index.memo import Memo
from hopbench.retrieval.text import STOP_WORDS, folded_words

TWIN_COSINE = 0.9  # of two chunks that may say the same
TWIN_WORDS = 0.8  # Jaccard of the words of two chunks from which on they do
ANSWERED = 0.8  # share of a question's words that a passage with the answer must have to answer it alone


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
        return self._twin.get(chunk, lambda: self._looked_up(chunk))

    def _looked_up(self, chunk: int) -> bool:
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
