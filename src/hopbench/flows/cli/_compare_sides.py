"""What an argument of `hopbench compare` names: a run's folder, a run in MLflow, a label, the champion, rankings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.metrics import get_metric, primary_metric
from hopbench.eval.types import Benchmark
from hopbench.flows.run.finished import RunFolder
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.payload import Tag
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.notice import notice

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.trials.ledger import TrialRecord
    from hopbench.flows.tracking.reader import TrackedRun, TrackingReader
    from hopbench.retrieval.external import Recorded

CHAMPION = "champion"


@dataclass(frozen=True)
class Source:
    """Rows by label of one benchmark. `place` tells two apart; the next three are for printing.

    `results` is results.json, as far as it is known; `benchmark` takes the place where the benchmark is now.
    """

    place: str
    short: str
    display_name: str
    description: str
    results: Mapping[str, Any]
    labels: Sequence[str]
    rows: Callable[[str], pd.DataFrame]
    benchmark: Callable[[str | None], Benchmark]

    @property
    def digest(self) -> str:
        """Digest of the benchmark."""
        return str(self.results["benchmark"]["digest"])


def of_run(run: RunFolder) -> Source:
    """A finished run."""
    words = run.place, run.short, run.display_name, run.description
    return Source(*words, run.results, run.labels, run.rows, run.benchmark)


def of_trial(trial: TrialRecord, label: str, name: str) -> Source:
    """A trial of the ledger: a sweep's, or the champion; `name` is how it was asked for."""
    place, digest = f"trial {trial.trial_id}", str(trial.settings["dataset"])
    ended = datetime.fromtimestamp(trial.ended, UTC)

    def benchmark(dataset: str | None) -> Benchmark:
        if dataset is None:
            raise InputError(f"{place} does not say where its benchmark is: name it with --dataset")
        result = load_benchmark(dataset)
        if result.digest != digest:
            raise InputError(f"{dataset} is not the benchmark of {place} (digest {digest[:12]})")
        return result

    about = {"name": "(ledger)", "questions": len(trial.settings["questions"]), "digest": digest}
    description = f"{place} of the ledger ({label}, {ended:%Y-%m-%d %H:%M} UTC)"
    return Source(place, name, place, description, {"benchmark": about}, [label], lambda _: trial.questions, benchmark)


def of_rankings(label: str, strategy: Recorded, benchmark: Benchmark) -> Source:
    """One label of a file or folder of rankings, scored on the benchmark."""

    @cache
    def rows(label: str) -> pd.DataFrame:
        from hopbench.eval.runs.external import scored_rows

        return scored_rows(label, strategy, benchmark)

    about = {
        "name": benchmark.name,
        "digest": benchmark.digest,
        "questions": len(benchmark.questions),
        "passages": len(benchmark.passages),
        "primary_metric": primary_metric(benchmark),
    }
    entry = {"kind": strategy.kind, "in_sample": None, "params": strategy.spec()}
    results = {"benchmark": about, "strategies": {label: entry}}
    description = f"{label} ({strategy.form}, sha256 {strategy.digest[:12]})"
    return Source(f"--runs {label}", label, label, description, results, [label], rows, lambda _: benchmark)


@dataclass
class Sources:
    """Finds what an argument means; folders, runs and trials are read once.

    `digest` is the benchmark of the arguments found so far: a bare label and `champion` mean that benchmark's.
    """

    home: Home
    dataset: str | None = None
    digest: str | None = None
    _found: dict[str, tuple[Source, str]] = field(default_factory=dict)
    _folders: dict[Path, Source] = field(default_factory=dict)

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
            from hopbench.retrieval.strategies.registry import canonical_label

            folder, label = inside[0], canonical_label(inside[1])
            run = self._folder(folder)
            if label and label not in run.labels:
                raise UnknownNameError(f"label in {folder}", label, run.labels)
            return run, label
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

    def _folder(self, folder: Path, run_id: str = "") -> Source:
        key = folder.resolve()
        if key not in self._folders:
            self._folders[key] = of_run(RunFolder.read(folder, run_id))
        return self._folders[key]

    def _tracked(self, run: TrackedRun) -> Source:
        """The files of a parent run in MLflow."""
        return self._folder(self.tracked.folder(run), run.id)

    def _run(self, run_id: str) -> tuple[Source, str]:
        """A parent run: all its labels; a child: its label; a sweep's child: the ledger's trial."""
        run = self.tracked.run(run_id)
        if trial := run.tags.get(Tag.TRIAL_ID):
            return self._trial(trial, run.name, run_id[:8])
        if run.parent:
            return self._tracked(self.tracked.run(run.parent)), run.label
        return self._tracked(run), ""

    def _label(self, label: str) -> tuple[Source, str] | None:
        """The newest tracked run of a label; None for one that is neither HopBench's nor of a tracked run."""
        from hopbench.retrieval.strategies.registry import canonical_label, make
        from hopbench.retrieval.support.errors import ParameterError

        label, own = canonical_label(label), True
        try:
            make(label)
        except ParameterError:
            raise
        except InputError:
            own = False
        try:
            run = self.tracked.newest(label, self._known_digest())
        except InputError:  # nothing was tracked yet
            if own:
                raise
            return None
        if run is None and own:
            where = f" on the benchmark with digest {self.digest[:12]}" if self.digest else ""
            raise InputError(
                f"no finished run of {label!r}{where} in MLflow, with gold or answers to compare on: run it, or name a "
                "run's folder"
            )
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
        return of_trial(trial, label, name), label

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


