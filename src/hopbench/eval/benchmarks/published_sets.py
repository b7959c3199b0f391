"""Read data sets of two files, as their authors publish them: HippoRAG's pairs and GFM-RAG's raw files.

Sources: Gutiérrez et al., HippoRAG (arXiv 2405.14831), https://github.com/OSU-NLP-Group/HippoRAG (reproduce/dataset);
Luo et al., GFM-RAG (arXiv 2502.01113), https://github.com/RManLuo/gfm-rag (docs/workflow/data_format.md).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

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
    refuse_repeated,
    refuse_unknown,
    remark,
    required,
    text_value,
)
from hopbench.eval.benchmarks.files import Pairs, read_json
from hopbench.eval.benchmarks.formats import read_2wiki, read_hotpotqa, read_musique
from hopbench.eval.benchmarks.questions import keep_judged, make_question, read_query_rows, read_questions
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.types import BenchmarkQuestion, plain_title
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage

_CORPORA = ("documents", "dataset_corpus")
_QUESTIONS = ("test", "dev", "train")
_GOLD = ("supporting_documents", "supporting_facts")
_FIELDS = frozenset({"_id", "id", "question", *_GOLD})
_PAIR_CORPUS = "_corpus"
_PAIR_NAME = re.compile(r"(?P<name>.+?)(_corpus)?\.json(\.gz)?")
_PAIR_ANSWERS = ("gold_ans", "reference")  # where a record has no `answer`


@dataclass(frozen=True)
class FileSet:
    """A corpus and its questions, None where there are none; `parse` reads both."""

    name: str
    corpus: Path
    questions: Path | None
    parse: Callable[[Path, Path | None], Parsed]

    def read(self, *, need_questions: bool) -> Parsed:
        """Read passages and questions. Raises InputError as `parse`, and where questions are needed and missing."""
        if self.questions is None and need_questions:
            raise missing_questions(self.corpus.parent)
        return self.parse(self.corpus, self.questions)


def published_files(path: Path) -> FileSet | None:
    """Find the data set that a folder holds or a file belongs to; among documents a corpus alone is none."""
    if not path.is_dir():
        return _raw_files(path) or _pair_of(path)
    found = _raw_files(path) or _only_pair(path)
    return None if found and found.questions is None and holds_documents(path) else found


def _first_file(folder: Path, *stems: str) -> Path | None:
    names = (f"{stem}{ending}" for stem in stems for ending in (".json", ".json.gz"))
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _raw_files(path: Path) -> FileSet | None:
    """Find GFM-RAG's files in a data set's folder, in its folder `raw`, or those to which a file in it belongs."""
    if path.is_dir():
        places = [(_first_file(folder, *_CORPORA), _first_file(folder, *_QUESTIONS)) for folder in (path / "raw", path)]
    else:
        corpus = _first_file(path.parent, *_CORPORA)
        if path != corpus and path.name.split(".")[0] not in _QUESTIONS:
            return None
        places = [(corpus, _first_file(path.parent, *_QUESTIONS) if path == corpus else path)]
    for corpus, questions in places:
        if corpus is None or (questions is None and path.is_dir() and corpus.parent.resolve().name != "raw"):
            continue
        folder = corpus.parent.resolve()
        name = (folder.parent if folder.name == "raw" else folder).name
        split = questions.name.split(".")[0] if questions else _QUESTIONS[0]
        return FileSet(name if split == _QUESTIONS[0] else f"{name}-{split}", corpus, questions, read_raw_files)
    return None


def read_raw_files(corpus: Path, questions: Path | None) -> Parsed:
    """Read documents, each with its key as id and title, and questions with their supporting documents as gold."""
    passages = tuple(_raw_passages(corpus))
    if not passages:
        raise InputError(f"{corpus}: the corpus is empty: it must hold at least one document")
    if questions is None:
        return passages, ()
    source = str(questions)
    ids = {one.id: one.id for one in passages}
    by_title = {plain_title(one.id): one.id for one in passages}
    missing: list[tuple[str, Place]] = []

    def read() -> Iterator[tuple[Place, BenchmarkQuestion]]:
        for place, record in read_records(questions):
            named = next((name for name in _GOLD if record.get(name) is not None), None)
            given = list_field(record, place, named) if named else []
            titles = [text_value(place, str(named), one[0] if isinstance(one, list) and one else one) for one in given]
            gold = [ids.get(title) or by_title.get(plain_title(title), "") for title in titles]
            missing.extend((title, place) for title, passage in zip(titles, gold, strict=True) if not passage)
            metadata = {name: value for name, value in record.items() if name not in _FIELDS}
            question_id = pooled_id(record, place, titles)
            yield place, make_question(place, question_id, required(record, place, "question"), metadata, gold)

    found = read_questions(source, read())
    remedy = "Use the corpus that these questions were written for."
    refuse_unknown(source, "supporting document", f"in {corpus.name}", remedy, missing, ids)
    return passages, keep_judged(source, found)


def _raw_passages(file: Path) -> Iterator[Passage]:
    entries = read_json(file, pairs=Pairs)
    if not isinstance(entries, Pairs):
        raise InputError(f'{file}: must be one object of texts by title, {{"TITLE": "TEXT", …}}, not {kind(entries)}')
    seen: dict[str, Place] = {}
    for number, (key, text) in enumerate(entries, start=1):
        place = Place(str(file), "entry", number)
        passage_id = id_value(place, "title", key)
        refuse_repeated("passage", passage_id, place, seen)
        sentences = text if isinstance(text, list) else [text]
        joined = "".join(text_value(place, "text", sentence, optional=True) for sentence in sentences)
        yield Passage(passage_id, key, text_value(place, "text", joined))


def _pair_of(file: Path) -> FileSet | None:
    """Find HippoRAG's pair to which a file belongs, as corpus or as questions; None without its corpus."""
    match = _PAIR_NAME.fullmatch(file.name)
    corpus = match and _first_file(file.parent, f"{match['name']}{_PAIR_CORPUS}")
    if not match or not corpus:
        return None
    return FileSet(match["name"], corpus, _first_file(file.parent, match["name"]), read_pair)


