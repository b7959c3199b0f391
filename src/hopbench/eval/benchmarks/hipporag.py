"""HippoRAG's pairs of files: `NAME_corpus.json`, an array of passages, and `NAME.json`, the questions.

Source: Gutiérrez et al., HippoRAG (arXiv 2405.14831), https://github.com/OSU-NLP-Group/HippoRAG (reproduce/dataset).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from hopbench.eval.benchmarks.beir import Parsed, contents
from hopbench.eval.benchmarks.contexts import CorpusBuilder
from hopbench.eval.benchmarks.fields import Place, Record, Rows, optional_text, required
from hopbench.eval.benchmarks.file_sets import FileSet, first_file
from hopbench.eval.benchmarks.hotpotqa import read_2wiki, read_hotpotqa
from hopbench.eval.benchmarks.musique import read_musique
from hopbench.eval.benchmarks.question_files import read_query_rows
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.benchmarks.remarks import remark
from hopbench.retrieval.support.errors import InputError

_CORPUS = "_corpus"
_NAME = re.compile(r"(?P<name>.+?)(_corpus)?\.json(\.gz)?")
_ANSWERS = ("gold_ans", "reference")  # where a record has no `answer`


def pair_of(file: Path) -> FileSet | None:
    """The pair to which a file belongs, as corpus or as questions; None for a file without a corpus beside it."""
    match = _NAME.fullmatch(file.name)
    corpus = match and first_file(file.parent, f"{match['name']}{_CORPUS}")
    return (
        FileSet(match["name"], corpus, first_file(file.parent, match["name"]), read_pair) if match and corpus else None
    )


def only_pair(folder: Path) -> FileSet | None:
    """The one corpus with questions that a folder holds, else its one corpus; None where it holds none."""
    every = {pair.name: pair for file in sorted(folder.glob(f"*{_CORPUS}.json*")) if (pair := pair_of(file))}
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
    corpus = _corpus(pair.corpus)
    passages = corpus.passages(str(pair.corpus))
    if pair.questions is None:
        return passages, ()
    source = str(pair.questions)
    rows = _prepared(read_records(pair.questions))
    first = next(rows, None)
    if first is None:
        raise InputError(f"{source}: is empty: it must hold at least one record")
    record, rows = first[1], itertools.chain([first], rows)
    if "paragraphs" in record:
        return read_musique(source, rows, corpus)
    if "context" in record:
        return (read_2wiki if "evidences" in record else read_hotpotqa)(source, rows, corpus)
    return passages, read_query_rows(source, rows)


def _corpus(file: Path) -> CorpusBuilder:
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


def _prepared(rows: Rows) -> Iterator[tuple[Place, Record]]:
    """The records with the names that MuSiQue has: `contexts` are paragraphs, which support where none says not."""
    for place, given in rows:
        record = dict(given)
        if "contexts" in record and "paragraphs" not in record:
            record["paragraphs"] = record.pop("contexts")
        named = next((name for name in _ANSWERS if name in record), None)
        if named and "answer" not in record:
            record["answer"] = record.pop(named)
        if isinstance(record.get("paragraphs"), list):
            record["paragraphs"] = [
                {"is_supporting": True, **one} if isinstance(one, dict) else one for one in record["paragraphs"]
            ]
        yield place, record
