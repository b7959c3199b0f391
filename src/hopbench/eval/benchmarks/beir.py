"""Read and write folders in BEIR layout, and a user's own corpus and questions in that layout without `qrels`.

Source: Thakur et al., BEIR (arXiv 2104.08663), https://github.com/beir-cellar/beir.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast, get_args

from hopbench.eval.benchmarks.files import GZIP, read_lines
from hopbench.eval.benchmarks.passages import corpus_passages
from hopbench.eval.benchmarks.questions import GOLD_FIELD, judgement_files, read_question_file
from hopbench.eval.files import write_atomically
from hopbench.eval.types import Benchmark, BenchmarkQuestion, Role
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.input_files import YamlError, parse_yaml, read_bytes, regular
from hopbench.retrieval.types import Passage

SUFFIXES = (".jsonl", ".parquet", ".csv", ".tsv")
ENDINGS = (*SUFFIXES, ".json", *(f"{text}{GZIP}" for text in (".jsonl", ".csv", ".tsv", ".json")))
_WANTED = f".jsonl (or {', '.join(SUFFIXES[1:])})"
MAX_LISTED_FILES = 8
LAYOUTS = (
    "A benchmark is a folder of corpus, queries and qrels/test.tsv (text files may end in .gz), or of documents with "
    "queries.jsonl beside them, or of documents/ with questions.jsonl beside it; a folder with tables in corpus/, "
    "queries/ and qrels/ (MTEB); one that Dataset.save_to_disk wrote; NAME_corpus.json with NAME.json (HippoRAG); "
    "raw/documents.json with raw/test.json (GFM-RAG)"
)
# "hotpotqa-train200" and "hopworld-tune" are for tuning; "fortune" and "constraints" are not.
_TUNING_NAME = re.compile(r"(?<![a-z])(train|training|tune|tuning)(?![a-z])", re.IGNORECASE)
SETTABLE = tuple(role for role in get_args(Role) if role != "user")
CARD_LIMIT = 16 * 1024 * 1024  # bytes; a README may be a document too
ALSO = {"tuning": "tune", "reporting": "report"}
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_STATED = re.compile(r"^hopbench:.*\n(?:[ \t]+.*\n|\n)*", re.MULTILINE)
Parsed = tuple[Sequence[Passage], tuple[BenchmarkQuestion, ...]]


def read_folder(folder: Path, *, need_questions: bool = True, mapped: Path | None = None) -> Parsed:
    """Read `corpus.*`, `queries.*` (one of `ENDINGS`) and judgements; with `mapped` the passages are cached columns."""
    corpus, queries = find_table(folder, "corpus"), find_table(folder, "queries")
    if corpus is None:
        raise no_data_set(folder)
    if queries is None and need_questions:
        raise missing_questions(folder)
    judgement_files(folder)  # fail on bad judgements before reading a long corpus
    passages = corpus_passages(str(corpus), [corpus], mapped)
    return passages, read_question_file(queries, passages) if queries else ()


def find_table(folder: Path, stem: str) -> Path | None:
    """Find `folder/stem` with the first ending of `ENDINGS` that exists; refuse what is no ordinary file."""
    path = next((path for ending in ENDINGS if (path := folder / f"{stem}{ending}").exists()), None)
    return path and regular(path)


def documents_of(folder: Path) -> tuple[Path, Path | None]:
    """Find a folder's documents and questions: `documents/` and `questions.*`, else itself and `queries.*`."""
    documents, queries = folder / "documents", find_table(folder, "queries")
    if queries is None and documents.is_dir() and (questions := find_table(folder, "questions")):
        return documents, questions
    return folder, queries


def no_data_set(folder: Path) -> InputError:
    """Make the error for a folder in no known layout."""
    return InputError(
        f"{folder}: no corpus{_WANTED} and no documents (.md, .html, .pdf, .txt); {contents(folder)}. {LAYOUTS}"
    )


def missing_questions(folder: Path) -> InputError:
    """Make the error for a folder without the questions that are needed."""
    return InputError(
        f"{folder}: no queries{_WANTED}; {contents(folder)}. It is a corpus without questions, which are needed "
        "here: write them into that file, or name another with --questions; `hopbench graph build` needs none"
        + ("" if find_table(folder, "corpus") else f". If it is another kind of data set: {LAYOUTS}")
    )


def contents(folder: Path) -> str:
    """Describe a folder's content for a message."""
    names = sorted(path.name for path in folder.iterdir())
    more = f" and {len(names) - MAX_LISTED_FILES:,} more" if len(names) > MAX_LISTED_FILES else ""
    return f"the folder holds {', '.join(names[:MAX_LISTED_FILES]) or 'nothing'}{more}"


