"""Which configurations to try next: all that are listed, in rounds of halving, or what Optuna's TPE suggests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hopbench.eval.metrics import sign_of
from hopbench.eval.sweep.fields import Range, Scalar
from hopbench.eval.sweep.plan import SweepPlan
from hopbench.eval.sweep.results import Result, ranked
from hopbench.eval.sweep.space import Candidate, Dimension

if TYPE_CHECKING:
    import optuna

SUGGESTIONS_AT_ONCE = 4
"""Configurations that a Bayesian search suggests before it learns their results: what processes can share."""


class Round(NamedTuple):
    """Configurations to try, on so many questions of each data set (None: on all that the file asks for)."""

    candidates: Sequence[Candidate]
    questions: int | None = None


def search_of(plan: SweepPlan, questions: int) -> Search:
    """Make the plan's search; `questions` is how many the largest data set has."""
    if plan.content.search == "bayesian":
        return BayesianSearch(plan)
    return Search(plan, rounds(plan, questions))


def rounds(plan: SweepPlan, questions: int) -> list[int | None]:
    """List the number of questions of each round: with halving more each time, then all."""
    halving = plan.content.halving
    if halving is None:
        return [None]
    limit = min(questions, plan.content.questions or questions)
    sizes, size = list[int | None](), halving.questions
    while size < limit:
        sizes.append(size)
        size *= halving.factor
    return [*sizes, None]


def expected_trials(plan: SweepPlan, questions: int) -> int:
    """Count the trials of all rounds; the largest data set has `questions` questions."""
    left, trials = plan.configurations, 0
    for _ in rounds(plan, questions):
        trials += left * plan.each
        left = math.ceil(left / plan.content.halving.factor) if plan.content.halving else left
    return trials


class Search:
    """The plan's configurations; after each round but the last the best 1/factor go on.

    `ask` and `tell` are called in turn until a round is empty. A search is seeded: a resumed sweep repeats it.
    """

    def __init__(self, plan: SweepPlan, sizes: Sequence[int | None]) -> None:
        self._plan = plan
        self._left = list(plan.candidates)
        self._sizes = list(sizes)

    def ask(self) -> Round:
        """Return the next round; it has no candidates when nothing is left."""
        return Round(self._left, self._sizes[0]) if self._sizes else Round([])

    def tell(self, results: Sequence[Result]) -> None:
        """Report the results of the round's candidates, in its order."""
        self._sizes.pop(0)
        halving = self._plan.content.halving
        if self._sizes and halving is not None:
            best = ranked(results, self._plan.content.objective, self._plan.content.constraints)
            best_keys = {result.candidate.key for result in best[: math.ceil(len(best) / halving.factor)]}
            self._left = [candidate for candidate in self._left if candidate.key in best_keys]


class BayesianSearch(Search):
    """Optuna's tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011), seeded.

    It learns from results alone, which are in the ledger, so a resumed sweep makes the same suggestions again.
    """

    def __init__(self, plan: SweepPlan) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        super().__init__(plan, ())
        self._count = plan.content.trials or 0
        self._asked: list[optuna.trial.Trial] = []
        sampler = optuna.samplers.TPESampler(seed=plan.content.seed)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)

    def ask(self) -> Round:
        """See `Search`."""
        count = min(SUGGESTIONS_AT_ONCE, self._count)
        self._count -= count
        self._asked = [self._study.ask() for _ in range(count)]
        return Round([self._candidate(trial) for trial in self._asked])

    def tell(self, results: Sequence[Result]) -> None:
        """See `Search`. Each violated constraint subtracts 1: less than any configuration within the constraints.

        TPE looks for the highest value: of a metric of which less is better, for that of its negative.
        """
        from optuna.trial import TrialState

        content = self._plan.content
        for trial, result in zip(self._asked, results, strict=True):
            metric = content.objective.metric
            value = sign_of(metric) * result.mean(metric) - len(result.violated(content.constraints))
            unknown = math.isnan(value)  # Optuna would warn of it, and learn nothing
            self._study.tell(trial, None if unknown else value, TrialState.FAIL if unknown else None)

    def _candidate(self, trial: optuna.trial.Trial) -> Candidate:
        spaces = self._plan.spaces
        place = trial.suggest_categorical("strategy", range(len(spaces))) if len(spaces) > 1 else 0
        prefix = f"{place}." if len(spaces) > 1 else ""

        def suggested(dimension: Dimension) -> Scalar:
            span, name = dimension.values, prefix + dimension.name
            value: Any
            if not isinstance(span, Range):
                value = trial.suggest_categorical(name, list(span))
            elif span.step is not None:  # Optuna would shorten a range that its step does not divide, with a warning
                value = span.values()[trial.suggest_int(name, 0, len(span.values()) - 1)]
            elif span.whole:
                value = trial.suggest_int(name, int(span.low), int(span.high), log=span.log)
            else:
                value = float(f"{trial.suggest_float(name, span.low, span.high, log=span.log):.4g}")
            chosen: Scalar = value
            return chosen

        return spaces[place].candidate(suggested)
