"""Find what an argument of a comparison names: a run's folder, a run in MLflow, a label, the champion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.types import Benchmark
from hopbench.flows.run.finished import RunFolder
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.payload import Tag
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.trials.ledger import TrialRecord
    from hopbench.flows.tracking.reader import TrackedRun, TrackingReader


@dataclass(frozen=True)
class LedgerTrial:
    """A trial of the ledger: a sweep's, or the champion."""

    trial: TrialRecord
    label: str
    name: str

    @property
    def place(self) -> str:
        """The trial's own name."""
        return f"trial {self.trial.trial_id}"

    @property
    def short(self) -> str:
        """How it was asked for."""
        return self.name

    @property
    def display_name(self) -> str:
        """Its unique name."""
        return self.place

    @property
    def description(self) -> str:
        """Which trial it is, and when it ended."""
        ended = datetime.fromtimestamp(self.trial.ended, UTC)
        return f"{self.place} of the ledger ({self.label}, {ended:%Y-%m-%d %H:%M} UTC)"

    @property
    def digest(self) -> str:
        """Digest of its benchmark."""
        return str(self.trial.settings["dataset"])

    @property
    def results(self) -> Mapping[str, Any]:
        """The entry of results.json on its benchmark, as far as the ledger has it."""
        questions = len(self.trial.settings["questions"])
        return {"benchmark": {"name": "(ledger)", "questions": questions, "digest": self.digest}}

    @property
    def labels(self) -> list[str]:
        """Its one label."""
        return [self.label]

    def rows(self, label: str) -> pd.DataFrame:
        """Its rows by question id."""
        return self.trial.questions

    def benchmark(self, dataset: str | None = None) -> Benchmark:
        """The benchmark at `dataset`. Raises InputError where it is not given or another one."""
        if dataset is None:
            raise InputError(f"{self.place} does not say where its benchmark is: name it with --dataset")
        result = load_benchmark(dataset)
        if result.digest != self.digest:
            raise InputError(f"{dataset} is not the benchmark of {self.place} (digest {self.digest[:12]})")
        return result


CHAMPION = "champion"


class Source(Protocol):
    """Rows by label of one benchmark. `place` tells two apart; the next three are for printing."""

    @property
    def place(self) -> str: ...
    @property
    def short(self) -> str: ...
    @property
    def display_name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def results(self) -> Mapping[str, Any]: ...
    @property
    def labels(self) -> Sequence[str]: ...
    def rows(self, label: str) -> pd.DataFrame: ...
    def benchmark(self, dataset: str | None = None) -> Benchmark: ...


