"""Makes the questions of one recipe: drafts, their wordings, and of those the ones as hard as real questions."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from hopbench.eval.synthesize.draft import Draft
from hopbench.eval.synthesize.evidence import Evidence
from hopbench.eval.synthesize.filters import Filters
from hopbench.eval.synthesize.hardness import Quota, Searched, searched, targets
from hopbench.eval.synthesize.near_words import NearWords
from hopbench.eval.synthesize.paths import Paths
from hopbench.eval.synthesize.phrase import EASY_TO_HARD, Phraser, Wording
from hopbench.eval.synthesize.recipe import Recipe

MOST_USES = 4  # of one passage as evidence
ROUND = 200  # drafts that are searched together
ROUNDS = 8
LEAST_DRAWS, DRAWS, HALF_DRAWS = 40, 4, 16  # for each draft; all of four passages are of one half once in eight


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
        """Those of the types of which the corpus yields a draft."""
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
        if each.wording.text in self._texts or any(self._uses[chunk] >= MOST_USES for chunk in gold):
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
        """Drafts of a type, each path once."""
        for _ in range(LEAST_DRAWS + count * (DRAWS if self._recipe.half is None else HALF_DRAWS)):
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
