"""HotpotQA and 2WikiMultihopQA, which share a layout: official JSON files, copies as JSON lines, the Hub's records.

Sources: Yang et al., HotpotQA (arXiv 1809.09600), https://hotpotqa.github.io; Ho et al., 2WikiMultihopQA
(arXiv 2011.01060), https://github.com/Alab-NII/2wikimultihop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hopbench.eval.benchmarks.beir import Parsed
from hopbench.eval.benchmarks.contexts import CorpusBuilder, Fact, Titled, pooled_id, read_context, read_facts
from hopbench.eval.benchmarks.fields import Place, Record, Rows, kind, list_field, required
from hopbench.eval.benchmarks.formats import Loader
from hopbench.eval.benchmarks.questions import keep_judged, make_question, read_questions
from hopbench.eval.benchmarks.supporting import Supporting
from hopbench.eval.types import BenchmarkQuestion

_READ = frozenset({"_id", "id", "question", "context", "supporting_facts"})


def read_hotpotqa(source: str, rows: Rows, corpus: CorpusBuilder | None = None) -> Parsed:
    """Contexts pooled into one corpus, or looked up in a corpus that is given; what supporting facts name is gold.

    `metadata` keeps `level` and whatever else the record has, with `supporting_facts` as [passage id, sentence] and
    `context_ids` as the passages that came with the question.

    Raises
    ------
    InputError
        For a record of another shape (file, record and field are named) and for gold titles that no context holds.
    """
    corpus = CorpusBuilder() if corpus is None else corpus
    read = [_Read.of(record, place, corpus) for place, record in rows]  # a fact may mean a passage of a later context
    supporting = Supporting(corpus)
    questions = read_questions(source, ((one.place, one.question(supporting)) for one in read))
    corpus.refuse_missing(source)
    supporting.report()
    return corpus.passages(source), keep_judged(source, questions)


class _Read(NamedTuple):
    """A record whose context has been added to the corpus."""

    place: Place
    id: str
    text: object
    own: Sequence[Titled]
    facts: Sequence[Fact]
    metadata: Mapping[str, Any]

    @classmethod
    def of(cls, record: Record, place: Place, corpus: CorpusBuilder) -> _Read:
        context = read_context(record, place)
        question_id = pooled_id(record, place, (one.title for one in context))
        metadata = {key: value for key, value in record.items() if key not in _READ}
        own = [corpus.take(one, place) for one in context]
        text = required(record, place, "question")
        return cls(place, question_id, text, own, read_facts(record, place), metadata)

    def question(self, supporting: Supporting) -> BenchmarkQuestion:
        gold = supporting.passages(self.facts, self.own, self.place)
        metadata: Mapping[str, Any] = {
            **self.metadata,
            "context_ids": [one.passage for one in self.own if one.passage],
            "supporting_facts": [[one, fact.sentence] for one, fact in zip(gold, self.facts, strict=True)],
        }
        return make_question(self.place, self.id, self.text, metadata, gold)


def read_2wiki(source: str, rows: Rows, corpus: CorpusBuilder | None = None) -> Parsed:
    """As HotpotQA, whose layout it shares; `metadata.evidences` holds (subject, relation, object) triples.

    Raises
    ------
    InputError
        As `read_hotpotqa`; also for evidences that are not triples.
    """
    return read_hotpotqa(source, _with_evidences(rows), corpus)


def _with_evidences(rows: Rows) -> Iterator[tuple[Place, Record]]:
    for place, record in rows:
        evidences = record.get("evidences")
        if isinstance(evidences, dict):  # the Hub's columns: {"fact": [...], "relation": [...], "entity": [...]}
            columns = [list_field(evidences, place, name) for name in evidences]
            evidences = [list(triple) for triple in zip(*columns, strict=False)]
        yield place, {**record, "evidences": _triples(evidences or [], place)}


def _triples(evidences: object, place: Place) -> list[list[str]]:
    if not isinstance(evidences, list | tuple):
        raise place.error(f"field 'evidences' must be a list of triples, not {kind(evidences)}")
    for triple in evidences:
        if not isinstance(triple, list | tuple) or len(triple) != 3:
            raise place.error(
                f"field 'evidences' must be a list of [subject, relation, object], but holds {kind(triple)}"
            )
    return [list(triple) for triple in evidences]


def _is_hotpotqa(record: Record) -> bool:
    return "context" in record and "question" in record and "evidences" not in record and "paragraphs" not in record


def _is_2wiki(record: Record) -> bool:
    return {"context", "question", "evidences"} <= record.keys() and "paragraphs" not in record


HOTPOTQA = Loader(_is_hotpotqa, read_hotpotqa)
TWOWIKI = Loader(_is_2wiki, read_2wiki)
