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
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import isfinite
from typing import Any

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


class Batch:
    """Collects a batch's details; passages and path nodes are stored once, and referred to by their index.

    A `brief` one has the ranks of gold, of hits the first by passage alone, and the beginning of gold passages' texts:
    a thirtieth of the size.
    """

    def __init__(self, data: ReportData, *, brief: bool = False) -> None:
        self.data, self.brief = data, brief
        self._passages = defaultdict[str, int](count().__next__)  # a new key gets the next index
        self._nodes = defaultdict[str, int](count().__next__)

    def pack(self, questions: Sequence[BenchmarkQuestion]) -> str:
        """The details of questions as gzip in base64.

        Of a question these are its answer's aliases, its gold passages (and each set of them where there are several),
        and an entry per label in the index's order.
        """
        details = []
        for q in questions:
            one = {"aliases": list(q.aliases), "gold": list(map(self._passages.__getitem__, q.gold))}
            one["labels"] = [self._label(q, label) for label in self.data.labels]
            if len(q.gold.sets) > 1:
                one["sets"] = [list(map(self._passages.__getitem__, gold)) for gold in q.gold.sets]
            details.append(one)
        gold = {passage for q in questions for passage in q.gold}
        titles = self.data.benchmark.titles
        content = {
            "questions": details,
            "brief": self.brief,
            "passages": [self._shown(key, key in gold) for key in self._passages],
            "nodes": [[self._name(key), int(key in titles)] for key in self._nodes],
        }
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()

    def _label(self, q: BenchmarkQuestion, label: str) -> dict[str, Any]:
        """A label's answer; in brief details a hit is its passage alone. `set` says which of several gold sets counts.

        With traces, `trace` has the strategy's notes as (name, words), and `context` what a reader got: its tokens,
        those of the graph `block` before the passages, and the passages.
        """
        row = self.data.rows.get((q.id, label))
        if row is None:
            return {"failure": "no row for this question", "ranks": [], "hits": []}
        ranked = row["ranked_ids"]
        rank_of = {passage: rank for rank, passage in enumerate(ranked, start=1)}
        best = ""
        if len(q.gold.sets) > 1:
            number, lacking = q.gold.best_set(ranked[:TOP])
            lacks = ", ".join(self.data.benchmark.titles.get(one) or one for one in lacking)
            state = f"lacks {lacks}" if lacking else "complete"
            best = f"{number} of {len(q.gold.sets)}: {state} in the top {TOP}"
        details = {
            "failure": row["failure"],
            "ms": _number(row.get("latency_ms")),
            "listed": len(ranked),
            "ranks": [rank_of.get(gold) for gold in q.gold],
            "set": best,
        }
        if self.brief:
            return details | {"hits": list(map(self._passages.__getitem__, ranked[:BRIEF_TOP]))}
        known = {hit["passage_id"]: hit for hit in self.data.paths.get((q.id, label), ())}
        shown = ranked[:TOP] + sorted((g for g in q.gold if rank_of.get(g, 0) > TOP), key=lambda g: rank_of[g])
        details["hits"] = [self._hit(p, rank_of[p], row["scores"], known.get(p), p in q.gold) for p in shown]
        trace = self.data.trace_rows.get((q.id, label))
        if trace is not None:
            notes = json.loads(trace["trace"]).items()
            details["trace"] = [[name.replace("_", " "), note_words(value, self._in_note)] for name, value in notes]
            details["context"] = {
                "tokens": int(trace["context_tokens"]),
                "block_tokens": int(trace["block_tokens"]),
                "block": row.get("graph_context") or "",
                "passages": list(map(self._passages.__getitem__, trace["context_ids"])),
            }
        return details

    def _in_note(self, node: str) -> str:
        """Nodes by name; a passage in brackets, as `explain` prints it."""
        return f"[{self._name(node)}]" if node in self.data.benchmark.titles else self._name(node)

    def _hit(self, passage: str, rank: int, scores: list[float], hit: HitEntry | None, gold: bool) -> list[Any]:
        score = scores[rank - 1] if rank <= len(scores) else hit["score"] if hit else None
        steps = hit["path"] if hit else ()
        path, stated = [], dict[str, None]()
        for step in steps:
            source, target = step["source"], step["target"]
            weights = _number(step["weight"]), _number(step["score"])
            path.append([step["edge"], self._nodes[source], self._nodes[target], *weights])
            if step["edge"] == RELATED_TO:  # what is stated of the two, whichever way the step goes
                stated |= dict.fromkeys(self.data.stated.get((min(source, target), max(source, target)), ()))
        return [
            self._passages[passage],
            rank,
            _number(score),
            int(gold),
            hit["origin"] if hit else "",
            {name: _number(value) for name, value in hit["components"].items()} if hit else {},
            path,
            [line for step in steps for line in self._quotes(step)],
            list(stated),
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

    def _name(self, node: str) -> str:
        """A node as a reader knows it; an entity's id without its prefix reads well enough where no name is given."""
        return self.data.names.get(node) or self.data.benchmark.titles.get(node) or node.removeprefix("e:")

    def _shown(self, key: str, gold: bool) -> list[str]:
        """A passage's id, its title with its source, and its text: in brief details that of gold passages alone."""
        benchmark = self.data.benchmark
        title, source = benchmark.titles.get(key, key), benchmark.sources.get(key)
        if source:
            title = " · ".join(filter(None, (title, str(source))))
        if self.brief and not gold:
            return [key, title, ""]
        passage = benchmark.by_id.get(key)
        text = passage.text if passage else "The corpus lacks this passage."
        limit = GOLD_CHARACTERS if gold and not self.brief else SNIPPET_CHARACTERS
        return [key, title, text if len(text) <= limit else f"{text[:limit].rstrip()} …"]


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

    def pack(self, questions: Sequence[BenchmarkQuestion], batch: Callable[[], Batch], room: int) -> int:
        """Add batches while there is room for them; returns how many questions they hold."""
        done = 0
        for start in range(0, len(questions), BATCH):
            part = questions[start : start + BATCH]
            content = batch().pack(part)
            room -= len(content)
            if room < 0:
                break
            self.place |= {q.id: (len(self.batches), slot) for slot, q in enumerate(part)}
            self.batches.append(content)
            done += len(part)
        return done


def question_index(data: ReportData, details: Details) -> dict[str, Any]:
    """What the page's list and filters need of all questions.

    Of each its gold `titles`, whether each label `found` all of them, and `at`, (batch, place in it) of its details,
    None where they were left out.
    """
    lines = [
        {
            "id": q.id,
            "text": q.text,
            "type": q.type,
            "answer": q.answer,
            "titles": [data.benchmark.titles.get(gold, gold) for gold in q.gold],
            "found": [found(data, q.id, label) for label in data.labels],
            "at": details.place.get(q.id),
        }
        for q in data.asked
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
    asked = data.asked
    details = Details(len(asked))
    sample = asked[:: max(len(asked) // BATCH, 1)][:BATCH]
    expected = len(Batch(data).pack(sample)) * len(asked) / max(len(sample), 1)
    if expected < 1.1 * PACKED_LIMIT:  # the sample may be a tenth off; beyond that, what is packed would be thrown away
        if details.pack(asked, lambda: Batch(data), PACKED_LIMIT) == len(asked):
            details.whole = len(asked)
            return details
        details = Details(len(asked))
    if details.pack(asked, lambda: Batch(data, brief=True), PACKED_LIMIT) == len(asked):
        room = PACKED_LIMIT - sum(map(len, details.batches))
        others = [label for label in data.contenders or data.labels if label != data.baseline]
        if data.baseline and others:  # whose difference a reader asks about first
            details.pair = data.baseline, others[0]
        differing = sorted(asked, key=lambda q: len({found(data, q.id, label) for label in details.pair or ()}) < 2)
        details.whole = details.pack(differing, lambda: Batch(data), room)
    return details
