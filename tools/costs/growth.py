"""Measure what a corpus and its strategies cost, how that grows with hopworld's worlds, and write it as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from hopbench.eval.files import refuse_unwritable, write_atomically
from hopbench.eval.types import Benchmark
from hopbench.flows.graph.build import built_graph, open_index
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.graph.construction.plan import GraphPlan
from hopbench.retrieval.index import Index
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import InputError
from tools.costs.measure import STRICT, Cost, Journal, measure, peak, spent
from tools.hopworld.write import write_benchmark

BEGIN, END = "<!-- costs -->", "<!-- end of costs -->"
SEED = 1
JOURNAL = "growth.jsonl"
WORLD, OPENED, BM25, TAGS = "generate the world", "corpus, chunks, vectors", "BM25 index", "tags' vocabulary"
BUILD = {
    "embed": "vectors from the cache",
    "extract": "entities and relations",
    "similar": "SIMILAR_TO",
    "write": "graph written",
    "fingerprint": "graph read back, fingerprint",
}
OTHER = "the build's other work"  # digest, chunks, their tags' vocabulary, the fingerprint before writing
STEPS = (WORLD, OPENED, *BUILD.values(), OTHER, BM25, TAGS)
T = TypeVar("T")
P = ParamSpec("P")


def markdown(measured: Sequence[Step | Cost]) -> str:
    """Write two tables by size: steps (processor time, peak memory), and labels (milliseconds a question).

    Milliseconds in a batch are processor time, with wall time in brackets; those of a single question are the median of
    wall times, with the 95th percentile in brackets.
    """
    sizes = sorted({one.passages for one in measured})
    steps = {(one.name, one.passages): one for one in measured if isinstance(one, Step)}
    costs = {(one.label, one.passages): one for one in measured if isinstance(one, Cost)}
    lines = [_row(["step", *(f"{size:,}: CPU | memory" for size in sizes)]), _rule(1 + 2 * len(sizes))]
    lines += [_row([name, *(_step(steps.get((name, size))) for size in sizes)]) for name in STEPS]
    lines += ["", _row(["label", *(f"{size:,}: batch | alone" for size in sizes)]), _rule(1 + 2 * len(sizes))]
    for label in dict.fromkeys(label for label, _ in costs):
        lines.append(_row([f"`{label}`", *(_cost(costs.get((label, size))) for size in sizes)]))
    return "\n".join(lines)


def check_document(document: Path) -> tuple[str, str]:
    """What stands before and after the tables; raises InputError where there is no place, or it cannot be written."""
    try:
        whole = document.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--table {document}: {error}: name a Markdown file") from error
    before, begin, rest = whole.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"--table {document}: it lacks the lines {BEGIN} and {END}, between which the table goes")
    refuse_unwritable(document)
    return before, after


def write_table(document: Path, text: str) -> None:
    """Put the tables between the marks of a document; raises InputError where it lacks them."""
    before, after = check_document(document)
    write_atomically(document, f"{before}{BEGIN}\n\n{text}\n\n{END}{after}".encode())


def _step(step: Step | None) -> str:
    if step is None:
        return "– | –"
    return f"{'≥ ' if step.resumed else ''}{step.cpu:,.1f} s | {step.peak / 1e9:.2f} GB"


def _cost(cost: Cost | None) -> str:
    if cost is None:
        return "– | –"
    return f"{cost.ms:.2f} ({cost.clock_ms:.2f}) | {cost.alone:.1f} ({cost.alone_p95:.1f})"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(columns: int) -> str:
    return f"|{'---|' * columns}"


@dataclass(frozen=True)
class Step:
    """What a step before any strategy cost; `resumed` where an earlier, killed run had done part of it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    passages: int
    name: str
    cpu: float
    clock: float
    peak: int
    resumed: bool = False


F = TypeVar("F", Step, Cost)


def growth(
    sizes: Sequence[int],
    strategies: Mapping[str, Strategy],
    questions: int,
    folder: Path,
    report: Callable[[str], None],
    store: str = "kglite",
) -> Iterator[Step | Cost]:
    """Build a world of each size in `folder` and run every strategy over it, smallest first.

    What was measured before in the same folder is not measured again. Raises InputError where the folder was begun
    with another store or number of questions.
    """
    home = Home(folder)
    home.prepare()
    journal = Journal.open(folder / JOURNAL, {"questions": questions, "store": store})
    for size in sorted(sizes):
        yield from _Size(size, home, journal, report, store).measured(strategies, questions)


