"""GFM-RAG's raw files: `documents.json` (once `dataset_corpus.json`), an object of texts by title, and its questions.

Source: Luo et al., GFM-RAG (arXiv 2502.01113), https://github.com/RManLuo/gfm-rag (docs/workflow/data_format.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hopbench.eval.benchmarks.beir import Parsed
from hopbench.eval.benchmarks.contexts import pooled_id
from hopbench.eval.benchmarks.fields import (
    Place,
    Record,
    id_value,
    kind,
    list_field,
    optional_text,
    refuse_unknown,
    required,
    text_value,
)
from hopbench.eval.benchmarks.file_sets import FileSet, first_file
from hopbench.eval.benchmarks.files import read_json
from hopbench.eval.benchmarks.passages import Unique
from hopbench.eval.benchmarks.questions import keep_judged, make_question, read_questions
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.resemblance import plain_title
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage

_CORPORA = ("documents", "dataset_corpus")
_QUESTIONS = ("test", "dev", "train")
_GOLD = ("supporting_documents", "supporting_facts")
_READ = frozenset({"_id", "id", "question", *_GOLD})


def raw_files(path: Path) -> FileSet | None:
    """The files of a data set's folder, of its folder `raw`, or those to which a file in it belongs."""
    if not path.is_dir():
        corpus = first_file(path.parent, *_CORPORA)
        if corpus is None or (path != corpus and path.name.split(".")[0] not in _QUESTIONS):
            return None
        return _named(corpus, first_file(path.parent, *_QUESTIONS) if path == corpus else path)
    for folder in (path / "raw", path):
        corpus, questions = first_file(folder, *_CORPORA), first_file(folder, *_QUESTIONS)
        if corpus and (questions or folder.resolve().name == "raw"):
            return _named(corpus, questions)
    return None


def _named(corpus: Path, questions: Path | None) -> FileSet:
    folder = corpus.parent.resolve()
    name = (folder.parent if folder.name == "raw" else folder).name
    split = questions.name.split(".")[0] if questions else _QUESTIONS[0]
    return FileSet(name if split == _QUESTIONS[0] else f"{name}-{split}", corpus, questions, read_raw_files)


def read_raw_files(files: FileSet) -> Parsed:
    """The documents, each with its key as id and title, and the questions with their supporting documents as gold.

    Raises
    ------
    InputError
        For a file of another shape, a key twice, and supporting documents that the corpus lacks.
    """
    passages = _passages(files.corpus)
    if files.questions is None:
        return passages, ()
    source = str(files.questions)
    gold = _Gold({one.id: one.id for one in passages}, {plain_title(one.id): one.id for one in passages}, [])
    rows = read_records(files.questions)
    questions = read_questions(source, ((place, _question(record, place, gold)) for place, record in rows))
    remedy = "Use the corpus that these questions were written for."
    refuse_unknown(source, "supporting document", f"in {files.corpus.name}", remedy, gold.missing, gold.ids)
    return passages, keep_judged(source, questions)


def _passages(file: Path) -> tuple[Passage, ...]:
    entries = read_json(file, pairs=_Entries)
    if not isinstance(entries, _Entries):
        raise InputError(f'{file}: must be one object of texts by title, {{"TITLE": "TEXT", …}}, not {kind(entries)}')
    unique, passages = Unique("passage"), []
    for number, (key, text) in enumerate(entries, start=1):
        place = Place(str(file), "entry", number)
        passage_id = id_value(place, "title", key)
        unique.add(passage_id, place)
        sentences = text if isinstance(text, list) else [text]
        joined = "".join(optional_text(place, "text", sentence) for sentence in sentences)
        passages.append(Passage(passage_id, key, text_value(place, "text", joined)))
    if not passages:
        raise InputError(f"{file}: the corpus is empty: it must hold at least one document")
    return tuple(passages)


class _Entries(list[tuple[str, Any]]):
    """The keys and values of an object, those that occur twice too."""


class _Gold(NamedTuple):
    ids: Mapping[str, str]
    by_title: Mapping[str, str]
    missing: list[tuple[str, Place]]

    def find(self, title: str, place: Place) -> str:
        found = self.ids.get(title) or self.by_title.get(plain_title(title), "")
        if not found:
            self.missing.append((title, place))
        return found


def _question(record: Record, place: Place, gold: _Gold) -> BenchmarkQuestion:
    named = next((name for name in _GOLD if record.get(name) is not None), None)
    given = list_field(record, place, named) if named else []
    titles = [text_value(place, str(named), one[0] if isinstance(one, list) and one else one) for one in given]
    metadata = {name: value for name, value in record.items() if name not in _READ}
    found = [gold.find(title, place) for title in titles]
    return make_question(place, pooled_id(record, place, titles), required(record, place, "question"), metadata, found)
