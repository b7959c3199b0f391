"""Data sets of two files, as their authors publish them: HippoRAG's pairs and GFM-RAG's raw files.

Sources: Gutiérrez et al., HippoRAG (arXiv 2405.14831), https://github.com/OSU-NLP-Group/HippoRAG (reproduce/dataset);
Luo et al., GFM-RAG (arXiv 2502.01113), https://github.com/RManLuo/gfm-rag (docs/workflow/data_format.md).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hopbench.eval.benchmarks.beir import Parsed, contents, missing_questions
from hopbench.eval.benchmarks.contexts import CorpusBuilder, pooled_id
from hopbench.eval.benchmarks.documents import holds_documents
from hopbench.eval.benchmarks.fields import (
    Place,
    Record,
    Rows,
    id_value,
    kind,
    list_field,
    optional_text,
    plain_title,
    refuse_unknown,
    remark,
    required,
    text_value,
)
from hopbench.eval.benchmarks.files import read_json
from hopbench.eval.benchmarks.formats import read_2wiki, read_hotpotqa, read_musique
from hopbench.eval.benchmarks.passages import Unique
from hopbench.eval.benchmarks.questions import keep_judged, make_question, read_query_rows, read_questions
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage


@dataclass(frozen=True)
class FileSet:
    """A corpus and its questions, None where there are none; `parse` reads both."""

    name: str
    corpus: Path
    questions: Path | None
    parse: Callable[[FileSet], Parsed]

    def read(self, *, need_questions: bool) -> Parsed:
        """Passages and questions. Raises InputError as `parse`, and where questions are needed and there are none."""
        if self.questions is None and need_questions:
            raise missing_questions(self.corpus.parent)
        return self.parse(self)


def first_file(folder: Path, *stems: str) -> Path | None:
    """The first file of these names that ends in `.json` or `.json.gz`."""
    names = (f"{stem}{ending}" for stem in stems for ending in (".json", ".json.gz"))
    return next((folder / name for name in names if (folder / name).is_file()), None)


_RAW_CORPORA = ("documents", "dataset_corpus")
_RAW_QUESTIONS = ("test", "dev", "train")
_RAW_GOLD = ("supporting_documents", "supporting_facts")
_RAW_FIELDS = frozenset({"_id", "id", "question", *_RAW_GOLD})


def raw_files(path: Path) -> FileSet | None:
    """The files of a data set's folder, of its folder `raw`, or those to which a file in it belongs."""
    if not path.is_dir():
        corpus = first_file(path.parent, *_RAW_CORPORA)
        if corpus is None or (path != corpus and path.name.split(".")[0] not in _RAW_QUESTIONS):
            return None
        return _raw_set(corpus, first_file(path.parent, *_RAW_QUESTIONS) if path == corpus else path)
    for folder in (path / "raw", path):
        corpus, questions = first_file(folder, *_RAW_CORPORA), first_file(folder, *_RAW_QUESTIONS)
        if corpus and (questions or folder.resolve().name == "raw"):
            return _raw_set(corpus, questions)
    return None


def _raw_set(corpus: Path, questions: Path | None) -> FileSet:
    folder = corpus.parent.resolve()
    name = (folder.parent if folder.name == "raw" else folder).name
    split = questions.name.split(".")[0] if questions else _RAW_QUESTIONS[0]
    return FileSet(name if split == _RAW_QUESTIONS[0] else f"{name}-{split}", corpus, questions, read_raw_files)


def read_raw_files(files: FileSet) -> Parsed:
    """The documents, each with its key as id and title, and the questions with their supporting documents as gold.

    Raises
    ------
    InputError
        For a file of another shape, a key twice, and supporting documents that the corpus lacks.
    """
    passages = _raw_passages(files.corpus)
    if files.questions is None:
        return passages, ()
    source = str(files.questions)
    gold = _Gold({one.id: one.id for one in passages}, {plain_title(one.id): one.id for one in passages}, [])
    rows = read_records(files.questions)
    questions = read_questions(source, ((place, _raw_question(record, place, gold)) for place, record in rows))
    remedy = "Use the corpus that these questions were written for."
    refuse_unknown(source, "supporting document", f"in {files.corpus.name}", remedy, gold.missing, gold.ids)
    return passages, keep_judged(source, questions)


def _raw_passages(file: Path) -> tuple[Passage, ...]:
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


