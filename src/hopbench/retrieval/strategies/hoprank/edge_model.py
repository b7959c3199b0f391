"""What is learned of a kind of edge."""

from __future__ import annotations

from dataclasses import dataclass

from hopbench.retrieval.strategies.hoprank.words import Floats
from hopbench.retrieval.support.arithmetic import weighted_sum


@dataclass(frozen=True, eq=False)
class EdgeModel:
    """A logistic model of one kind of edge: P(target is evidence) = σ(weights · features + bias)."""

    weights: Floats
    bias: float

    def logit(self, features: Floats) -> Floats:
        """The argument of σ for features (e, f), of which the model knows the first."""
        return weighted_sum(features[:, : len(self.weights)], self.weights) + self.bias