def ranking_sources(runs: Sequence[str], benchmark: Benchmark | None, dataset: str | None) -> list[Source]:
    """The sources of --runs, scored on `benchmark`, that of the runs compared, or else on --dataset."""
    from hopbench.flows.settings.foreign import foreign_labels, tie_notes
    from hopbench.retrieval.external import Recorded

    if not runs:
        return []
    if benchmark is None and dataset is None:
        raise InputError("--runs: scored on which benchmark? Name a run beside it, or --dataset")
    benchmark = benchmark or load_benchmark(str(dataset))
    found, _ = foreign_labels(runs, (), {}, ())
    for note in tie_notes(found):
        notice(note)
    return [of_rankings(label, one, benchmark) for label, one in found.items() if isinstance(one, Recorded)]


@dataclass(frozen=True)
class Side:
    """One label of one source, under the name that the comparison shows."""

    run: Source
    label: str
    name: str = ""

    @property
    def rows(self) -> pd.DataFrame:
        """Its rows by question id."""
        return self.run.rows(self.label)

    @property
    def about(self) -> Mapping[str, Any]:
        """Its kind, and the sets on which it was tuned or learned and scored here; empty where that is not known."""
        entry = (self.run.results.get("strategies") or {}).get(self.label, {})
        return {name: entry[name] for name in ("kind", "in_sample") if name in entry}

    @property
    def key(self) -> tuple[str, str]:
        """The same for two arguments that mean the same."""
        return self.run.place, self.label


def resolve_sides(texts: Sequence[str], sources: Sources, runs: Sequence[str] = ()) -> list[Side]:
    """Every side that the arguments and --runs name, each once, all of one benchmark.

    Raises InputError for an argument that names no run, an unknown label, runs of different benchmarks.
    """
    result = {text: resolve(text, sources) for text in sources.ordered(texts)}
    unique = list({side.key: side for text in texts for side in result[text]}.values())
    benchmark = unique[0].run.benchmark(sources.dataset) if unique and runs else None
    unique += [Side(source, source.labels[0]) for source in ranking_sources(runs, benchmark, sources.dataset)]
    if not unique:
        raise InputError("nothing to compare: name runs' folders, MLflow run ids, labels, or --runs NAME=FILE")
    first = unique[0].run
    for side in unique[1:]:
        _same_benchmark(first, side.run)
    if len(unique) < 2:
        raise InputError(f"only {unique[0].label!r} of {first.place} to compare: name a second label or run")
    return _named(unique)


def resolve(text: str, sources: Sources) -> list[Side]:
    """The sides of one argument; of a whole run all labels that rank, so not the closed-book row."""
    source, label = sources.find(text)
    ranked = [each for each in source.labels if each != "closed_book"]
    return [Side(source, each) for each in ([label] if label else ranked)]


def _same_benchmark(first: Source, other: Source) -> None:
    if first.digest != other.digest:
        ours, theirs = first.results["benchmark"], other.results["benchmark"]
        raise InputError(
            f"{first.place} was run on {ours['name']} ({ours['questions']} questions, digest {first.digest[:12]}) and "
            f"{other.place} on {theirs['name']} ({theirs['questions']} questions, digest {other.digest[:12]}): "
            "compare runs of the same questions and passages"
        )


def refuse_unmeasured(sides: Sequence[Side], metric: str) -> None:
    """Raise InputError for a side without any value of the metric."""
    get_metric(metric)  # report an unknown name first
    for side in sides:
        rows = side.rows
        if metric in rows.columns and rows[metric].notna().any():
            continue
        if metric in rows.columns and rows["failure"].notna().all():
            continue  # every question failed, which the comparison says itself
        benchmark = side.run.results["benchmark"]["name"]
        raise InputError(
            f"{side.run.place} has no value of {metric} for {side.label}: {benchmark} has no gold passages or answers "
            "for it, or it was not scored. Add gold passages (qrels/test.tsv: query-id, corpus-id, score) or answers "
            "(metadata.answer in queries.jsonl) and run again (with --metric, where it is measured on request), or "
            "name another --metric"
        )


def _named(sides: Sequence[Side]) -> list[Side]:
    """Short names: the label in one run, SHORT:LABEL with more, the whole place where two are short alike."""
    runs = {side.run.place: side.run for side in sides}
    if len(runs) == 1:
        return [replace(side, name=side.label) for side in sides]
    ends = Counter(run.short for run in runs.values())
    shown = {place: run.short if ends[run.short] == 1 else run.display_name for place, run in runs.items()}
    return [replace(side, name=_full_name(shown[side.run.place], side.label)) for side in sides]


def _full_name(run: str, label: str) -> str:
    return label if run == label else f"{run}:{label}"


def choose_baseline(texts: Sequence[str], sides: Sequence[Side], asked: str | None, sources: Sources) -> str | None:
    """The baseline's name: the one asked for, else the first argument's if it is a single label, else none.

    `asked` may be a name as shown, a label that only one run has, or an argument's own text.
    """
    if asked is None:
        if not texts:
            return None
        first = resolve(texts[0], sources)
        return _name_of(first[0], sides) if len(first) == 1 else None
    named = [side.name for side in sides if side.name == asked] or [s.name for s in sides if s.label == asked]
    if not named and (asked in texts or any(asked.startswith(f"{side.run.display_name}:") for side in sides)):
        named = [_name_of(side, sides) for side in resolve(asked, sources)]
    if len(named) == 1:
        return named[0]
    if named:
        raise InputError(f"--baseline {asked!r} could be {' or '.join(named)}: name one of them")
    raise UnknownNameError("label for --baseline", asked, [side.name for side in sides])


def _name_of(wanted: Side, sides: Sequence[Side]) -> str:
    return next(side.name for side in sides if side.key == wanted.key)