def write_benchmark(benchmark: Benchmark, folder: Path) -> None:
    """Write `corpus.jsonl`, and `queries.jsonl` and `qrels/test.tsv` where there are questions and gold.

    Where some question has alternative sets, which judgements cannot express, all gold stands in `queries.jsonl`.
    Passages that are not gold are written only if there are grades other than 0 and 1. Raises InputError when the
    folder holds something, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--out {folder}: holds something already: name a folder that does not exist")
    rows = (
        {"_id": one.id, "title": one.title, "text": one.text}
        | ({"metadata": one.source.facts()} if one.source else {})
        | ({"links": [asdict(link) for link in one.links]} if one.links else {})
        for one in benchmark.passages
    )
    write_atomically(folder / "corpus.jsonl", json_lines(rows))
    if not benchmark.questions:
        return
    sets = any(len(one.gold.sets) > 1 for one in benchmark.questions)
    queries = (
        {
            "_id": one.id,
            "text": one.text,
            "metadata": dict(one.metadata)
            | ({"type": one.type} if one.type else {})
            | ({"answer": one.answer, "answer_aliases": list(one.aliases)} if one.answer is not None else {}),
        }
        | ({GOLD_FIELD: one.gold.sets if len(one.gold.sets) > 1 else one.gold} if sets else {})
        for one in benchmark.questions
    )
    write_atomically(folder / "queries.jsonl", json_lines(queries))
    graded = any(one.gold.graded for one in benchmark.questions)
    lines = "".join(
        f"{one.id}\t{passage}\t{grade}\n"
        for one in benchmark.questions
        for passage, grade in ((graded and one.gold.grades) or dict.fromkeys(one.gold, 1)).items()
    )
    if lines and not sets:
        write_atomically(folder / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{lines}".encode())


def json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Write rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows).encode()


def read_card(folder: Path) -> dict[str, Any]:
    """Read the front matter of `folder/README.md` (between two `---` lines); empty when there is none."""
    path = folder / "README.md"
    if not path.is_file():
        return {}
    lines = [text for _, text in read_lines(path, blank=True)]
    rules = [number for number, line in enumerate(lines) if line.strip() == "---"]
    if len(rules) < 2 or rules[0] != 0:
        return {}
    try:
        card = parse_yaml("\n".join(lines[1 : rules[1]]), str(path))
    except YamlError as error:
        raise InputError(f"{path}, line {error.line + 1}: the front matter is not YAML ({error.problem})") from error
    if card is not None and not isinstance(card, dict):
        raise InputError(f"{path}, line 2: the front matter must hold named fields, such as 'hopbench: {{role: tune}}'")
    return card or {}


def has_card(folder: Path) -> bool:
    """Whether the front matter of `folder/README.md` has a field `hopbench`; a document's own may be anything."""
    try:
        return "hopbench" in read_card(folder)
    except InputError:
        return False


def role_of(name: str, *, has_gold: bool, folder: Path | None = None) -> Role:
    """Decide what a benchmark may be used for.

    The word of the folder's card counts first (`hopbench: {role: tune}` or `report`). Else: questions without gold can
    neither tune nor report (`user`); a name with the word `train` or `tune` in it is for tuning; the rest is for
    reporting.
    """
    stated = read_card(folder).get("hopbench") if folder else None
    if stated is not None:
        role = stated.get("role") if isinstance(stated, dict) else stated
        if role not in get_args(Role):
            raise InputError(
                f"{folder}/README.md: field 'hopbench.role' is {role!r}, must be one of {', '.join(get_args(Role))}"
            )
        return cast(Role, role)
    if not has_gold:
        return "user"
    return "tune" if _TUNING_NAME.search(name) else "report"


def set_role(folder: Path, role: str) -> Path:
    """Write the role, tune or report, into the card of a data set's folder; return the card's path."""
    role = ALSO.get(role, role)
    if role not in SETTABLE:
        raise UnknownNameError("role", role, SETTABLE)
    path = folder / "README.md"
    stated = f"hopbench:\n  role: {role}\n"
    if path.is_symlink():
        raise InputError(f"{path}: is a link, and what it leads to is not changed: put a file there")
    try:
        text = read_bytes(path, CARD_LIMIT).decode("utf-8-sig") if path.exists() else ""
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 at byte {error.start:,}: save it as UTF-8") from error
    card = read_card(folder)
    if not isinstance(card.get("hopbench", {}), dict) or set(card.get("hopbench", {})) - {"role"}:
        raise InputError(f"{path}: field 'hopbench' says more than a role: change `role` there by hand")
    plain = text.replace("\r\n", "\n")
    if front := _FRONT.match(plain):
        text = f"---\n{_STATED.sub('', front[1])}{stated}---{plain[front.end() :]}"
    else:
        text = f"---\n{stated}---\n{text}"
    write_atomically(path, text.encode())
    if role_of("", has_gold=False, folder=folder) != role:
        raise InputError(f"{path}: the role could not be written into its front matter: add the lines {stated!r} there")
    return path
