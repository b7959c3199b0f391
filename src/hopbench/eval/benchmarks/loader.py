"""Loads any benchmark: a shipped name, a folder, an official file or a Hub set."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from hopbench.eval.benchmarks.beir import (
    LAYOUTS,
    Parsed,
    contents,
    find_questions,
    find_table,
    has_table,
    is_folder_of_tables,
    no_data_set,
    read_folder,
)
from hopbench.eval.benchmarks.card import has_card, read_card, role_of
from hopbench.eval.benchmarks.documents import DocumentCorpus, holds_documents, read_documents
from hopbench.eval.benchmarks.fields import collected, missing_gold_warning, remark
from hopbench.eval.benchmarks.files import GZIP
from hopbench.eval.benchmarks.formats import BUILT_IN, detect, loaders
from hopbench.eval.benchmarks.hub import load_hub, parts_of, read_parts
from hopbench.eval.benchmarks.published_sets import published_files
from hopbench.eval.benchmarks.questions import find_qrels, keep_judged, read_question_file
from hopbench.eval.benchmarks.records import layout_ending, read_records
from hopbench.eval.types import Benchmark, Role
from hopbench.retrieval.corpus import blank_ids
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.input_files import unreadable

_DATA = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True, slots=True)
class ShippedBenchmark:
    """One line of `hopbench benchmarks`: `passages` and `questions` are counts."""

    name: str
    title: str
    role: Role
    passages: int
    questions: int
    folder: Path


def shipped_folders() -> dict[str, Path]:
    """Return name → folder of the shipped benchmarks, sorted by name."""
    return {folder.name: folder for folder in sorted(_DATA.iterdir()) if is_folder_of_tables(folder)}


def benchmark_names() -> list[str]:
    """Return the names that `load_benchmark` accepts without a path."""
    return list(shipped_folders())


def shipped_benchmarks() -> list[ShippedBenchmark]:
    """Describe every shipped benchmark: title (the card's `pretty_name`), role and counts, without validation."""
    return [_describe(name, folder) for name, folder in shipped_folders().items()]


def _describe(name: str, folder: Path) -> ShippedBenchmark:
    passages, questions = (sum(1 for _ in read_records(find_table(folder, stem))) for stem in ("corpus", "queries"))
    role = role_of(name, has_gold=find_qrels(folder) is not None, folder=folder)
    title = str(read_card(folder).get("pretty_name") or name)
    return ShippedBenchmark(name, title, role, passages, questions, folder)


FORMATS = ("beir", *BUILT_IN)
NAME_LIMIT = 150  # bytes; a system takes 255, and times, keys and endings are added
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+(:[\w.+-]+){0,2}")


def load_benchmark(
    name_or_path: str | Path,
    *,
    limit: int | None = None,
    format: str | None = None,
    questions: Path | None = None,
    need_questions: bool = True,
    mapped: Path | None = None,
    min_grade: int = 1,
    strict: bool = False,
) -> Benchmark:
    """Load and validate a benchmark.

    Parameters
    ----------
    name_or_path
        A shipped name (`hopworld`); a folder in BEIR layout, with `qrels` or without (a user's own corpus; tables may
        be JSONL, JSON, Parquet, CSV or TSV); a folder of the Hub's, or one that `Dataset.save_to_disk` wrote;
        HippoRAG's or GFM-RAG's files; a folder of Markdown, HTML, PDF and text files; an official HotpotQA,
        2WikiMultihopQA or MuSiQue file, or one that a plug-in's loader reads; or a Hub set as
        `owner/name[:config[:split]]`. A shipped name wins over a folder of that name: write `./hopworld` for yours.
    limit
        Keep only the first `limit` questions; the whole corpus is loaded and the whole benchmark validated.
    format
        One of `FORMATS` or a plug-in's loader, in place of detecting it from the content.
    questions
        A `queries` file used instead of the benchmark's own questions, with `qrels` next to it or gold in it.
    need_questions
        Whether a corpus without questions is refused; otherwise its benchmark has none.
    mapped
        A cache folder for the passages of a folder in BEIR layout, as memory-mapped columns by the content of their
        file: read and checked only once, with one copy for all processes.
    min_grade
        The lowest grade of the judgements that counts as gold.
    strict
        Whether gold passages that the corpus lacks are refused; otherwise they are gold that nothing finds.

    Returns
    -------
    Benchmark
        Questions without gold are left out where others have gold (as BEIR scores only judged questions). The role
        comes from the README.md front matter (`hopbench: {role: tune}`), else: no gold → `user`, a name with the word
        `train` or `tune` → `tune`, the rest → `report`.

    Raises
    ------
    UnknownNameError
        When it is neither a path nor a known name.
    InputError
        When anything in it cannot be used; the message names file, line and field.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}, must be at least 1: leave it out to keep all questions")
    if format is not None and format not in FORMATS and format not in loaders().names():
        raise UnknownNameError("benchmark format", format, ("beir", *loaders().names()))
    if isinstance(name_or_path, Path):  # Path("./hopworld") has lost its "./", yet means the folder
        name_or_path = os.path.join(os.curdir, os.path.expanduser(name_or_path))
    with collected() as findings:
        benchmark = _load(name_or_path, format, need_questions and questions is None, mapped)
        if questions is not None:
            loaded = read_question_file(questions, benchmark.passages)
            has_gold = any(question.gold for question in loaded)
            role = role_of(benchmark.name, has_gold=has_gold, folder=_card_folder(benchmark.folder))
            benchmark = replace(benchmark, questions=loaded, role=role)
        blank = blank_ids(benchmark.passages)
        remark("passages have neither title nor text", blank, "give them text, or remove them and their gold")
    benchmark = _with_grade(benchmark, min_grade)
    if strict and (missing := missing_gold_warning(benchmark)):
        raise InputError(f"{benchmark.folder or benchmark.name}: {missing}")
    return replace(benchmark, questions=benchmark.questions[:limit], findings=tuple(findings))


def _with_grade(benchmark: Benchmark, least: int) -> Benchmark:
    """Keep only gold of at least that grade; drop questions that then have none."""
    if least < 1:
        raise InputError(f"min_grade is {least}, must be at least 1: passages of grade 0 or less are not relevant")
    if least == 1 or not any(question.gold for question in benchmark.questions):
        return benchmark
    grades = [max(question.gold.gains.values(), default=0) for question in benchmark.questions]
    if least > max(grades):
        raise InputError(
            f"--min-grade {least}: no passage of {benchmark.name} has such a grade, the highest is {max(grades)}: "
            "choose a lower one"
        )
    questions = [replace(question, gold=question.gold.at_least(least)) for question in benchmark.questions]
    judged = keep_judged(f"{benchmark.name}, grades of at least {least}", questions)
    return replace(benchmark, questions=judged, min_grade=least)


def _load(name: str, format: str | None, need_questions: bool, mapped: Path | None) -> Benchmark:
    shipped = shipped_folders()
    if name in shipped:
        return _load_folder(shipped[name], format, need_questions, mapped)
    path = Path(os.path.expanduser(name))
    # os.path.exists is False for a name that the system does not allow; Path.exists raises.
    if name.strip() and os.path.exists(path):
        if path.is_dir():
            return _load_folder(path, format, need_questions, mapped)
        return _load_file(path, format, need_questions)
    if _HUB_NAME.fullmatch(name) and not layout_ending(path).startswith(".json") and not path.parent.is_dir():
        return make_benchmark(*load_hub(name, format))
    if path.suffix or "/" in name or os.sep in name:
        raise InputError(
            f"{name}: no such file or folder, and it is not a Hub name (owner/name:config): check the path"
        )
    raise UnknownNameError("benchmark", name, shipped)


def _load_folder(folder: Path, format: str | None, need_questions: bool, mapped: Path | None) -> Benchmark:
    name = folder.resolve().name
    try:
        if has_table(folder, "corpus") and format in {None, "beir"}:
            return make_benchmark(name, read_folder(folder, need_questions=need_questions, mapped=mapped), folder)
        parts = parts_of(folder)
        if parts:
            split, parsed = read_parts(folder, parts, format, need_questions=need_questions, mapped=mapped)
            return make_benchmark(f"{name}-{split}" if split else name, parsed, folder)
        if format not in {None, "beir"}:
            raise InputError(
                f"{folder}: is a folder, and format {format!r} is a single file: name the file; {contents(folder)}"
            )
        if format is None and (files := published_files(folder)):
            return make_benchmark(files.name, files.read(need_questions=need_questions), folder)
        return _load_documents(folder, need_questions)
    except OSError as error:
        raise unreadable(str(folder), error) from error


def _load_documents(folder: Path, need_questions: bool) -> Benchmark:
    queries = find_questions(folder, needed=need_questions) if holds_documents(folder) else None
    corpus = documents_of(folder)
    questions = read_question_file(queries, corpus.passages) if queries else ()
    benchmark = make_benchmark(folder.resolve().name, (corpus.passages, questions), folder)
    return replace(benchmark, warnings=corpus.warnings, omissions=corpus.omissions)


def documents_of(folder: Path) -> DocumentCorpus:
    """Read a folder's documents. If there are none, the InputError says what the folder holds and what is expected."""
    if not holds_documents(folder):
        raise no_data_set(folder)
    try:
        return read_documents(folder)
    except InputError as error:
        raise InputError(f"{error}; {contents(folder)}. {LAYOUTS}") from error


def _load_file(path: Path, format: str | None, need_questions: bool) -> Benchmark:
    if format == "beir":
        raise InputError(
            f"{path}: is a file, and format 'beir' is a folder: name the folder that holds corpus and queries"
        )
    if format is None and (files := published_files(path)):
        return make_benchmark(files.name, files.read(need_questions=need_questions))
    source = str(path)
    rows, reader = detect(read_records(path), source, format)
    return make_benchmark(path.name.removesuffix(GZIP).removesuffix(layout_ending(path)), reader(source, rows))


def make_benchmark(name: str, parsed: Parsed, folder: Path | None = None) -> Benchmark:
    """Make a benchmark, with the role that card, gold and name imply."""
    if len(name.encode()) > NAME_LIMIT:
        raise InputError(
            f"the benchmark's name {name[:20]!r}… has {len(name.encode())} bytes, over the limit of {NAME_LIMIT}: it "
            "goes into names of files: rename its folder or file"
        )
    passages, questions = parsed
    has_gold = any(question.gold for question in questions)
    return Benchmark(name, passages, questions, role_of(name, has_gold=has_gold, folder=_card_folder(folder)), folder)


def _card_folder(folder: Path | None) -> Path | None:
    """Return the folder if its README.md is a dataset card: in a folder of documents it may be a document."""
    if folder is None or has_table(folder, "corpus") or has_card(folder):
        return folder
    return None
