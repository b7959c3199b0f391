"""The language models of a run, and the one place that opens them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hopbench.flows.settings.home import Home
from hopbench.flows.settings.setting import MODELS, Commas, Settings, flag, named_flags
from hopbench.retrieval.support.errors import IncompleteError, InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.eval.answering.reading import Reading
    from hopbench.retrieval.embedding.base import Embedder
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.llm import LLM, CallLedger, Endpoint
    from hopbench.retrieval.llm.endpoint import Asked

PROFILES = ("full", "compact")


class ReaderOptions(Settings):
    """The language model of reader, strategies and extractor, and how it is called."""

    llm: str | None = flag(None, "Model of reader, strategies and extractor llm: MODEL[@URL].", group=MODELS)
    reasoning_effort: str | None = flag(
        None,
        "How much the models think, where they take it: none, minimal, low, medium, high (default: theirs).",
        group=MODELS,
        values="efforts",
    )
    completion_tokens: int | None = flag(
        None,
        "Completion tokens of each call to a model, thinking included (default: by purpose, 256 for an answer).",
        ge=1,
        group=MODELS,
    )

    @property
    def asked(self) -> Asked:
        """Effort and completion budget, where they are set."""
        from hopbench.retrieval.llm.endpoint import asked_of

        return asked_of(vars(self))


class ModelOptions(ReaderOptions):
    """Reader and judge as a user named them."""

    judge: str | None = flag(None, "The judge's model, MODEL[@URL] (JUDGE_API_KEY, else OPENAI_API_KEY).", group=MODELS)
    judge_on: str = flag(
        "all", "all labels, or finalists[:N]: the best N by the free metrics (3).", group=MODELS, values="judge_on"
    )
    judge_profile: str = flag(
        "full",
        "full: RAGAS's own prompts; compact: short ones for local models.",
        group=MODELS,
        values="judge_profiles",
    )
    judge_metrics: Commas = flag("all", "Judged metrics; all.", group=MODELS, values="judge_metrics", commas=True)
    repeats: int = flag(1, "How often each judgement is repeated; more than 1 shows its spread.", ge=1, group=MODELS)
    budget: float | None = flag(
        None, "US dollars at which to stop (exit 4); the same command resumes.", gt=0, group=MODELS
    )

    def check(self, answered: bool | None = None) -> None:
        """Raise InputError for unusable settings; `answered`: whether a reader answers (default: if one is named)."""
        self.endpoints()
        if self.judge_profile not in PROFILES:
            raise UnknownNameError("judge profile", self.judge_profile, PROFILES)
        named = self.judged if self.judge_metrics not in ("", "all") else ()
        if self.judge_on != "all":
            _ = self.finalists  # refuses what is no number of labels
        if self.judge is None and (named or self.judge_on != "all" or self.repeats != 1):
            raise InputError(
                "--judge-metrics, --judge-on and --repeats need a judge: name one with --judge MODEL[@URL]"
            )
        asked = [name for name in ("reasoning_effort", "completion_tokens") if getattr(self, name) is not None]
        if asked and self.llm is None and self.judge is None:
            raise InputError(
                f"{named_flags(asked)}: no language model is asked: name one with --llm or --judge MODEL[@URL]"
            )
        if named and not (self.llm is not None if answered is None else answered):
            from hopbench.eval.answering.judge.sample import INPUTS

            if unheard := [name for name in named if "response" in INPUTS[name]]:
                raise InputError(
                    f"--judge-metrics {', '.join(unheard)}: they judge answers: name a reader with --llm MODEL[@URL]"
                )

    def endpoints(self) -> dict[str, Endpoint]:
        """`llm` and `judge`, those that are named."""
        if self.llm is None and self.judge is None:
            return {}
        from hopbench.retrieval.llm import Endpoint

        named: dict[Literal["llm", "judge"], str | None] = {"llm": self.llm, "judge": self.judge}
        return {role: Endpoint.parse(name, role, **self.asked) for role, name in named.items() if name is not None}

    def reach(self, home: Home) -> list[str]:
        """Raise IncompleteError, naming the flag and the address, where nothing listens at a model's address.

        A model that answered earlier may have all its replies in the cache: then this is only a warning.
        """
        lines = []
        for role, endpoint in self.endpoints().items():
            from hopbench.retrieval.llm import CallLedger
            from hopbench.retrieval.llm.endpoint import refusal

            reason = refusal(endpoint.base_url)
            if reason is None:
                continue
            what = f"--{role} {endpoint.name}: nothing answers at that address ({reason})"
            with closing(CallLedger(home.calls if home.calls.is_file() else None)) as ledger:
                if not ledger.has_answered(endpoint.base_url, endpoint.model):
                    raise IncompleteError(
                        f"{what}. Start the model's server or correct the address; the same command goes on"
                    )
            lines.append(f"{what}; only its cached replies are available")
        return lines

    @property
    def finalists(self) -> int | None:
        """How many labels `--judge-on` selects for judging; None for all of them."""
        from hopbench.eval.answering.reading import finalists_named

        try:
            return finalists_named(self.judge_on)
        except InputError as error:
            raise InputError(f"--judge-on {error}") from error

    @property
    def judged(self) -> tuple[str, ...]:
        """The judged metrics, all unless some are named."""
        from hopbench.eval.metrics import all_metrics

        known = tuple(all_metrics("judge"))
        named = [] if self.judge_metrics == "all" else [name.strip() for name in self.judge_metrics.split(",") if name]
        for name in named:
            if name not in known:
                raise UnknownNameError("judged metric", name, known)
        return tuple(name for name in known if not named or name in named)

    def steps(self, labels: int) -> int:
        """How many steps reading and judging add to a run of so many labels."""
        return (labels + 1 if self.llm is not None else 0) + (self.judge is not None)

    def warnings(self, answered: bool | None = None) -> list[str]:
        """Warnings about the named models; `answered`: whether a reader answers (default: if one is named)."""
        if not self.endpoints():
            return []
        from hopbench.retrieval.llm import price_of

        models = sorted({endpoint.model for endpoint in self.endpoints().values()})
        unknown = ", ".join(model for model in models if price_of(model) is None)
        capped = "; --budget cannot cap what it costs" if self.budget is not None else ""
        notes = [f"the price of {unknown} is not known{capped}"] if unknown else []
        if self.judge is not None and not (self.llm is not None if answered is None else answered):
            notes.append("no question is answered without --llm: only the metrics of contexts are judged")
        return notes


@dataclass(frozen=True)
class Models:
    """The opened models of a run."""

    reading: Reading
    ledger: CallLedger | None = None

    def serve(self, index: Index) -> None:
        """Give the strategies of an index the reader's model."""
        if self.reading.reader is not None:
            from hopbench.retrieval.question.model import QuestionModel

            QuestionModel(self.reading.reader).install(index)

    def calls(self) -> dict[str, dict[str, Any]]:
        """What this process' calls came to, by purpose; part of them came from the cache."""
        from dataclasses import asdict

        return {} if self.ledger is None else {name: asdict(total) for name, total in self.ledger.totals().items()}


@contextmanager
def open_models(options: ModelOptions, embedder: Embedder, home: Home) -> Iterator[Models]:
    """Reader and judge under one ledger and one budget; closed in the end."""
    from hopbench.eval.answering.reading import Reading

    endpoints = options.endpoints()
    if not endpoints:
        yield Models(Reading())
        return
    from hopbench.retrieval.llm import LLM, CallLedger

    with ExitStack() as stack:
        ledger = CallLedger(home.calls, options.budget)
        stack.callback(ledger.close)
        llms: dict[str, LLM] = {
            role: stack.enter_context(LLM(endpoint, home.replies, ledger)) for role, endpoint in endpoints.items()
        }
        judging = None
        if "judge" in llms:
            from hopbench.eval.answering.judge import open_judge
            from hopbench.eval.answering.judge.schedule import JudgementStore

            store = stack.enter_context(JudgementStore.open(home.judgements))
            judging = open_judge(options.judge_profile, llms["judge"], embedder, store)
        yield Models(Reading(llms.get("llm"), judging, options.judged, options.repeats, options.finalists), ledger)
