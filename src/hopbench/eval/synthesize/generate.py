"""Make questions from a corpus alone: drafts along its evidence, worded as hard as real ones, with provenance.

Wordings are chosen so that BM25 and vector search find the evidence about as rarely as on real questions. Questions
that one passage answers are dropped, and so is evidence that the corpus holds twice.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from hopbench.eval.synthesize._documentation import DocumentDrafts
from hopbench.eval.synthesize._drafts import Draft, Drafts, Told
from hopbench.eval.synthesize._evidence import Evidence
from hopbench.eval.synthesize._hyperlinks import Pages
from hopbench.eval.synthesize._wording import EASY_TO_HARD, NearWords, Phraser, Wording
from hopbench.eval.trials.trial import batches
from hopbench.retrieval.index import Index
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.text import STOP_WORDS, folded_words
from hopbench.retrieval.types import Passage, Question

TYPES = ("bridge", "compositional", "intersection", "comparison", "bridge-comparison")

CHAINS, INTERSECTIONS = 0.30, 0.12  # shares of what is no comparison
COMPARISONS, BRIDGE_COMPARISONS = 0.45, 0.15  # per share of chunks with a kind beyond `ONE_KIND`
MAX_USES = 4  # of one passage as evidence
MAX_SAID = 2  # questions about one sentence of documentation
ROUND = 200  # drafts of one batch of searches
ROUNDS = 8
MIN_DRAWS, DRAWS, HALF_DRAWS = 40, 4, 16  # for each draft; all of four passages are of one half once in eight
DEPTH = 10  # of all_gold@10
NONE, SOME, ALL = 0, 1, 2
# Measured on the real questions of the tuning sets (docs/synthesize.md), whose types agree in this but for the share of
# two-hop questions of which BM25 finds both passages: 0.14 where there is little to quote, 0.34 and 0.67 where there is
# more. Fewer are found here: what every search finds tells labels apart the least.
MIN_FOUND, MAX_FOUND = 0.05, 0.50
ANSWERED = 0.8  # share of a question's words that a passage with the answer must have to answer it alone
Found = tuple[int, int]
"""How much of a question's evidence BM25 and vector search have in their first ten: NONE, SOME or ALL."""


class Searched(NamedTuple):
    """A wording, which search finds its evidence, and BM25's first ten chunks."""

    wording: Wording
    found: Found
    nearest: tuple[int, ...]

    @property
    def hidden(self) -> bool:
        """Whether BM25 misses some of the evidence."""
        return self.found[0] < ALL


Target = Mapping[Found, float]

IF_FOUND: Target = {(ALL, ALL): 0.68, (ALL, SOME): 0.30, (ALL, NONE): 0.02}
IF_NOT: Target = {
    (SOME, ALL): 0.12,
    (SOME, SOME): 0.72,
    (SOME, NONE): 0.13,
    (NONE, SOME): 0.02,
    (NONE, NONE): 0.01,
}
CHAIN: Target = {(ALL, SOME): 0.05, (SOME, SOME): 0.70, (SOME, NONE): 0.20, (NONE, SOME): 0.05}
COMPARISON: Target = {(ALL, ALL): 0.72, (ALL, SOME): 0.21, (SOME, ALL): 0.03, (SOME, SOME): 0.04}
BRIDGE_COMPARISON: Target = {(ALL, SOME): 0.02, (SOME, SOME): 0.85, (SOME, NONE): 0.13}


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
    tops: dict[str, tuple[list[int], list[int]]] = {}
    for batch in batches(index, [Question(str(number), text) for number, text in enumerate(texts)]):
        for question, *pair in zip(batch.questions, batch.lexical, batch.dense, strict=True):
            bm25, vector = ([int(row) for row in top.rows[:DEPTH]] for top in pair)
            tops[question.text] = bm25, vector
    result = []
    for wording in wordings:
        bm25, vector = tops[wording.text]
        result.append(Searched(wording, (_level(bm25, wording), _level(vector, wording)), tuple(bm25)))
    return result


def _level(rows: Sequence[int], wording: Wording) -> int:
    gold = set(wording.draft.gold)
    found = len(gold.intersection(rows))
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

    def best(self, wordings: Sequence[Searched]) -> Searched | None:
        """Choose the wording of the cell that lacks most, if any lacks some."""
        chosen = max(wordings, key=lambda each: self.lack(each.found), default=None)
        return chosen if chosen is not None and self.lack(chosen.found) > 0 else None

    def take(self, found: Found) -> None:
        """Count a question."""
        self._taken[found] += 1


