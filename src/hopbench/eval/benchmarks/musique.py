"""MuSiQue: the official JSON lines (`musique_ans_v1.0_*.jsonl`, `musique_full_v1.0_*.jsonl`), and copies of its layout.

Source: Trivedi et al., MuSiQue (arXiv 2108.00573), https://github.com/StonyBrookNLP/musique.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hopbench.eval.benchmarks.beir import Parsed
from hopbench.eval.benchmarks.contexts import CorpusBuilder, pooled_id
from hopbench.eval.benchmarks.fields import Place, Record, Rows, kind, list_field, required, text_value
from hopbench.eval.benchmarks.formats import Loader
from hopbench.eval.benchmarks.questions import keep_judged, make_question, read_questions
from hopbench.eval.types import BenchmarkQuestion

_READ = frozenset({"_id", "id", "question", "paragraphs", "question_decomposition"})


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
        question = _question(record, place, corpus)
        if record.get("answerable", True):
            yield place, question


def _question(record: Record, place: Place, corpus: CorpusBuilder) -> BenchmarkQuestion:
    paragraphs = [_object(item, place, "paragraphs") for item in list_field(record, place, "paragraphs")]
    by_index: dict[int, str] = {}
    gold = []
    for position, paragraph in enumerate(paragraphs):
        title = text_value(place, "paragraphs.title", required(paragraph, place, "title"))
        field = "text" if "text" in paragraph and "paragraph_text" not in paragraph else "paragraph_text"
        text = text_value(place, f"paragraphs.{field}", required(paragraph, place, field))
        passage_id = corpus.add(title, text, place)
        by_index[_index(paragraph.get("idx", position), place, "paragraphs.idx")] = passage_id
        if paragraph.get("is_supporting"):
            gold.append(passage_id)
            if not passage_id:
                corpus.miss(title, place)
    question_id = pooled_id(record, place, (str(paragraph["title"]) for paragraph in paragraphs))
    metadata: Mapping[str, Any] = {
        "type": question_id.split("__")[0] if "__" in question_id else "",
        **{key: value for key, value in record.items() if key not in _READ},
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
        index = None if support is None else _index(support, place, "question_decomposition.paragraph_support_idx")
        passage_id = None if index is None else by_index.get(index)
        steps.append({"question": step.get("question"), "answer": step.get("answer"), "passage_id": passage_id})
    return steps


def _index(value: object, place: Place, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise place.error(f"field {field!r} must be an integer, not {kind(value)}")
    return value


def _object(value: object, place: Place, field: str) -> Record:
    if not isinstance(value, dict):
        raise place.error(f"field {field!r} must be a list of objects, but holds {kind(value)}")
    return value


MUSIQUE = Loader(lambda record: "paragraphs" in record, read_musique)