def _raw_question(record: Record, place: Place, gold: _Gold) -> BenchmarkQuestion:
    named = next((name for name in _RAW_GOLD if record.get(name) is not None), None)
    given = list_field(record, place, named) if named else []
    titles = [text_value(place, str(named), one[0] if isinstance(one, list) and one else one) for one in given]
    metadata = {name: value for name, value in record.items() if name not in _RAW_FIELDS}
    found = [gold.find(title, place) for title in titles]
    return make_question(place, pooled_id(record, place, titles), required(record, place, "question"), metadata, found)


_PAIR_CORPUS = "_corpus"
_PAIR_NAME = re.compile(r"(?P<name>.+?)(_corpus)?\.json(\.gz)?")
_PAIR_ANSWERS = ("gold_ans", "reference")  # where a record has no `answer`


def pair_of(file: Path) -> FileSet | None:
    """The pair to which a file belongs, as corpus or as questions; None for a file without a corpus beside it."""
    match = _PAIR_NAME.fullmatch(file.name)
    corpus = match and first_file(file.parent, f"{match['name']}{_PAIR_CORPUS}")
    return (
        FileSet(match["name"], corpus, first_file(file.parent, match["name"]), read_pair) if match and corpus else None
    )


def only_pair(folder: Path) -> FileSet | None:
    """The one corpus with questions that a folder holds, else its one corpus; None where it holds none."""
    every = {pair.name: pair for file in sorted(folder.glob(f"*{_PAIR_CORPUS}.json*")) if (pair := pair_of(file))}
    pairs = [pair for pair in every.values() if pair.questions] or list(every.values())
    if len(pairs) > 1:
        names, such = ", ".join(pair.name for pair in pairs), folder / pairs[0].corpus.name
        raise InputError(
            f"{folder}: holds several data sets ({names}): name a file of one, such as {such}; {contents(folder)}"
        )
    return pairs[0] if pairs else None


def read_pair(pair: FileSet) -> Parsed:
    """The passages of the corpus, and the questions with those of their paragraphs that support them as gold.

    Questions are in MuSiQue's layout (`paragraphs`, or `contexts`), in HotpotQA's, or without any passages.

    Raises
    ------
    InputError
        For a file of another shape, and for gold passages that the corpus lacks.
    """
    corpus = _pair_corpus(pair.corpus)
    passages = corpus.passages(str(pair.corpus))
    if pair.questions is None:
        return passages, ()
    source = str(pair.questions)
    rows = _pair_rows(read_records(pair.questions))
    first = next(rows, None)
    if first is None:
        raise InputError(f"{source}: is empty: it must hold at least one record")
    record, rows = first[1], itertools.chain([first], rows)
    if "paragraphs" in record:
        return read_musique(source, rows, corpus)
    if "context" in record:
        return (read_2wiki if "evidences" in record else read_hotpotqa)(source, rows, corpus)
    return passages, read_query_rows(source, rows)


def _pair_corpus(file: Path) -> CorpusBuilder:
    corpus, again = CorpusBuilder(), []
    seen: set[str] = set()
    for place, record in read_records(file):
        title = optional_text(place, "title", record.get("title"))
        text = optional_text(place, "text", required(record, place, "text"))
        passage = corpus.add(title, text, place)
        if passage in seen:
            again.append(f"{title!r} ({place.unit} {place.number})")
        seen.add(passage)
    remark("passages repeat another's title and text", again, "they count as one")
    corpus.close()
    return corpus


def _pair_rows(rows: Rows) -> Iterator[tuple[Place, Record]]:
    """The records with the names that MuSiQue has: `contexts` are paragraphs, which support where none says not."""
    for place, given in rows:
        record = dict(given)
        if "contexts" in record and "paragraphs" not in record:
            record["paragraphs"] = record.pop("contexts")
        named = next((name for name in _PAIR_ANSWERS if name in record), None)
        if named and "answer" not in record:
            record["answer"] = record.pop(named)
        if isinstance(record.get("paragraphs"), list):
            record["paragraphs"] = [
                {"is_supporting": True, **one} if isinstance(one, dict) else one for one in record["paragraphs"]
            ]
        yield place, record


def published_files(path: Path) -> FileSet | None:
    """The data set that a folder holds or a file belongs to; among documents a corpus alone is none.

    Raises
    ------
    InputError
        For a folder with several of which none is named.
    """
    if not path.is_dir():
        return raw_files(path) or pair_of(path)
    found = raw_files(path) or only_pair(path)
    return None if found and found.questions is None and holds_documents(path) else found
