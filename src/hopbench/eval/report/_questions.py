"""The questions as the page's script reads them: a light index, and packed details opened one batch at a time.

The index is plain JSON so that filters work at once. Details (rankings, paths, passage texts) are gzip in base64,
`BATCH` questions together: a browser unpacks a batch when one of its questions is opened, which keeps 500 questions ×
10 labels small and quick to open. A page holds at most `PACKED_LIMIT` characters of them. Beyond that every question
gets brief details, and as many as fit get full ones: first those on which the baseline and the best other label differ.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NotRequired, TypedDict

from hopbench.eval.explain.answers import note_words, quote
from hopbench.eval.metrics import sign_of
from hopbench.eval.report.data import ReportData
from hopbench.eval.runs.files import HitEntry, StepEntry
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO

TOP = 10  # hits shown for each label, and gold below them
BRIEF_TOP = 3
GOLD_CHARACTERS = 2_000
SNIPPET_CHARACTERS = 280
BATCH = 20  # questions unpacked together: about 100 kB
PACKED_LIMIT = 12_000_000  # characters of details in one page: with Plotly (2 MB) and 10,000 lines of index (4 MB) < 20


class QuestionLine(TypedDict):
    """A question in the page's list: gold `titles`, whether each label `found` all, and where its details are.

    `at` is (batch, place in it), None where they were left out.
    """

    id: str
    text: str
    type: str
    answer: str | None
    titles: Sequence[str]
    found: Sequence[int | None]
    at: tuple[int, int] | None


class QuestionIndex(TypedDict):
    """What the page's list and filters need."""

    labels: Sequence[str]
    baseline: str
    metric: str
    questions: Sequence[QuestionLine]


class Context(TypedDict):
    """The context that a reader got: its tokens, those of the graph `block` before the passages, and the passages."""

    tokens: int
    block_tokens: int
    block: str
    passages: Sequence[int]


class Notes(TypedDict, total=False):
    """What the strategy noted, as (name, words), and the context; empty where the run has no traces."""

    trace: Sequence[Sequence[str]]
    context: Context


class LabelDetails(Notes):
    """A label's answer to one question; the numbers but `ranks` and `hits` are missing where it has no row.

    In brief details a hit is its passage's number alone. `set` says which of several gold sets counts.
    """

    failure: str | None
    ms: NotRequired[float | None]
    listed: NotRequired[int]
    ranks: Sequence[int | None]
    set: NotRequired[str]
    hits: Sequence[list[Any] | int]


class QuestionDetails(TypedDict):
    """The details of a question: gold passages by number, and an entry per label in the index's order.

    `sets` holds the gold of each set, where there are several.
    """

    aliases: Sequence[str]
    gold: Sequence[int]
    sets: NotRequired[Sequence[Sequence[int]]]
    labels: Sequence[LabelDetails]


