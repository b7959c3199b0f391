"""The formats of records: HotpotQA, 2WikiMultihopQA, MuSiQue, and those that the loaders of plug-ins read.

Sources: Yang et al., HotpotQA (arXiv 1809.09600), https://hotpotqa.github.io; Ho et al., 2WikiMultihopQA
(arXiv 2011.01060), https://github.com/Alab-NII/2wikimultihop; Trivedi et al., MuSiQue (arXiv 2108.00573),
https://github.com/StonyBrookNLP/musique.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from hopbench.eval.benchmarks.beir import Parsed
from hopbench.eval.benchmarks.contexts import (
    CorpusBuilder,
    Fact,
    Supporting,
    Titled,
    pooled_id,
    read_context,
    read_facts,
)
from hopbench.eval.benchmarks.fields import Place, Record, Rows, kind, list_field, required, text_value
from hopbench.eval.benchmarks.questions import keep_judged, make_question, read_questions
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.plugins.registry import LOADERS, Registry
from hopbench.retrieval.support.errors import HopBenchError, InputError
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.types import Passage


@dataclass(frozen=True)
class Loader:
    """Reads one format of records: JSON lines, a JSON array, a table, or a Hub set's rows.

    `detects` says of a file's first record whether the format is this one. `read` gets the file's name and its records,
    each with its place, and returns all passages and questions; what it cannot use it refuses with `place.error(…)`.
    """

    detects: Callable[[Record], bool]
    read: Callable[[str, Rows], Parsed]


def usable(name: str, loader: object) -> Loader:
    """Return the loader; refuse any other object, and the name of a built-in format."""
    if not isinstance(loader, Loader):
        raise InputError("it is no Loader (hopbench.eval.benchmarks.formats)")
    if name == "beir":
        raise InputError("the format 'beir' is HopBench's own: give the loader another name")
    return loader


def detects(name: str, loader: Loader, record: Record) -> bool:
    """Whether a plug-in's loader accepts a record; if it fails, log a notice and return False."""
    try:
        return bool(loader.detects(record))
    except Exception as error:  # a plug-in may raise anything
        notice(f"the loader {name!r} cannot tell whether a file is its own ({type(error).__name__}: {error})")
        return False


def read_by(name: str, loader: Loader) -> Callable[[str, Rows], Parsed]:
    """Wrap a plug-in's `read`: its exceptions and malformed results become errors that name the loader."""

    def read(source: str, rows: Rows) -> Parsed:
        try:
            read_passages, read_questions = loader.read(source, rows)
            passages, questions = tuple(read_passages), tuple(read_questions)
        except HopBenchError:
            raise
        except Exception as error:  # a plug-in may raise anything
            raise InputError(f"{source}: the loader {name!r} failed with {type(error).__name__}: {error}") from error
        for items, wanted in ((passages, Passage), (questions, BenchmarkQuestion)):
            if other := next((one for one in items if not isinstance(one, wanted)), None):
                raise InputError(
                    f"{source}: the loader {name!r} returned {type(other).__name__} where {wanted.__name__} belongs: "
                    "it returns all passages, then all questions"
                )
        return passages, questions

    return read


_HOTPOTQA_FIELDS = frozenset({"_id", "id", "question", "context", "supporting_facts"})


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
    # All records first: a fact may name a passage of a later context.
    read = [_PooledRecord.of(record, place, corpus) for place, record in rows]
    supporting = Supporting(corpus)
    questions = read_questions(source, ((one.place, one.question(supporting)) for one in read))
    corpus.refuse_missing(source)
    supporting.report()
    return corpus.passages(source), keep_judged(source, questions)


class _PooledRecord(NamedTuple):
    """A record whose context has been added to the corpus."""

    place: Place
    id: str
    text: object
    own: Sequence[Titled]
    facts: Sequence[Fact]
    metadata: Mapping[str, Any]

    @classmethod
    def of(cls, record: Record, place: Place, corpus: CorpusBuilder) -> _PooledRecord:
        context = read_context(record, place)
        question_id = pooled_id(record, place, (one.title for one in context))
        metadata = {key: value for key, value in record.items() if key not in _HOTPOTQA_FIELDS}
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


_MUSIQUE_FIELDS = frozenset({"_id", "id", "question", "paragraphs", "question_decomposition"})


def read_musique(source: str, rows: Rows, corpus: CorpusBuilder | None = None) -> Parsed:
    """Paragraphs pooled into one corpus, or looked up in one that is given; those marked `is_supporting` are gold.

    The type is the id's hop pattern (`2hop`, `3hop1`, …). `metadata.decomposition` lists the single-hop questions with
    answer and passage id. A question marked unanswerable (MuSiQue-Full pairs each with an answerable twin of the same
    id) has no complete evidence to find: its paragraphs join the corpus, the question is left out.

    Raises
    ------
    InputError
        For a record of another shape; file, line and field are named.
    """
    corpus = CorpusBuilder() if corpus is None else corpus
    questions = read_questions(source, _answerable(rows, corpus))
    corpus.refuse_missing(source)
    return corpus.passages(source), keep_judged(source, questions)