def answered_by_one(searched: Searched, evidence: Evidence) -> bool:
    """Whether one passage, of the evidence or of BM25's first ten, has the answer and what the question says."""
    said = frozenset(folded_words(searched.wording.text)) - STOP_WORDS
    vocabulary = evidence.corpus.words.vocabulary
    weight = {word: evidence.idf(word) for word in sorted(said) if word in vocabulary}
    needed = ANSWERED * sum(weight.values())
    answer = frozenset(folded_words(searched.wording.draft.answer))  # empty for comparisons
    for chunk in {*searched.wording.draft.gold, *searched.nearest}:
        words = evidence.content_words(chunk)
        if answer <= words and sum(value for word, value in weight.items() if word in words) >= needed:
            return True
    return False


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The recipe of a set of questions. `half` 0 or 1 uses one half of the passages as evidence."""

    questions: int = 300
    types: Sequence[str] = TYPES
    seed: int = 0
    half: int | None = None

    def __post_init__(self) -> None:
        """Refuse impossible recipes."""
        if self.questions < 1:
            raise InputError(f"--questions {self.questions}: at least 1 question is made")
        if not self.types:
            raise InputError(f"--types is empty: name some of {', '.join(TYPES)}")
        for name in self.types:
            if name not in TYPES:
                raise UnknownNameError("type of question", name, TYPES)

    def counts(self, possible: Sequence[str], alike: float) -> dict[str, int]:
        """Divide the questions among the possible types, largest remainders first.

        Comparisons are asked where most passages say of what kind a thing is (`Evidence.alike`).
        """
        comparisons, of_bridges = COMPARISONS * alike, BRIDGE_COMPARISONS * alike
        rest = 1 - comparisons - of_bridges
        every = {
            "bridge": rest * (1 - CHAINS - INTERSECTIONS),
            "compositional": rest * CHAINS,
            "intersection": rest * INTERSECTIONS,
            "comparison": comparisons,
            "bridge-comparison": of_bridges,
        }
        shares = {name: every[name] for name in possible}
        if not sum(shares.values()):
            shares = dict.fromkeys(possible, 1.0)
        exact = {name: self.questions * share / sum(shares.values()) for name, share in shares.items()}
        counts = {name: int(value) for name, value in exact.items()}
        rest_first = sorted(exact, key=lambda name: counts[name] - exact[name])
        for name in rest_first[: self.questions - sum(counts.values())]:
            counts[name] += 1
        return counts


class Making:
    """The state of one recipe."""

    def __init__(self, evidence: Evidence, pages: Pages, near: NearWords, recipe: Recipe) -> None:
        rng = Random(recipe.seed)
        self._evidence, self._recipe = evidence, recipe
        self._drawn = DocumentDrafts(evidence.index, pages, rng) if pages.linked else Drafts(evidence, rng)
        self._phraser = Phraser(evidence, near, rng)
        self._targets = targets(evidence.room)
        self.questions: list[Searched] = []
        self.dropped: Counter[str] = Counter()
        self._uses: Counter[int] = Counter()
        self._said: Counter[Told] = Counter()
        self._seen: set[tuple[str, frozenset[int]]] = set()
        self._texts: set[str] = set()

    def possible(self, types: Sequence[str]) -> list[str]:
        """List the types that the corpus yields a draft of."""
        return [name for name in dict.fromkeys(types) if self._drawn.draw(name) is not None]

    def fill(self, name: str, count: int) -> None:
        """Make questions of a type, round by round, nearest to the targets first."""
        quota = Quota(self._targets[name], count)
        spare: list[Searched] = []
        for _ in range(ROUNDS):
            if not quota.missing:
                return
            drafts = list(self._drafts(name, min(ROUND, 2 * quota.missing + 10)))
            if not drafts:
                break
            made = (self._phraser.wording(draft, dial) for draft in drafts for dial in EASY_TO_HARD)
            wordings = [wording for wording in made if wording is not None]
            groups: dict[int, list[Searched]] = {}
            for each in searched(self._evidence.index, wordings):
                groups.setdefault(id(each.wording.draft), []).append(each)
            for group in groups.values():
                usable = [each for each in group if not answered_by_one(each, self._evidence)]
                self.dropped["one passage answers it"] += not usable
                best = quota.best(usable)
                if best is not None and quota.missing:
                    self._take(best, quota)
                else:
                    spare += usable[-1:]
        for each in spare[: quota.missing]:
            self._take(each, quota)

    def _take(self, each: Searched, quota: Quota) -> None:
        draft = each.wording.draft
        gold, stated = draft.gold, draft.sentences[1:]
        used = any(self._uses[chunk] >= MAX_USES for chunk in gold) or any(
            self._said[one] >= MAX_SAID for one in stated
        )
        if each.wording.text in self._texts or used:
            self.dropped["its evidence was used often enough"] += 1
            return
        self._texts.add(each.wording.text)
        self._uses.update(gold)
        self._said.update(stated)
        quota.take(each.found)
        self.questions.append(each)

    def _drafts(self, name: str, count: int) -> Iterator[Draft]:
        for _ in range(MIN_DRAWS + count * (DRAWS if self._recipe.half is None else HALF_DRAWS)):
            if count == 0:
                return
            draft = self._drawn.draw(name)
            if draft is None:
                return
            path = name, frozenset(draft.gold)
            halves = {zlib.crc32(self._evidence.chunks[chunk].passage_id.encode()) % 2 for chunk in draft.gold}
            if path in self._seen or (self._recipe.half is not None and halves != {self._recipe.half}):
                continue
            if any(map(self._evidence.has_twin, draft.gold)):  # then that one would be evidence too
                self.dropped["its evidence stands in the corpus twice"] += 1
                continue
            self._seen.add(path)
            count -= 1
            yield draft


@dataclass(frozen=True)
class Made:
    """The questions, and how many drafts were dropped for which reason."""

    questions: Sequence[Searched]
    dropped: Mapping[str, int] = field(default_factory=dict)


class Generator:
    """Makes questions from the corpus of an index. Equal recipes give equal questions.

    Where its `passages` link to each other, as documentation does, hyperlinks are the evidence.
    """

    def __init__(self, index: Index, passages: Sequence[Passage] = ()) -> None:
        self.evidence = Evidence.of(index)
        self._pages = Pages(passages)
        self._near = NearWords(self.evidence.corpus.words)

    def make(self, recipe: Recipe, progress: Callable[[int, int], None] = lambda done, all_: None) -> Made:
        """Make the recipe's questions, or fewer; raise InputError where the corpus yields none."""
        making = Making(self.evidence, self._pages, self._near, recipe)
        possible = making.possible(recipe.types)
        if not possible:
            if others := making.possible(TYPES):
                raise InputError(
                    f"--types {','.join(recipe.types)}: this corpus yields none of these: name some of "
                    f"{', '.join(others)}"
                )
            raise InputError(self._nothing_links())
        for name, count in recipe.counts(possible, self.evidence.alike).items():
            making.fill(name, count)
            progress(len(making.questions), recipe.questions)
        if not making.questions:
            reasons = ", ".join(f"{reason} ({count:,})" for reason, count in making.dropped.items() if count)
            raise InputError(
                "names join passages of this corpus, yet no question can be made of them: "
                f"{reasons or 'they say too little'}. Add documents, remove duplicates, or ask for other --types"
            )
        making.questions.sort(key=lambda each: zlib.crc32(f"{recipe.seed} {each.wording.text}".encode()))
        return Made(making.questions, dict(making.dropped))

    def _nothing_links(self) -> str:
        chunks, language = len(self.evidence.chunks), self.evidence.linker.language
        if not language.spaced:
            return f"rules quote words, between which {language.name} writes no spaces: bring questions of your own"
        if self._pages.linked:
            return (
                f"{len(self._pages.hyperlinks):,} hyperlinks join the {chunks:,} passages, but around none stands a "
                "clause that asks for what the linked page states of a name, a setting or a default: "
                "write 30 questions with `hopbench annotate DATASET`"
            )
        return (
            f"no two of the {chunks:,} passages mention the same name, and none mentions another's title, so that no "
            "question needs two of them. Names that rules do not see may join them: say --extractor spacy, or "
            "--extractor llm --llm MODEL[@URL]; or add documents that refer to each other"
        )
