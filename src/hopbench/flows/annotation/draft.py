"""The questions that a person writes for a corpus, kept in a folder that is an ordinary data set at any time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from hopbench.eval.benchmarks.beir import set_role, write_benchmark
from hopbench.eval.files import write_atomically
from hopbench.eval.statistics import POWER, detectable_difference
from hopbench.eval.types import Benchmark
from hopbench.retrieval.support.errors import InputError

DRAFT_FILE, QUERIES_FILE, CORPUS_FILE = "annotations.json", "queries.jsonl", "corpus.jsonl"
MAX_PLACES = 6
MAX_GOLD_SETS = 64
MAX_QUESTIONS = 10_000
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2_000)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[\w.-]+$")]


class Annotation(BaseModel):
    """A question in the making.

    `evidence` maps a passage's id to the number of the piece of evidence that it holds, from 1: passages with the same
    number hold the same piece, so either of them is enough.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Id
    version: int = 0
    text: Text = ""
    answer: Text = ""
    aliases: tuple[Text, ...] = ()
    type: Text = ""
    evidence: Mapping[str, int] = {}

    @property
    def places(self) -> list[list[str]]:
        """For each piece of evidence, in order, the passages that hold it."""
        numbers = sorted(set(self.evidence.values()))
        return [[passage for passage, number in self.evidence.items() if number == wanted] for wanted in numbers]

    @property
    def missing(self) -> list[str]:
        """What the question still needs to be part of the data set."""
        return [name for name in ("text", "evidence") if not getattr(self, name)]

    def row(self) -> dict[str, Any]:
        """The question as a line of `queries.jsonl`."""
        sets = [list(dict.fromkeys(passages)) for passages in product(*self.places)]
        distinct = list({frozenset(passages): passages for passages in sets}.values())
        about = {"answer": self.answer, "answer_aliases": list(self.aliases)} if self.answer else {}
        row = {"_id": self.id, "text": self.text, "gold": distinct[0] if len(distinct) == 1 else distinct, **about}
        return row | ({"type": self.type} if self.type else {})


class OutdatedVersionError(InputError):
    """The question was changed in another window since it was read."""