class Batch:
    """Collects a batch's details; passages and path nodes are stored once and pointed to by number.

    A `brief` one has the ranks of gold, of hits the first by passage alone, and the beginning of gold passages' texts:
    a thirtieth of the size.
    """

    def __init__(self, data: ReportData, *, brief: bool = False) -> None:
        self.data, self.brief = data, brief
        self.passages: dict[str, int] = {}
        self.nodes: dict[str, int] = {}
        self.gold: set[str] = set()

    def pack(self, questions: Sequence[BenchmarkQuestion]) -> str:
        """The details of questions as gzip in base64."""
        self.gold = {gold for q in questions for gold in q.gold}
        details = [self._question(q) for q in questions]
        titles = self.data.benchmark.titles
        content = {
            "questions": details,
            "brief": self.brief,
            "passages": [[key, self._title(key), self._text(key)] for key in self.passages],
            "nodes": [[self._name(key), int(key in titles)] for key in self.nodes],
        }
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()

    def _question(self, q: BenchmarkQuestion) -> QuestionDetails:
        details: QuestionDetails = {
            "aliases": list(q.aliases),
            "gold": [self._passage(gold) for gold in q.gold],
            "labels": [self._label(q, label) for label in self.data.labels],
        }
        if len(q.gold.sets) > 1:
            details["sets"] = [list(map(self._passage, one)) for one in q.gold.sets]
        return details

    def _label(self, q: BenchmarkQuestion, label: str) -> LabelDetails:
        row = self.data.rows.get((q.id, label))
        if row is None:
            return {"failure": "no row for this question", "ranks": [], "hits": []}
        ranked, scores = row["ranked_ids"], row["scores"]
        rank_of = {passage: rank for rank, passage in enumerate(ranked, start=1)}
        hits = () if self.brief else self.data.paths.get((q.id, label), ())
        known = {hit["passage_id"]: hit for hit in hits}
        shown = ranked[:TOP] + sorted((g for g in q.gold if rank_of.get(g, 0) > TOP), key=lambda g: rank_of[g])
        return {
            "failure": row["failure"],
            "ms": _number(row.get("latency_ms")),
            "listed": len(ranked),
            "ranks": [rank_of.get(gold) for gold in q.gold],
            "set": self._best_set(q, ranked[:TOP]),
            "hits": [self._passage(p) for p in ranked[:BRIEF_TOP]]
            if self.brief
            else [self._hit(p, rank_of[p], scores, known.get(p), p in q.gold) for p in shown],
            **self._notes(q, label),
        }

    def _best_set(self, q: BenchmarkQuestion, found: Sequence[str]) -> str:
        """Which of several gold sets counts, and what of it is not among the first; empty where there is one."""
        if len(q.gold.sets) < 2:
            return ""
        number, lacking = q.gold.best_set(found)
        titles = self.data.benchmark.titles
        lacks = f"lacks {', '.join(titles.get(one) or one for one in lacking)}" if lacking else "complete"
        return f"{number} of {len(q.gold.sets)}: {lacks} in the top {TOP}"

    def _notes(self, q: BenchmarkQuestion, label: str) -> Notes:
        row = None if self.brief else self.data.trace_rows.get((q.id, label))
        if row is None:
            return {}
        notes = json.loads(row["trace"])
        return {
            "trace": [[name.replace("_", " "), note_words(value, self._named)] for name, value in notes.items()],
            "context": {
                "tokens": int(row["context_tokens"]),
                "block_tokens": int(row["block_tokens"]),
                "block": self.data.rows[q.id, label].get("graph_context") or "",
                "passages": [self._passage(passage) for passage in row["context_ids"]],
            },
        }

    def _named(self, text: str) -> str:
        """Nodes by name; a passage in brackets, as `explain` prints it."""
        name = self._name(text)
        return f"[{name}]" if text in self.data.benchmark.titles else name

    def _hit(self, passage: str, rank: int, scores: list[float], hit: HitEntry | None, gold: bool) -> list[Any]:
        score = scores[rank - 1] if rank <= len(scores) else hit["score"] if hit else None
        steps = hit["path"] if hit else ()
        path = [
            [s["edge"], self._node(s["source"]), self._node(s["target"]), _number(s["weight"]), _number(s["score"])]
            for s in steps
        ]
        return [
            self._passage(passage),
            rank,
            _number(score),
            int(gold),
            hit["origin"] if hit else "",
            {name: _number(value) for name, value in hit["components"].items()} if hit else {},
            path,
            [line for step in steps for line in self._quotes(step)],
            list(dict.fromkeys(line for step in steps for line in self._stated(step))),
        ]

    def _quotes(self, step: StepEntry) -> list[list[str]]:
        """Title and quoted sentence, the mention apart, of a step between a passage and an entity it names."""
        titles = self.data.benchmark.titles
        passages = [end for end in (step["source"], step["target"]) if end in titles]
        if step["edge"] != MENTIONED_IN or len(passages) != 1:
            return []
        (passage,) = passages
        entity = step["target"] if passage == step["source"] else step["source"]
        quoted = quote(titles[passage], self.data.benchmark.by_id[passage].text, self._name(entity))
        return [[titles[passage] or passage, quoted.before, quoted.mention, quoted.after]] if quoted else []

    def _stated(self, step: StepEntry) -> Sequence[str]:
        """What is stated of the entities that a step joins: the step itself may go against a relation."""
        first, second = sorted((step["source"], step["target"]))
        return self.data.stated.get((first, second), ()) if step["edge"] == RELATED_TO else ()

    def _passage(self, key: str) -> int:
        return self.passages.setdefault(key, len(self.passages))

    def _node(self, key: str) -> int:
        return self.nodes.setdefault(key, len(self.nodes))

    def _name(self, node: str) -> str:
        """A node as a reader knows it; an entity's id without its prefix reads well enough where no name is given."""
        return self.data.names.get(node) or self.data.benchmark.titles.get(node) or node.removeprefix("e:")

    def _title(self, key: str) -> str:
        source = self.data.benchmark.sources.get(key)
        title = self.data.benchmark.titles.get(key, key)
        return " · ".join(filter(None, (title, str(source)))) if source else title

    def _text(self, key: str) -> str:
        if self.brief and key not in self.gold:
            return ""
        long = key in self.gold and not self.brief
        known = self.data.benchmark.by_id.get(key)
        text, limit = (
            known.text if known else "The corpus lacks this passage.",
            GOLD_CHARACTERS if long else SNIPPET_CHARACTERS,
        )
        return text if len(text) <= limit else f"{text[:limit].rstrip()} …"


