"""Resolve the arguments of `hopbench compare`, and `--runs NAME=FILE`, to the rows that are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.metrics import get_metric
from hopbench.eval.types import Benchmark
from hopbench.flows.cli._compare_sources import Source, Sources
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.notice import notice

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.retrieval.external import Recorded


@dataclass(frozen=True)
class RunFileSource:
    """One label of a file or folder of rankings: a source of one label, beside `RunFolder`."""

    label: str
    strategy: Recorded
    scored_on: Benchmark

    @property
    def place(self) -> str:
        """The flag: no two share a name."""
        return f"--runs {self.label}"

    @property
    def short(self) -> str:
        """Its name."""
        return self.label

    @property
    def display_name(self) -> str:
        """Its name."""
        return self.label

    @property
    def description(self) -> str:
        """What kind of file it is, and the beginning of its digest."""
        return f"{self.label} ({self.strategy.form}, sha256 {self.strategy.digest[:12]})"

    @property
    def digest(self) -> str:
        """Digest of the benchmark on which it is scored."""
        return self.scored_on.digest

    @property
    def results(self) -> Mapping[str, Any]:
        """Its results.json, as a run would have written it."""
        from hopbench.eval.metrics import primary_metric

        benchmark = self.scored_on
        about = {
            "name": benchmark.name,
            "digest": benchmark.digest,
            "questions": len(benchmark.questions),
            "passages": len(benchmark.passages),
            "primary_metric": primary_metric(benchmark),
        }
        entry = {"kind": self.strategy.kind, "in_sample": None, "params": self.strategy.spec()}
        return {"benchmark": about, "strategies": {self.label: entry}}

    @property
    def labels(self) -> Sequence[str]:
        """Its one label."""
        return [self.label]

    @cached_property
    def _rows(self) -> pd.DataFrame:
        from hopbench.eval.runs.external import scored_rows

        return scored_rows(self.label, self.strategy, self.scored_on)

    def rows(self, label: str) -> pd.DataFrame:
        """Its rows by question id."""
        return self._rows

    def benchmark(self, dataset: str | None = None) -> Benchmark:
        """The benchmark on which it is scored."""
        return self.scored_on


def run_file_sources(runs: Sequence[str], beside: Benchmark | None, dataset: str | None) -> list[RunFileSource]:
    """The sources of --runs, scored on the benchmark of the runs `beside` them, or else on --dataset."""
    from hopbench.flows.settings.foreign import foreign_labels, tie_notes
    from hopbench.retrieval.external import Recorded

    if not runs:
        return []
    if beside is None and dataset is None:
        raise InputError("--runs: scored on which benchmark? Name a run beside it, or --dataset")
    benchmark = beside or load_benchmark(str(dataset))
    found, _ = foreign_labels(runs, (), {}, ())
    for note in tie_notes(found):
        notice(note)
    return [RunFileSource(label, one, benchmark) for label, one in found.items() if isinstance(one, Recorded)]


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
    beside = unique[0].run.benchmark(sources.dataset) if unique and runs else None
    unique += [Side(source, source.label) for source in run_file_sources(runs, beside, sources.dataset)]
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
