"""The questions as the page's script reads them: a light index, and packed details opened one batch at a time.

The index is plain JSON so that filters work at once. Details (rankings, paths, passage texts) are gzip in base64,
BATCH questions together: a browser unpacks a batch when one of its questions is opened, which keeps 500 questions ×
10 labels quick to open and small. A page holds `PACKED_LIMIT` of them. Where all of them would be more, every question
has brief details, and as many as there is room for have all: first those on which the baseline and the best other
label differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite

from hopbench.eval.metrics import sign_of
from hopbench.eval.report.data import ReportData
from hopbench.eval.report.details import Batch
from hopbench.eval.report.page_schema import QuestionIndex, QuestionLine
from hopbench.eval.types import BenchmarkQuestion

BATCH = 20  # questions unpacked together: about 100 kB
PACKED_LIMIT = 12_000_000  # characters of details in one page: with Plotly (2 MB) and 10,000 lines of index (4 MB) < 20


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