def _number(value: Any) -> float | None:
    """Four significant digits: PageRank's scores are too small for four decimals."""
    return float(f"{value:.4g}") if value is not None and isfinite(value) else None


@dataclass
class Details:
    """Packed batches, and question id → (batch, place in it); a question that is not there has no details.

    `whole` is how many of the `asked` questions have all of theirs, the ones first on which the labels of `pair`
    differ; the others are `brief` or left out.
    """

    asked: int
    batches: list[str] = field(default_factory=list)
    place: dict[str, tuple[int, int]] = field(default_factory=dict)
    whole: int = 0
    pair: tuple[str, str] | None = None

    @property
    def brief(self) -> int:
        """How many questions have brief details."""
        return len(self.place) - self.whole

    def add(self, questions: Sequence[BenchmarkQuestion], content: str) -> None:
        """Put a batch at the end; its questions are shown from it from now on."""
        self.place |= {q.id: (len(self.batches), slot) for slot, q in enumerate(questions)}
        self.batches.append(content)


def question_index(data: ReportData, details: Details) -> QuestionIndex:
    """The index of all questions, each with the place of its details."""
    lines: list[QuestionLine] = [
        {
            "id": q.id,
            "text": q.text,
            "type": q.type,
            "answer": q.answer,
            "titles": [data.benchmark.titles.get(gold, gold) for gold in q.gold],
            "found": [found(data, q.id, label) for label in data.labels],
            "at": details.place.get(q.id),
        }
        for q in _asked(data)
    ]
    return {"labels": data.labels, "baseline": data.baseline, "metric": data.primary, "questions": lines}


def found(data: ReportData, question_id: str, label: str) -> int | None:
    """1 when the headline metric is full, 0 when not, None for a failure or where it was not measured."""
    row = data.rows.get((question_id, label), {})
    value = row.get(data.primary)
    if row.get("failure") is not None or value is None or not isfinite(value):
        return None
    return int(value >= 1.0 - 1e-9 if sign_of(data.primary) > 0 else value <= 1e-9)


def packed_details(data: ReportData) -> Details:
    """All details, in the index's order, where they fit into one page; else brief ones, and all of some questions."""
    asked = _asked(data)
    details = Details(len(asked))
    sample = asked[:: max(len(asked) // BATCH, 1)][:BATCH]
    expected = len(Batch(data).pack(sample)) * len(asked) / max(len(sample), 1)
    if expected < 1.1 * PACKED_LIMIT:  # the sample may be a tenth off; beyond that, what is packed would be thrown away
        if _pack(details, asked, lambda: Batch(data), PACKED_LIMIT) == len(asked):
            details.whole = len(asked)
            return details
        details = Details(len(asked))
    listed = _pack(details, asked, lambda: Batch(data, brief=True), PACKED_LIMIT)
    if listed == len(asked):
        room = PACKED_LIMIT - sum(map(len, details.batches))
        details.pair = _pair(data)
        telling = sorted(asked, key=lambda q: len({found(data, q.id, label) for label in details.pair or ()}) < 2)
        details.whole = _pack(details, telling, lambda: Batch(data), room)
    return details


def _pack(details: Details, questions: Sequence[BenchmarkQuestion], batch: Callable[[], Batch], room: int) -> int:
    """Add batches while there is room for them; returns how many questions they hold."""
    done = 0
    for part in _parts(questions):
        content = batch().pack(part)
        room -= len(content)
        if room < 0:
            break
        details.add(part, content)
        done += len(part)
    return done


def _parts(questions: Sequence[BenchmarkQuestion]) -> Iterator[Sequence[BenchmarkQuestion]]:
    return (questions[start : start + BATCH] for start in range(0, len(questions), BATCH))


def _pair(data: ReportData) -> tuple[str, str] | None:
    """The baseline and the best other label, whose difference a reader asks about first."""
    others = [label for label in data.contenders or data.labels if label != data.baseline]
    return (data.baseline, others[0]) if data.baseline and others else None


def _asked(data: ReportData) -> list[BenchmarkQuestion]:
    known = {question_id for question_id, _ in data.rows}
    return [q for q in data.benchmark.questions if q.id in known]
