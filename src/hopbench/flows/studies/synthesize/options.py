"""The options of `hopbench synthesize`. A module of its own that loads little, for the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hopbench.flows.settings.setting import EXECUTION, MODELS, OUTPUT, STRATEGIES, Setting
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.synthesize.generate import Recipe


@dataclass(frozen=True, kw_only=True)
class SynthesizeOptions:
    """What to make of which corpus; with `check`, the labelled set that synthetic questions are compared with."""

    corpus: Annotated[
        str | None,
        Setting("The corpus: a folder of documents or tables, a file, a name.", values="datasets", flag="--dataset"),
    ] = None
    out: Annotated[Path | None, Setting("The folder to write; with --check, a JSON file.", group=OUTPUT)] = None
    count: Annotated[int, Setting("How many questions.", low=1, flag="--questions")] = 300
    types: Annotated[
        str, Setting("Types of questions: bridge,compositional,intersection,comparison,bridge-comparison.")
    ] = "all"
    role: Annotated[
        str,
        Setting(
            "What the set is for: tune, report, or halves: one for each, which share no evidence.", values="set_roles"
        ),
    ] = "report"
    seed: Annotated[int, Setting("Equal seeds give equal questions.", low=0)] = 0
    check: Annotated[
        str | None,
        Setting("A labelled set: compare what synthetic and its own questions say of the labels.", values="datasets"),
    ] = None
    seeds: Annotated[int, Setting("With --check: how many synthetic sets.", low=1, group=EXECUTION)] = 3
    strategies: Annotated[str, Setting("With --check: the labels to compare.", values="labels", group=STRATEGIES)] = (
        "all,all:tuned"
    )
    by: Annotated[
        str,
        Setting(
            "Who writes: rules (with --llm, a model words the rules' paths), or ragas: its generator, with --llm.",
            values="question_writers",
            group=MODELS,
        ),
    ] = "rules"

    def __post_init__(self) -> None:
        """Refuse to make and to check at once, and to do neither."""
        if (self.corpus is None) == (self.check is None):
            raise InputError("name a corpus with --dataset, or a labelled set with --check (one of the two)")

    @property
    def dataset(self) -> str:
        """The data set whose corpus questions are made from."""
        return str(self.corpus if self.check is None else self.check)

    def recipe(self) -> Recipe:
        """What the generator is to make. Raises InputError for a type that is none."""
        from hopbench.eval.synthesize.generate import TYPES, Recipe

        named = TYPES if self.types == "all" else tuple(name.strip() for name in self.types.split(",") if name.strip())
        return Recipe(questions=self.count, types=named, seed=self.seed)