@dataclass(frozen=True)
class _Size:
    """The measurement of one size; `known` is what the journal has of it."""

    size: int
    home: Home
    journal: Journal
    report: Callable[[str], None]
    store: str

    @cached_property
    def known(self) -> dict[str, Step | Cost]:
        of_size = [line for line in self.journal.lines() if line.get("passages") == self.size]
        steps = {step.name: step for step in (_read(line, Step) for line in of_size) if step}
        costs = {cost.label: cost for cost in (_read(line, Cost) for line in of_size) if cost}
        return {**steps, **costs}

    @cached_property
    def begun(self) -> set[str]:
        """The steps that an earlier run began."""
        lines = (line for line in self.journal.lines() if line.get("passages") == self.size)
        return {str(line["begun"]) for line in lines if "begun" in line}

    def _options(self) -> GraphOptions:
        return GraphOptions(dataset=str(self._world), store=self.store)

    @property
    def _world(self) -> Path:
        return self.home.root / f"world-{self.size}"

    def measured(self, strategies: Mapping[str, Strategy], questions: int) -> Iterator[Step | Cost]:
        if not self.known.keys() >= {*STEPS, *strategies}:
            self._measure(strategies, questions)
        yield from (self.known[name] for name in (*STEPS, *strategies))

    def _built(self, questions: int) -> tuple[Benchmark, Index]:
        """The benchmark and the index of its graph; what is missing of them is made."""
        world = self._world
        if not world.exists():
            self.known.pop(WORLD, None)
        if WORLD not in self.known:
            self._step(WORLD, partial(write_benchmark, world, SEED, self.size, questions))
        options = self._options()
        benchmark, index = self._step(OPENED, partial(self._opened, options))
        self._build(options.graph_plan(benchmark, self.home), index)
        self._step(BM25, lambda: index.lexical)
        self._step(TAGS, lambda: index.tagger)
        for name in BUILD.values():  # a graph that was there before had none of these to do
            if name not in self.known:
                self._add(Step(self.size, name, 0.0, 0.0, 0, resumed=True))
        return benchmark, index

    def _measure(self, strategies: Mapping[str, Strategy], questions: int) -> None:
        benchmark, index = self._built(questions)
        for label, strategy in strategies.items():
            if label not in self.known:
                self.report(f"{self.size:,} passages: {label}")
                self._add(measure(label, strategy, index, [question.question for question in benchmark.questions]))

    def _build(self, plan: GraphPlan, index: Index) -> None:
        """Build the graph; what its steps do not take is `OTHER`."""
        before, between = frozenset(self.known), [0]

        def step(name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
            between.append(peak())
            return self._step(BUILD[name], partial(fn, *args, **kwargs))

        _, took = spent(lambda: built_graph(plan, index, self.home, step))
        if OTHER not in self.known:
            own = [self.known[name] for name in BUILD.values() if name in self.known and name not in before]
            steps = [one for one in own if isinstance(one, Step)]
            cpu, clock = took.cpu - sum(one.cpu for one in steps), took.clock - sum(one.clock for one in steps)
            self._add(Step(self.size, OTHER, cpu, clock, max(took.peak, *between), BUILD["write"] in before))

    def _opened(self, options: GraphOptions) -> tuple[Benchmark, Index]:
        benchmark = options.benchmark(self.home)
        return benchmark, open_index(options, options.graph_plan(benchmark, self.home), self.home, search=False)

    def _step(self, name: str, work: Callable[[], T]) -> T:
        """Do a step, and note what it took unless an earlier run has."""
        self.report(f"{self.size:,} passages: {name}")
        if name in self.known:
            return work()
        resumed = name in self.begun
        self.journal.add({"passages": self.size, "begun": name})
        result, took = spent(work)
        self._add(Step(self.size, name, took.cpu, took.clock, took.peak, resumed))
        return result

    def _add(self, found: Step | Cost) -> None:
        self.known[found.name if isinstance(found, Step) else found.label] = found
        self.journal.add(asdict(found))


def _read(line: Mapping[str, Any], kind: type[F]) -> F | None:
    """What a line of the journal holds of a kind; None where a field is missing, unknown or of another type."""
    try:
        return TypeAdapter(kind).validate_python(line)
    except ValidationError:
        return None
