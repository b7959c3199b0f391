"""A question's gold: the passages that hold its evidence, in alternative sets, with their grades."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Self

from hopbench.retrieval.support.errors import InputError


class Gold(tuple[str, ...]):
    """The gold passages of a question, each once: a tuple of the ids of all its sets.

    All passages of any one of the `sets` are full evidence; most questions have one set. `grades` are the judgements of
    passages, gold or not (0, negative, below the threshold), where they are not all 1; else it is empty.
    """

    sets: tuple[tuple[str, ...], ...]
    grades: Mapping[str, int]

    def __new__(cls, passages: Iterable[str] = ()) -> Self:
        """One set, in which all passages count the same."""
        made = super().__new__(cls, dict.fromkeys(passages))
        made.sets = (tuple(made),) if made else ()
        made.grades = {}
        return made

    @classmethod
    def any_of(cls, sets: Sequence[Sequence[str]]) -> Self:
        """Alternative sets. Raises InputError for an empty one, and for the same one twice."""
        known: dict[frozenset[str], tuple[str, ...]] = {}
        for passages in sets:
            if not passages:
                raise InputError("holds an empty set: name its passages, or remove it")
            if frozenset(passages) in known:
                raise InputError(f"holds the set {list(passages)} twice: name each set once")
            known[frozenset(passages)] = tuple(dict.fromkeys(passages))
        made = cls(passage for passages in sets for passage in passages)
        made.sets = tuple(known.values())
        return made

    @classmethod
    def judged(cls, grades: Mapping[str, int], least: int = 1) -> Self:
        """The passages of a grade of at least `least`, and all grades."""
        made = cls(passage for passage, grade in grades.items() if grade >= least)
        made.grades = dict(grades) if set(grades.values()) - {1} else {}
        return made

    def at_least(self, grade: int) -> Self:
        """The same judgements with another threshold; passages without a grade have grade 1."""
        if self.grades:
            return type(self).judged(self.grades, grade)
        return self if grade <= 1 else type(self)()

    @property
    def graded(self) -> bool:
        """Whether some grade is neither 0 nor 1."""
        return not {0, 1}.issuperset(self.grades.values())

    @property
    def gains(self) -> Mapping[str, int]:
        """Passage → gain, of those judged above 0, gold or not."""
        return {passage: grade for passage, grade in (self.grades or dict.fromkeys(self, 1)).items() if grade > 0}

    @property
    def size(self) -> int:
        """The number of passages in the smallest set; 0 without gold."""
        return min(map(len, self.sets), default=0)

    def complete_in(self, found: Collection[str]) -> bool:
        """Whether all passages of some set are found; True without gold."""
        return not self or any(all(passage in found for passage in one) for one in self.sets)

    def share(self, found: Collection[str]) -> float:
        """The share of the best set that is found."""
        return max(sum(passage in found for passage in one) / len(one) for one in self.sets)

    def best_set(self, found: Collection[str]) -> tuple[int, tuple[str, ...]]:
        """The number (from 1) of the set of which most is found, the first of equal ones, and what it lacks."""
        lacking = [tuple(passage for passage in one if passage not in found) for one in self.sets]
        best = min(range(len(lacking)), key=lambda number: len(lacking[number]) / len(self.sets[number]))
        return best + 1, lacking[best]

    def digest_fields(self) -> list[Any]:
        """Return what a digest needs in addition to the ids; empty for one set whose grades are all 0 or 1."""
        if len(self.sets) > 1:
            return ["sets", sorted(map(sorted, self.sets))]
        return ["grades", sorted((p, grade) for p, grade in self.grades.items() if grade)] if self.graded else []

    def __eq__(self, other: object) -> bool:
        """Whether ids, sets and grades are equal; of a plain tuple, the ids."""
        alike = not isinstance(other, Gold) or (self.sets, self.grades) == (other.sets, other.grades)
        return alike and tuple.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


NO_GOLD = Gold()