def _answerable(rows: Rows, corpus: CorpusBuilder) -> Iterator[tuple[Place, BenchmarkQuestion]]:
    for place, record in rows:
        question = _musique_question(record, place, corpus)
        if record.get("answerable", True):
            yield place, question


def _musique_question(record: Record, place: Place, corpus: CorpusBuilder) -> BenchmarkQuestion:
    paragraphs = [_object(item, place, "paragraphs") for item in list_field(record, place, "paragraphs")]
    by_index: dict[int, str] = {}
    gold = []
    for position, paragraph in enumerate(paragraphs):
        title = text_value(place, "paragraphs.title", required(paragraph, place, "title"))
        field = "text" if "text" in paragraph and "paragraph_text" not in paragraph else "paragraph_text"
        text = text_value(place, f"paragraphs.{field}", required(paragraph, place, field))
        passage_id = corpus.add(title, text, place)
        by_index[_paragraph_index(paragraph.get("idx", position), place, "paragraphs.idx")] = passage_id
        if paragraph.get("is_supporting"):
            gold.append(passage_id)
            if not passage_id:
                corpus.miss(title, place)
    question_id = pooled_id(record, place, (str(paragraph["title"]) for paragraph in paragraphs))
    metadata: Mapping[str, Any] = {
        "type": question_id.split("__")[0] if "__" in question_id else "",
        **{key: value for key, value in record.items() if key not in _MUSIQUE_FIELDS},
        "context_ids": [passage_id for passage_id in by_index.values() if passage_id],
        "decomposition": _decomposition(record, place, by_index),
    }
    return make_question(place, question_id, required(record, place, "question"), metadata, gold)


def _decomposition(record: Record, place: Place, by_index: Mapping[int, str]) -> list[dict[str, object]]:
    """The single-hop questions in order; a step's passage is None where the file (unanswerable, test) names none."""
    if record.get("question_decomposition") is None:
        return []
    steps: list[dict[str, object]] = []
    for item in list_field(record, place, "question_decomposition"):
        step = _object(item, place, "question_decomposition")
        support = step.get("paragraph_support_idx")
        field = "question_decomposition.paragraph_support_idx"
        index = None if support is None else _paragraph_index(support, place, field)
        passage_id = None if index is None else by_index.get(index)
        steps.append({"question": step.get("question"), "answer": step.get("answer"), "passage_id": passage_id})
    return steps


def _paragraph_index(value: object, place: Place, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise place.error(f"field {field!r} must be an integer, not {kind(value)}")
    return value


def _object(value: object, place: Place, field: str) -> Record:
    if not isinstance(value, dict):
        raise place.error(f"field {field!r} must be a list of objects, but holds {kind(value)}")
    return value


MUSIQUE = Loader(lambda record: "paragraphs" in record, read_musique)


BUILT_IN: Mapping[str, str] = {
    "hotpotqa": "hopbench.eval.benchmarks.formats:HOTPOTQA",
    "2wiki": "hopbench.eval.benchmarks.formats:TWOWIKI",
    "musique": "hopbench.eval.benchmarks.formats:MUSIQUE",
}
"""Format → `module:loader`; an entry point of a package has the same form."""


@cache
def loaders() -> Registry[Loader]:
    """The built-in loaders and those that installed packages offer under the entry point `hopbench.loaders`."""
    return Registry("benchmark format", LOADERS, BUILT_IN, usable)


def detect(rows: Rows, source: str, format: str | None) -> tuple[Rows, Callable[[str, Rows], Parsed]]:
    """Choose the reader by the first record's fields; return an iterator over all records, and the reader."""
    iterator = iter(rows)
    first = next(iterator, None)
    if first is None:
        raise InputError(f"{source}: is empty: it must hold at least one record")
    name = format or _format_of(source, first[1])
    if name is None:
        fields = ", ".join(map(str, first[1])) or "none"
        others = loaders().plugins()
        also = f", nor one of the loaders installed ({', '.join(others)})" if others else ""
        raise first[0].error(
            f"not a HotpotQA, 2WikiMultihopQA or MuSiQue record{also} (fields: {fields}): "
            "for a corpus of your own give the folder that holds corpus.jsonl, and queries.jsonl if it has questions"
        )
    loader = loaders().get(name)
    return itertools.chain([first], iterator), loader.read if name in BUILT_IN else read_by(name, loader)


def _format_of(source: str, record: Record) -> str | None:
    """Return a record's format: a built-in one, else that of the only plug-in that accepts it."""
    built_in = next((name for name in BUILT_IN if loaders().get(name).detects(record)), None)
    if built_in is not None:
        return built_in
    plugins = [name for name in loaders().plugins() if detects(name, loaders().get(name), record)]
    if len(plugins) > 1:
        raise InputError(f"{source}: the loaders {', '.join(plugins)} all take it: uninstall all but one")
    return plugins[0] if plugins else None
