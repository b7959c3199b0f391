"""Make questions from a corpus alone: drafts along its evidence, worded as hard as real ones, with provenance."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from hopbench.eval.synthesize._difficulty import Filters, Quota, Searched, searched, targets
from hopbench.eval.synthesize._drafts import Draft
from hopbench.eval.synthesize._evidence import Evidence
from hopbench.eval.synthesize._paths import Paths
from hopbench.eval.synthesize._wording import EASY_TO_HARD, NearWords, Phraser, Wording
from hopbench.retrieval.index import Index
from hopbench.retrieval.support.errors import InputError, UnknownNameError

TYPES = ("bridge", "compositional", "intersection", "comparison", "bridge-comparison")

CHAINS, INTERSECTIONS = 0.30, 0.12  # shares of what is no comparison
COMPARISONS, BRIDGE_COMPARISONS = 0.45, 0.15  # per share of chunks with a kind beyond `ONE_KIND`
MAX_USES = 4  # of one passage as evidence
ROUND = 200  # drafts that are searched together
ROUNDS = 8
MIN_DRAWS, DRAWS, HALF_DRAWS = 40, 4, 16  # for each draft; all of four passages are of one half once in eight


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
        """Divide the questions among the possible types, largest remainders first (see `Kinds.alike`)."""
        shares = _shares(possible, alike)
        exact = {name: self.questions * share / sum(shares.values()) for name, share in shares.items()}
        counts = {name: int(value) for name, value in exact.items()}
        rest = sorted(exact, key=lambda name: counts[name] - exact[name])
        for name in rest[: self.questions - sum(counts.values())]:
            counts[name] += 1
        return counts


def _shares(possible: Sequence[str], alike: float) -> Mapping[str, float]:
    """Each possible type's share. Comparisons are asked where most passages say of what kind a thing is."""
    comparisons, of_bridges = COMPARISONS * alike, BRIDGE_COMPARISONS * alike
    rest = 1 - comparisons - of_bridges
    shares = {
        "bridge": rest * (1 - CHAINS - INTERSECTIONS),
        "compositional": rest * CHAINS,
        "intersection": rest * INTERSECTIONS,
        "comparison": comparisons,
        "bridge-comparison": of_bridges,
    }
    named = {name: shares[name] for name in possible}
    return named if sum(named.values()) > 0 else dict.fromkeys(possible, 1.0)


class Making:
    """The state of one recipe."""

    def __init__(self, evidence: Evidence, near: NearWords, filters: Filters, recipe: Recipe) -> None:
        self._rng = Random(recipe.seed)
        self._evidence, self._filters, self._recipe = evidence, filters, recipe
        self._paths = Paths(evidence, self._rng)
        self._phraser = Phraser(evidence, near, self._rng)
        self._targets = targets(evidence.room)
        self.questions: list[Searched] = []
        self.dropped: Counter[str] = Counter()
        self._uses: Counter[int] = Counter()
        self._seen: set[tuple[str, frozenset[int]]] = set()
        self._texts: set[str] = set()

    def possible(self, types: Sequence[str]) -> list[str]:
        """List the types that the corpus yields a draft of."""
        return [name for name in dict.fromkeys(types) if self._paths.draw(name) is not None]

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
            wordings = [wording for draft in drafts for wording in self._wordings(draft)]
            groups: dict[int, list[Searched]] = {}
            for each in searched(self._evidence.index, wordings):
                groups.setdefault(id(each.wording.draft), []).append(each)
            for group in groups.values():
                usable = [each for each in group if not self._filters.answered_by_one(each)]
                self.dropped["one passage answers it"] += not usable
                best = quota.best(usable, 0.0)
                if best is not None and quota.missing:
                    self._take(best, quota)
                else:
                    spare += usable[-1:]
        for each in spare[: quota.missing]:
            self._take(each, quota)

    def _take(self, each: Searched, quota: Quota) -> None:
        gold = each.wording.draft.gold
        if each.wording.text in self._texts or any(self._uses[chunk] >= MAX_USES for chunk in gold):
            self.dropped["its evidence was used often enough"] += 1
            return
        self._texts.add(each.wording.text)
        self._uses.update(gold)
        quota.take(each.found)
        self.questions.append(each)

    def _wordings(self, draft: Draft) -> Iterator[Wording]:
        made = (self._phraser.wording(draft, dial) for dial in EASY_TO_HARD)
        return (wording for wording in made if wording is not None)

    def _drafts(self, name: str, count: int) -> Iterator[Draft]:
        """Draw drafts of a type, each path once."""
        for _ in range(MIN_DRAWS + count * (DRAWS if self._recipe.half is None else HALF_DRAWS)):
            if count == 0:
                return
            draft = self._paths.draw(name)
            if draft is None:
                return
            path = name, frozenset(draft.gold)
            if path in self._seen or not self._of_half(draft):
                continue
            if self._filters.twofold(draft):
                self.dropped["its evidence stands in the corpus twice"] += 1
                continue
            self._seen.add(path)
            count -= 1
            yield draft

    def _of_half(self, draft: Draft) -> bool:
        """Whether all its evidence is of the half that is asked for."""
        if self._recipe.half is None:
            return True
        ids = (self._evidence.chunks[chunk].passage_id for chunk in draft.gold)
        return all(zlib.crc32(id_.encode()) % 2 == self._recipe.half for id_ in ids)


