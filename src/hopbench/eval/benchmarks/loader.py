"""Load any benchmark: a shipped name, a folder, an official file or a Hub set."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from hopbench.eval.benchmarks.beir import (
    Parsed,
    contents,
    documents_of,
    find_table,
    has_card,
    missing_questions,
    read_card,
    read_folder,
    role_of,
)
from hopbench.eval.benchmarks.documents import holds_documents, read_documents
from hopbench.eval.benchmarks.fields import collected, missing_gold_warning, remark
from hopbench.eval.benchmarks.files import GZIP
from hopbench.eval.benchmarks.formats import BUILT_IN, detect, loaders
from hopbench.eval.benchmarks.hub import load_hub, parts_of, read_parts
from hopbench.eval.benchmarks.published_sets import published_files
from hopbench.eval.benchmarks.questions import judgement_files, keep_judged, read_question_file
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
    """Map the names of the shipped benchmarks, sorted, to their folders."""
    return {folder.name: folder for folder in sorted(_DATA.iterdir()) if find_table(folder, "corpus")}


def benchmark_names() -> list[str]:
    """List the names that `load_benchmark` accepts without a path."""
    return list(shipped_folders())


def shipped_benchmarks() -> list[ShippedBenchmark]:
    """Describe every shipped benchmark: title (the card's `pretty_name`), role and counts, without validation."""
    described = []
    for name, folder in shipped_folders().items():
        passages, questions = (
            sum(1 for _ in read_records(path)) if (path := find_table(folder, stem)) else 0
            for stem in ("corpus", "queries")
        )
        role = role_of(name, has_gold=bool(judgement_files(folder)), folder=folder)
        title = str(read_card(folder).get("pretty_name") or name)
        described.append(ShippedBenchmark(name, title, role, passages, questions, folder))
    return described


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
    """Load and validate a benchmark, such as `load_benchmark("hopworld", limit=20)`.

    Args:
        name_or_path: A shipped name, which wins over a folder called so (write `./hopworld` for yours); a Hub set as
            `owner/name[:config[:split]]`; any folder or file that docs/your-data.md describes.
        limit: Keep only the first questions; the whole benchmark is loaded and validated.
        format: One of `FORMATS`, or of a plug-in's loaders; otherwise it is detected.
        questions: A file of questions in place of the set's own.
        need_questions: Whether a corpus without questions is refused.
        mapped: A folder that caches the passages as memory-mapped columns, by the content of their file: read and
            checked only once, with one copy for all processes.
        min_grade: The lowest grade of the judgements that counts as gold.
        strict: Whether gold passages that the corpus lacks are refused; otherwise they are gold that nothing finds.

    Returns:
        The benchmark. Questions without gold are left out where others have gold; for the role see `role_of`.

    Raises:
        InputError: When anything cannot be used (file, line and field are named); UnknownNameError for unknown names.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}, must be at least 1: leave it out to keep all questions")
    if format is not None and format not in FORMATS and format not in loaders().names():
        raise UnknownNameError("benchmark format", format, ("beir", *loaders().names()))
    with collected() as findings:
        benchmark = _load(name_or_path, format, need_questions and questions is None, mapped)
        if questions is not None:
            parsed = benchmark.passages, read_question_file(questions, benchmark.passages)
            made = make_benchmark(benchmark.name, parsed, benchmark.folder)
            benchmark = replace(made, warnings=benchmark.warnings, omissions=benchmark.omissions)
        if blank := blank_ids(benchmark.passages):
            remark("passages have neither title nor text", blank, "give them text, or remove them and their gold")
    benchmark = benchmark if min_grade == 1 else _with_grade(benchmark, min_grade)
    if strict and (missing := missing_gold_warning(benchmark)):
        raise InputError(f"{benchmark.folder or benchmark.name}: {missing}")
    return replace(benchmark, questions=benchmark.questions[:limit], findings=tuple(findings))


def _with_grade(benchmark: Benchmark, lowest: int) -> Benchmark:
    if lowest < 1:
        raise InputError(f"min_grade is {lowest}, must be at least 1: passages of grade 0 or less are not relevant")
    if not any(question.gold for question in benchmark.questions):
        return benchmark
    highest = max(max(question.gold.gains.values(), default=0) for question in benchmark.questions)
    if lowest > highest:
        raise InputError(
            f"--min-grade {lowest}: no passage of {benchmark.name} has such a grade, the highest is {highest}: "
            "choose a lower one"
        )
    questions = [replace(question, gold=question.gold.at_least(lowest)) for question in benchmark.questions]
    judged = keep_judged(f"{benchmark.name}, grades of at least {lowest}", questions)
    return replace(benchmark, questions=judged, min_grade=lowest)


def _load(given: str | Path, format: str | None, need_questions: bool, mapped: Path | None) -> Benchmark:
    # Path("./hopworld") has lost its "./", yet means the folder.
    name = given if isinstance(given, str) else os.path.join(os.curdir, os.path.expanduser(given))
    shipped = shipped_folders()
    path = shipped.get(name, Path(os.path.expanduser(name)))
    # os.path.exists is False for a name that the system does not allow; Path.exists raises.
    if name.strip() and os.path.exists(path):
        if not path.is_dir():
            return _load_file(path, format, need_questions)
        try:
            return _load_folder(path, format, need_questions, mapped)
        except OSError as error:
            raise unreadable(str(path), error) from error
    if _HUB_NAME.fullmatch(name) and not layout_ending(path).startswith(".json") and not path.parent.is_dir():
        return make_benchmark(*load_hub(name, format))
    if path.suffix or "/" in name or os.sep in name:
        raise InputError(
            f"{name}: no such file or folder, and it is not a Hub name (owner/name:config): check the path"
        )
    raise UnknownNameError("benchmark", name, shipped)


def _load_folder(folder: Path, format: str | None, need_questions: bool, mapped: Path | None) -> Benchmark:
    name = folder.resolve().name
    if format in {None, "beir"} and find_table(folder, "corpus"):
        return make_benchmark(name, read_folder(folder, need_questions=need_questions, mapped=mapped), folder)
    if parts := parts_of(folder):
        split, parsed = read_parts(folder, parts, format, need_questions=need_questions, mapped=mapped)
        return make_benchmark(f"{name}-{split}" if split else name, parsed, folder)
    if format not in {None, "beir"}:
        raise InputError(
            f"{folder}: is a folder, and format {format!r} is a single file: name the file; {contents(folder)}"
        )
    if format is None and (files := published_files(folder)):
        return make_benchmark(files.name, files.read(need_questions=need_questions), folder)
    documents, queries = documents_of(folder)
    if need_questions and queries is None and holds_documents(documents):
        raise missing_questions(folder)
    corpus = read_documents(documents)
    questions = read_question_file(queries, corpus.passages) if queries else ()
    benchmark = make_benchmark(name, (corpus.passages, questions), folder)
    return replace(benchmark, warnings=corpus.warnings, omissions=corpus.omissions)


def _load_file(path: Path, format: str | None, need_questions: bool) -> Benchmark:
    if format == "beir":
        raise InputError(
            f"{path}: is a file, and format 'beir' is a folder: name the folder that holds corpus and queries"
        )
    if format is None and (files := published_files(path)):
        return make_benchmark(files.name, files.read(need_questions=need_questions))
    rows, reader = detect(read_records(path), str(path), format)
    return make_benchmark(path.name.removesuffix(GZIP).removesuffix(layout_ending(path)), reader(str(path), rows))


def make_benchmark(name: str, parsed: Parsed, folder: Path | None = None) -> Benchmark:
    """Make a benchmark, with the role that card, gold and name imply."""
    if len(name.encode()) > NAME_LIMIT:
        raise InputError(
            f"the benchmark's name {name[:20]!r}… has {len(name.encode())} bytes, over the limit of {NAME_LIMIT}: it "
            "goes into names of files: rename its folder or file"
        )
    passages, questions = parsed
    # In a folder of documents README.md may be one of them.
    card = folder if folder and (find_table(folder, "corpus") or has_card(folder)) else None
    role = role_of(name, has_gold=any(question.gold for question in questions), folder=card)
    return Benchmark(name, passages, questions, role, folder)
