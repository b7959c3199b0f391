"""Read the formats of records: HotpotQA, 2WikiMultihopQA, MuSiQue, and those of plug-ins' loaders.

Sources: Yang et al., HotpotQA (arXiv 1809.09600), https://hotpotqa.github.io; Ho et al., 2WikiMultihopQA
(arXiv 2011.01060), https://github.com/Alab-NII/2wikimultihop; Trivedi et al., MuSiQue (arXiv 2108.00573),
https://github.com/StonyBrookNLP/musique.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from hopbench.eval.benchmarks.beir import Parsed
from hopbench.eval.benchmarks.contexts import CorpusBuilder, pooled_id, read_context, read_facts
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

    Attributes:
        detects: Whether a file is of this format, by its first record.
        read: Takes the file's name and its records, each with its place, and returns all passages and questions; what
            it cannot use it refuses with `place.error(…)`.

    Example:
        `Loader(lambda record: {"fact1", "fact2"} <= record.keys(), read_qasc)`
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


_COMMON_FIELDS = frozenset({"_id", "id", "question"})
_HOTPOTQA_FIELDS = _COMMON_FIELDS | {"context", "supporting_facts"}
_MUSIQUE_FIELDS = _COMMON_FIELDS | {"paragraphs", "question_decomposition"}


def read_hotpotqa(source: str, rows: Rows, corpus: CorpusBuilder | None = None) -> Parsed:
    """Pool the contexts into one corpus, or look them up in one that is given; what supporting facts name is gold.

    `metadata` has whatever else the record has, `supporting_facts` as [passage id, sentence], and `context_ids`.
    """
    corpus = CorpusBuilder() if corpus is None else corpus
    read = []  # all records first: a fact may name a passage of a later context
    for place, record in rows:
        context = read_context(record, place)
        question_id = pooled_id(record, place, (title for title, _, _ in context))
        metadata = {key: value for key, value in record.items() if key not in _HOTPOTQA_FIELDS}
        own = [corpus.take(*passage, place) for passage in context]
        text = required(record, place, "question")
        read.append((place, question_id, text, metadata, own, read_facts(record, place)))

    def questions() -> Iterator[tuple[Place, BenchmarkQuestion]]:
        for place, question_id, text, metadata, own, facts in read:
            gold = corpus.gold(facts, own, place)
            metadata["context_ids"] = [one.passage for one in own if one.passage]
            metadata["supporting_facts"] = [[one, sentence] for one, (_, sentence) in zip(gold, facts, strict=True)]
            yield place, make_question(place, question_id, text, metadata, gold)

    found = read_questions(source, questions())
    corpus.check_gold(source)
    return corpus.passages(source), keep_judged(source, found)


def read_2wiki(source: str, rows: Rows, corpus: CorpusBuilder | None = None) -> Parsed:
    """Read as HotpotQA, whose layout it shares; `metadata.evidences` holds (subject, relation, object) triples."""

    def with_evidences() -> Iterator[tuple[Place, Record]]:
        for place, record in rows:
            given = record.get("evidences") or []
            if isinstance(given, dict):  # the Hub's columns: {"fact": [...], "relation": [...], "entity": [...]}
                given = list(zip(*(list_field(given, place, name) for name in given), strict=False))
            if not isinstance(given, list | tuple):
                raise place.error(f"field 'evidences' must be a list of triples, not {kind(given)}")
            for triple in given:
                if not isinstance(triple, list | tuple) or len(triple) != 3:
                    raise place.error(
                        f"field 'evidences' must be a list of [subject, relation, object], but holds {kind(triple)}"
                    )
            yield place, {**record, "evidences": [list(triple) for triple in given]}

    return read_hotpotqa(source, with_evidences(), corpus)


def read_musique(source: str, rows: Rows, corpus: CorpusBuilder | None = None) -> Parsed:
    """Pool the paragraphs into one corpus, or look them up in one that is given; those marked `is_supporting` are gold.

    The type is the id's hop pattern (`2hop`, `3hop1`, …). `metadata.decomposition` lists the single-hop questions with
    answer and passage id. A question marked unanswerable (MuSiQue-Full pairs each with an answerable twin of the same
    id) has no complete evidence to find: its paragraphs join the corpus, the question is left out.
    """
    corpus = CorpusBuilder() if corpus is None else corpus
    read = ((place, record, _musique_question(record, place, corpus)) for place, record in rows)
    questions = read_questions(
        source, ((place, question) for place, record, question in read if record.get("answerable", True))
    )
    corpus.check_gold(source)
    return corpus.passages(source), keep_judged(source, questions)


def _musique_question(record: Record, place: Place, corpus: CorpusBuilder) -> BenchmarkQuestion:
    by_index: dict[int, str] = {}
    titles, gold = [], []
    for position, paragraph in enumerate(_objects(record, place, "paragraphs")):
        titles.append(text_value(place, "paragraphs.title", required(paragraph, place, "title")))
        field = "text" if "text" in paragraph and "paragraph_text" not in paragraph else "paragraph_text"
        text = text_value(place, f"paragraphs.{field}", required(paragraph, place, field))
        passage_id = corpus.add(titles[-1], text, place)
        by_index[_index(paragraph.get("idx", position), place, "paragraphs.idx")] = passage_id
        if paragraph.get("is_supporting"):
            gold.append(passage_id)
            if not passage_id:
                corpus.miss(titles[-1], place)
    question_id = pooled_id(record, place, titles)
    metadata: dict[str, Any] = {
        "type": question_id.split("__")[0] if "__" in question_id else "",
        **{key: value for key, value in record.items() if key not in _MUSIQUE_FIELDS},
        "context_ids": [passage_id for passage_id in by_index.values() if passage_id],
        "decomposition": [],
    }
    steps = () if record.get("question_decomposition") is None else _objects(record, place, "question_decomposition")
    for step in steps:
        passage = None  # unanswerable and test questions name none
        if (support := step.get("paragraph_support_idx")) is not None:
            passage = by_index.get(_index(support, place, "question_decomposition.paragraph_support_idx"))
        metadata["decomposition"].append(
            {"question": step.get("question"), "answer": step.get("answer"), "passage_id": passage}
        )
    return make_question(place, question_id, required(record, place, "question"), metadata, gold)


def _objects(record: Record, place: Place, field: str) -> list[Record]:
    values = list_field(record, place, field)
    for value in values:
        if not isinstance(value, dict):
            raise place.error(f"field {field!r} must be a list of objects, but holds {kind(value)}")
    return values


def _index(value: object, place: Place, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise place.error(f"field {field!r} must be an integer, not {kind(value)}")
    return value


HOTPOTQA = Loader(
    lambda record: {"context", "question"} <= record.keys() and not {"evidences", "paragraphs"} & record.keys(),
    read_hotpotqa,
)
TWOWIKI = Loader(
    lambda record: {"context", "question", "evidences"} <= record.keys() and "paragraphs" not in record, read_2wiki
)
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
    reader = loader.read if name in BUILT_IN else partial(_read_by_plugin, name, loader)
    return itertools.chain([first], iterator), reader


def _format_of(source: str, record: Record) -> str | None:
    for name in BUILT_IN:
        if loaders().get(name).detects(record):
            return name
    accepted = []
    for name in loaders().plugins():
        try:
            if loaders().get(name).detects(record):
                accepted.append(name)
        except Exception as error:  # a plug-in may raise anything
            notice(f"the loader {name!r} cannot tell whether a file is its own ({type(error).__name__}: {error})")
    if len(accepted) > 1:
        raise InputError(f"{source}: the loaders {', '.join(accepted)} all take it: uninstall all but one")
    return accepted[0] if accepted else None


def _read_by_plugin(name: str, loader: Loader, source: str, rows: Rows) -> Parsed:
    """Read by a plug-in: its exceptions and malformed results become errors that name the loader."""
    try:
        read_passages, questions_read = loader.read(source, rows)
        passages, questions = tuple(read_passages), tuple(questions_read)
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