@dataclass(frozen=True)
class Made:
    """The questions, and how many drafts were dropped for which reason."""

    questions: Sequence[Searched]
    dropped: Mapping[str, int] = field(default_factory=dict)


class Generator:
    """Makes questions from the corpus of an index. Equal recipes give equal questions."""

    def __init__(self, index: Index) -> None:
        self.evidence = Evidence.of(index)
        self._near = NearWords(self.evidence.corpus.words)
        self._filters = Filters(self.evidence)

    def make(self, recipe: Recipe, progress: Callable[[int, int], None] = lambda done, all_: None) -> Made:
        """Make the recipe's questions, or fewer where the corpus does not yield them.

        Raises InputError where no two passages are joined by anything, or no question is left.
        """
        making = Making(self.evidence, self._near, self._filters, recipe)
        possible = making.possible(recipe.types)
        if not possible:
            others = making.possible(TYPES)
            raise InputError(_other_types(recipe.types, others) if others else self._nothing_links())
        counts = recipe.counts(possible, self.evidence.kinds.alike)
        for name, count in counts.items():
            making.fill(name, count)
            progress(len(making.questions), recipe.questions)
        if not making.questions:
            raise InputError(_all_dropped(making.dropped))
        making.questions.sort(key=lambda each: zlib.crc32(f"{recipe.seed} {each.wording.text}".encode()))
        return Made(making.questions, dict(making.dropped))

    def _nothing_links(self) -> str:
        chunks, language = len(self.evidence.chunks), self.evidence.linker.language
        if not language.spaced:
            return f"rules quote words, between which {language.name} writes no spaces: bring questions of your own"
        return (
            f"no two of the {chunks:,} passages mention the same name, and none mentions another's title, so that no "
            "question needs two of them. Names that rules do not see may join them: say --extractor spacy, or "
            "--extractor llm --llm MODEL[@URL]; or add documents that refer to each other"
        )


def _other_types(named: Sequence[str], others: Sequence[str]) -> str:
    return f"--types {','.join(named)}: this corpus yields none of these: name some of {', '.join(others)}"


def _all_dropped(dropped: Mapping[str, int]) -> str:
    reasons = ", ".join(f"{reason} ({count:,})" for reason, count in dropped.items() if count)
    return (
        f"names join passages of this corpus, yet no question can be made of them: {reasons or 'they say too little'}. "
        "Add documents, remove duplicates, or ask for other --types"
    )