def _only_pair(folder: Path) -> FileSet | None:
    """Find the one corpus with questions that a folder holds, else its one corpus; None where it holds none."""
    every = {pair.name: pair for file in sorted(folder.glob(f"*{_PAIR_CORPUS}.json*")) if (pair := _pair_of(file))}
    pairs = [pair for pair in every.values() if pair.questions] or list(every.values())
    if len(pairs) > 1:
        names, such = ", ".join(pair.name for pair in pairs), folder / pairs[0].corpus.name
        raise InputError(
            f"{folder}: holds several data sets ({names}): name a file of one, such as {such}; {contents(folder)}"
        )
    return pairs[0] if pairs else None


def read_pair(corpus_file: Path, questions: Path | None) -> Parsed:
    """Read the passages of the corpus, and the questions with those of their paragraphs that support them as gold.

    Questions are in MuSiQue's layout (`paragraphs`, or `contexts`), in HotpotQA's, or without any passages.
    """
    corpus = _pair_corpus(corpus_file)
    passages = corpus.passages(str(corpus_file))
    if questions is None:
        return passages, ()
    source = str(questions)
    rows = _pair_rows(read_records(questions))
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
        title = text_value(place, "title", record.get("title"), optional=True)
        text = text_value(place, "text", required(record, place, "text"), optional=True)
        passage = corpus.add(title, text, place)
        if passage in seen:
            again.append(f"{title!r} ({place.unit} {place.number})")
        seen.add(passage)
    remark("passages repeat another's title and text", again, "they count as one")
    corpus.close()
    return corpus


def _pair_rows(rows: Rows) -> Iterator[tuple[Place, Record]]:
    """Give records the names that MuSiQue has: `contexts` are paragraphs, which support where none says not."""
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