@dataclass
class Sources:
    """Finds what an argument means; folders, runs and trials are read once.

    `digest` is the benchmark of the arguments found so far: a bare label and `champion` mean that benchmark's.
    """

    home: Home
    dataset: str | None = None
    digest: str | None = None
    _found: dict[str, tuple[Source, str]] = field(default_factory=dict)
    _folders: dict[Path, RunFolder] = field(default_factory=dict)

    @cached_property
    def tracked(self) -> TrackingReader:
        """MLflow, queried only when an argument is no folder."""
        from hopbench.flows.tracking.reader import TrackingReader

        return TrackingReader(self.home)

    def ordered(self, texts: Sequence[str]) -> list[str]:
        """Folders and run ids first, then labels, the champion last: what comes later may need the benchmark."""
        from hopbench.flows.tracking.reader import RUN_ID

        def rank(text: str) -> int:
            if text == CHAMPION:
                return 2
            return 0 if RUN_ID.match(text) or self._in_folder(text) else 1

        return sorted(dict.fromkeys(texts), key=rank)

    def find(self, text: str) -> tuple[Source, str]:
        """The source an argument names, and the label in it (empty: all of them)."""
        if text not in self._found:
            self._found[text] = self._find(text)
            self.digest = self.digest or self._found[text][0].digest
        return self._found[text]

    def _find(self, text: str) -> tuple[Source, str]:
        from hopbench.flows.tracking.reader import RUN_ID

        if (inside := self._in_folder(text)) is not None:
            folder, label = inside
            return self._labelled(self._folder(folder), label)
        if text == CHAMPION:
            return self._champion()
        if RUN_ID.match(text):
            return self._run(text)
        if "/" not in text and (result := self._label(text)) is not None:
            return result
        raise InputError(
            f"{text!r} is neither the --out folder of a finished run (with results.json) nor FOLDER:LABEL, and no "
            "MLflow run id, label of a tracked run, or champion"
        )

    def _in_folder(self, text: str) -> tuple[Path, str] | None:
        return next(((path, label) for path, label in _readings(text) if (path / "results.json").is_file()), None)

    def _folder(self, folder: Path, run_id: str = "") -> RunFolder:
        key = folder.resolve()
        if key not in self._folders:
            self._folders[key] = RunFolder.read(folder, run_id)
        return self._folders[key]

    def _tracked(self, run: TrackedRun) -> RunFolder:
        """The files of a parent run in MLflow."""
        return self._folder(self.tracked.folder(run), run.id)

    @staticmethod
    def _labelled(run: RunFolder, label: str) -> tuple[Source, str]:
        from hopbench.retrieval.strategies.registry import canonical_label

        label = canonical_label(label)
        if label and label not in run.labels:
            raise UnknownNameError(f"label in {run.folder}", label, run.labels)
        return run, label

    def _run(self, run_id: str) -> tuple[Source, str]:
        """A parent run: all its labels; a child: its label; a sweep's child: the ledger's trial."""
        run = self.tracked.run(run_id)
        if trial := run.tags.get(Tag.TRIAL_ID):
            return self._trial(trial, run.name, run_id[:8])
        if run.parent:
            return self._tracked(self.tracked.run(run.parent)), run.label
        return self._tracked(run), ""

    def _label(self, label: str) -> tuple[Source, str] | None:
        from hopbench.retrieval.strategies.registry import canonical_label, make
        from hopbench.retrieval.support.errors import ParameterError

        label = canonical_label(label)
        try:
            make(label)
        except ParameterError:
            raise
        except InputError:
            return self._foreign(label)
        run = self.tracked.newest(label, self._known_digest())
        if run is None:
            where = f" on the benchmark with digest {self.digest[:12]}" if self.digest else ""
            raise InputError(
                f"no finished run of {label!r}{where} in MLflow, with gold or answers to compare on: run it, or name a "
                "run's folder"
            )
        return self._tracked(self.tracked.run(run.parent)), label

    def _foreign(self, label: str) -> tuple[Source, str] | None:
        """A label that is none of HopBench's strategies: a tracked run's foreign label, if there is one."""
        try:
            run = self.tracked.newest(label, self._known_digest())
        except InputError:  # nothing was tracked yet
            return None
        return (self._tracked(self.tracked.run(run.parent)), label) if run is not None and run.parent else None

    def _champion(self) -> tuple[Source, str]:
        from hopbench.eval.trials.ledger import Ledger

        digest = self._known_digest()
        if digest is None:
            raise InputError("champion: of which benchmark? Name a run or a label beside it, or --dataset")
        with Ledger.open(self.home.ledger) as ledger:
            champion = ledger.champion_of(digest)
        if champion is None:
            raise InputError(
                f"the benchmark with digest {digest[:12]} has no champion yet: sweeps and nightlies name one"
            )
        return self._trial(champion.trial_id, champion.label, CHAMPION)

    def _trial(self, trial_id: str, label: str, name: str) -> tuple[Source, str]:
        from hopbench.eval.trials.ledger import Ledger

        with Ledger.open(self.home.ledger) as ledger:
            trial = ledger.get(trial_id)
        if trial is None:
            raise InputError(f"the ledger {self.home.ledger} has no trial {trial_id}: run its sweep again")
        return LedgerTrial(trial, label, name), label

    def _known_digest(self) -> str | None:
        if self.digest is None and self.dataset is not None:
            self.digest = load_benchmark(self.dataset).digest
        return self.digest


def _readings(text: str) -> Iterator[tuple[Path, str]]:
    """The whole text as a folder, then every split at a colon, longest folder first: a folder's name may hold colons.

    `DIR::LABEL` means the same as `DIR:LABEL`.
    """
    yield Path(text), ""
    for place in range(len(text) - 1, 0, -1):
        if text[place] == ":":
            yield Path(text[:place]), text[place + 1 :].lstrip(":")
