"""What is to be made: how many questions of which types, and how they are shared out among the types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hopbench.retrieval.support.errors import InputError, UnknownNameError

TYPES = ("bridge", "compositional", "intersection", "comparison", "bridge-comparison")

CHAINS, INTERSECTIONS = 0.30, 0.12  # shares of what is no comparison
COMPARISONS, BRIDGE_COMPARISONS = 0.45, 0.15  # per share of chunks with a kind beyond `ONE_KIND`


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to make. `half` 0 or 1 uses one half of the passages as evidence, so that two sets share none."""

    questions: int = 300
    types: Sequence[str] = TYPES
    seed: int = 0
    half: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be made."""
        if self.questions < 1:
            raise InputError(f"--questions {self.questions}: at least 1 question is made")
        if not self.types:
            raise InputError(f"--types is empty: name some of {', '.join(TYPES)}")
        for name in self.types:
            if name not in TYPES:
                raise UnknownNameError("type of question", name, TYPES)

    def counts(self, possible: Sequence[str], alike: float) -> dict[str, int]:
        """How many questions of each possible type, largest remainders first; see `Kinds.alike`."""
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
