"""The quality of learned weights on questions, and on families of data sets, that they were not learned from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hopbench.eval.training.examples import TrainingExample, parts_of
from hopbench.eval.training.held_out import SEED, HeldOut
from hopbench.eval.training.hoprank import Trainer


class Progress(Protocol):
    """Called before each fit with what it is for."""

    def __call__(self, what: str, /) -> None:
        """Show it."""
        ...


def cross_validated(trainer: Trainer, group: Sequence[TrainingExample], folds: int, tell: Progress) -> list[HeldOut]:
    """Each question ranked by weights learned from the other folds; a question is in one fold under every embedder.

    A second time, as `apart`, without learning from questions that share a gold passage with the fold, of whatever set,
    where there are some: sets made of the same facts again and again (MuSiQue's) reward weights that know the passages
    by heart. A fold is not tested where nothing would be left to learn from.
    """
    splits = _splits(group, [str(part) for part in parts_of(group, folds, SEED)])
    held = list(_tested("cross-validated", trainer, splits, tell))
    apart = [split.apart() for split in splits]
    if any(len(one.learned) < len(other.learned) for one, other in zip(apart, splits, strict=True)):
        held += _tested("cross-validated apart", trainer, apart, tell)
    return held


def left_out(trainer: Trainer, group: Sequence[TrainingExample], tell: Progress) -> list[HeldOut]:
    """Each family of data sets ranked by weights learned from the others; nothing where there is only one."""
    splits = _splits(group, [family(example.dataset) for example in group])
    return list(_tested("left out", trainer, splits if len(splits) > 1 else (), tell))


def family(dataset: str) -> str:
    """What comes before the first hyphen of a set's name: `musique-train100` and `musique-train940` are one family."""
    return dataset.partition("-")[0]


@dataclass(frozen=True, slots=True)
class _Split:
    """Examples that are learned from, and those that the weights are tested on."""

    name: str
    learned: Sequence[TrainingExample]
    tested: Sequence[TrainingExample]

    def apart(self) -> _Split:
        """The split without learned examples that share a gold passage with a tested one."""
        held = {text for example in self.tested for text in example.evidence}
        return replace(self, learned=[example for example in self.learned if held.isdisjoint(example.evidence)])


def _splits(group: Sequence[TrainingExample], parts: Sequence[str]) -> list[_Split]:
    """A split for each part that examples are in, tested on it."""
    pairs = list(zip(group, parts, strict=True))
    return [
        _Split(part, [one for one, own in pairs if own != part], [one for one, own in pairs if own == part])
        for part in sorted(set(parts))
    ]


def _tested(setting: str, trainer: Trainer, splits: Sequence[_Split], tell: Progress) -> Iterator[HeldOut]:
    for split in splits:
        if not split.learned:  # all other questions share a gold passage with these
            continue
        tell(f"{setting}: {split.name}")
        weights = trainer.fit(split.learned)
        for example in split.tested:
            for model, ranking in trainer.rankings(example, weights).items():
                yield HeldOut(setting, model, example, ranking)
