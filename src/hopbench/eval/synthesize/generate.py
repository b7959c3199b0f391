"""Questions from a corpus alone: drafts along its evidence, worded as hard as real ones, filtered, with provenance."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hopbench.eval.synthesize.evidence import Evidence
from hopbench.eval.synthesize.filters import Filters
from hopbench.eval.synthesize.hardness import Searched
from hopbench.eval.synthesize.making import Making
from hopbench.eval.synthesize.near_words import NearWords
from hopbench.eval.synthesize.recipe import TYPES, Recipe
from hopbench.retrieval.index import Index
from hopbench.retrieval.support.errors import InputError


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
        """Questions as the recipe says, or fewer where the corpus does not yield them.

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