@dataclass
class Draft:
    """The annotations of a corpus in `folder`; every change is on disk when `save` or `remove` returns."""

    benchmark: Benchmark
    folder: Path
    questions: dict[str, Annotation] = field(default_factory=dict)

    @classmethod
    def open(cls, benchmark: Benchmark, folder: Path) -> Draft:
        """Continue the folder's annotations, or begin them with the data set's own questions.

        Raises InputError for a folder that holds something else, or annotations of other passages.
        """
        draft = cls(benchmark, folder)
        file = folder / DRAFT_FILE
        if not file.exists():
            write_benchmark(Benchmark(benchmark.name, benchmark.passages, (), benchmark.role), folder)
            set_role(folder, "report")
            draft.questions = {one.id: one for one in draft._given()}
            draft._write()
            return draft
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            questions = [Annotation.model_validate(one) for one in stored["questions"]]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{file}: is no file of annotations ({error}): restore it, or name another --out"
            ) from error
        known = {passage.id for passage in benchmark.passages}
        if lost := sorted({passage for one in questions for passage in one.evidence} - known):
            raise InputError(
                f"{file}: marks {len(lost)} passages that {benchmark.name} lacks, such as {lost[0]!r}: annotate "
                f"the corpus that it was begun with ({folder / CORPUS_FILE}), or name another --out"
            )
        draft.questions = {one.id: one for one in questions}
        return draft

    def _given(self) -> Iterator[Annotation]:
        """The data set's own questions, where every piece of evidence can be told from their gold sets."""
        for one in self.benchmark.questions:
            places = _places_of(one.gold.sets)
            if places is None:
                raise InputError(
                    f"{self.benchmark.name}: question {one.id!r} has {len(one.gold.sets)} gold sets that are no "
                    "choice of one passage for each piece of evidence: annotate the documents without questions"
                )
            evidence = {passage: number for number, place in enumerate(places, 1) for passage in place}
            yield Annotation(
                id=one.id, text=one.text, answer=one.answer or "", aliases=one.aliases, type=one.type, evidence=evidence
            )

    def save(self, annotation: Mapping[str, Any]) -> Annotation:
        """Store a new or changed question and return it with its new version.

        Raises InputError for a field that is wrong, and OutdatedVersionError for a version that is not the stored one.
        """
        try:
            given = Annotation.model_validate(annotation)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(f"field {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        self._check(given)
        stored = self.questions.get(given.id)
        if stored is not None and stored.version != given.version:
            raise OutdatedVersionError(f"question {given.id} was changed in another window: reload the page")
        saved = given.model_copy(update={"version": given.version + 1})
        self._write({**self.questions, given.id: saved})
        return saved

    def remove(self, question: str) -> None:
        """Delete a question. Raises InputError where there is none of that id."""
        if question not in self.questions:
            raise InputError(f"question {question!r} is unknown: reload the page")
        self._write({key: one for key, one in self.questions.items() if key != question})

    def _check(self, given: Annotation) -> None:
        known = {passage.id for passage in self.benchmark.passages}
        if unknown := sorted(given.evidence.keys() - known):
            raise InputError(f"field evidence: passage {unknown[0]!r} is not in the corpus: reload the page")
        if wrong := [number for number in given.evidence.values() if not 1 <= number <= MAX_PLACES]:
            raise InputError(f"field evidence: number {wrong[0]} is not in 1..{MAX_PLACES}")
        sets = 1
        for place in given.places:
            sets *= len(place)
        if sets > MAX_GOLD_SETS:
            raise InputError(
                f"field evidence: {sets} combinations of passages, at most {MAX_GOLD_SETS}: mark fewer as either/or"
            )
        if given.id not in self.questions and len(self.questions) >= MAX_QUESTIONS:
            raise InputError(f"{MAX_QUESTIONS:,} questions are the limit of a set: name another --out")

    def _write(self, questions: Mapping[str, Annotation] | None = None) -> None:
        """Write the annotations, then the complete ones as the data set's questions; memory follows the disk."""
        questions = dict(self.questions if questions is None else questions)
        stored = {"questions": [one.model_dump(mode="json") for one in questions.values()]}
        write_atomically(self.folder / DRAFT_FILE, json.dumps(stored, ensure_ascii=False, indent=1).encode())
        self.questions = questions
        rows = [one.row() for one in questions.values() if not one.missing]
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_atomically(self.folder / QUERIES_FILE, lines.encode())

    def progress(self) -> dict[str, Any]:
        """How many questions there are, how they spread, and how large a difference they can show."""
        complete = [one for one in self.questions.values() if not one.missing]
        document = {passage.id: passage.source.document_id or passage.id for passage in self.benchmark.passages}
        gold = {document[passage] for one in complete for passage in one.evidence}
        hops = Counter(len(one.places) for one in complete)
        return {
            "questions": len(complete),
            "unfinished": len(self.questions) - len(complete),
            "hops": {str(count): hops[count] for count in sorted(hops)},
            "documents": len(gold),
            "documents_in_all": len(set(document.values())),
            "detectable": detectable_difference(len(complete)),
            "power": POWER,
        }


def _places_of(sets: Sequence[Sequence[str]]) -> list[list[str]] | None:
    """The pieces of evidence of which the gold sets are all choices; None where they are not."""
    if not sets:
        return []
    if len({len(passages) for passages in sets}) > 1:
        return None
    places = [list(dict.fromkeys(column)) for column in zip(*sets, strict=True)]
    choices = {frozenset(choice) for choice in product(*places)}
    flat = [passage for place in places for passage in place]
    same = choices == {frozenset(passages) for passages in sets} and len(set(flat)) == len(flat)
    return places if same else None
