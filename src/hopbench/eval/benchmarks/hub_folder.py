"""Folders as the Hub has them and `datasets` writes them: a table for each part (MTEB, BEIR), or one of records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from hopbench.eval.benchmarks.beir import Parsed, missing_questions
from hopbench.eval.benchmarks.card import read_card
from hopbench.eval.benchmarks.mapped import mapped_passages
from hopbench.eval.benchmarks.official import detect
from hopbench.eval.benchmarks.passages import read_passages
from hopbench.eval.benchmarks.question_files import read_judgements, read_query_rows, read_questions_with_gold
from hopbench.eval.benchmarks.questions import attach_gold
from hopbench.eval.benchmarks.splits import (
    EVALUATION_SPLITS,
    GOLD_SPLITS,
    Splits,
    by_split,
    chosen_split,
    rows_of,
    saved_splits,
    split_name,
    splits_of,
)
from hopbench.retrieval.corpus import ids_of
from hopbench.retrieval.support.errors import InputError

CORPUS, QUERIES = "corpus", "queries"
JUDGED = ("qrels", "default", "data")
RECORDS = ""
Parts = Mapping[str, Splits]


def parts_of(folder: Path) -> Parts:
    """Part → split → files: `corpus`, `queries` and one of `JUDGED`, or `RECORDS` alone; empty for other folders."""
    saved = saved_splits(folder)
    if saved is not None and not {CORPUS, QUERIES} <= saved.keys():
        return {RECORDS: saved}
    if saved is not None:
        return {name: {name: files} for name, files in saved.items()}
    configured = _configured(folder)
    named = {name: splits_of(folder / name) for name in (CORPUS, QUERIES, *JUDGED)}
    parts = {name: splits for name, splits in (*named.items(), *configured.items()) if splits}
    return parts if CORPUS in parts else {}


def _configured(folder: Path) -> dict[str, Splits]:
    """The parts that the card's `configs` name, as far as their files are there."""
    try:
        configs = read_card(folder).get("configs")
    except InputError:  # a README.md of another kind
        return {}
    listed = [one for one in configs if isinstance(one, dict)] if isinstance(configs, list) else []
    return {str(one.get("config_name")): _splits(folder, one.get("data_files")) for one in listed}


def _splits(folder: Path, given: object) -> Splits:
    """A config's `data_files`: a pattern, a list of them, or a list of splits with their patterns."""
    splits: dict[str, list[Path]] = {}
    for one in given if isinstance(given, list) else [given]:
        patterns, split = (one.get("path"), one.get("split")) if isinstance(one, dict) else (one, None)
        files = [file for pattern in _texts(patterns) for file in _matching(folder, pattern)]
        for found, shards in by_split(files, folder).items():
            splits.setdefault(str(split or found), []).extend(shards)
    return splits


def _texts(patterns: object) -> Iterator[str]:
    for one in patterns if isinstance(patterns, list) else [patterns]:
        if isinstance(one, str) and one and ".." not in Path(one).parts and not Path(one).is_absolute():
            yield one


def _matching(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except (ValueError, NotImplementedError):  # a pattern of another kind than pathlib's
        return []


def read_parts(
    folder: Path, parts: Parts, format: str | None, *, need_questions: bool, mapped: Path | None
) -> tuple[str, Parsed]:
    """The split that was read, where that says what the set is, and its content.

    Raises
    ------
    InputError
        For a part that is missing, splits of which none can be chosen, and anything wrong in a file.
    """
    if RECORDS in parts:
        split = split_name(folder, parts[RECORDS], EVALUATION_SPLITS)
        rows, reader = detect(rows_of(parts[RECORDS][split]), str(folder), format)
        return split, reader(str(folder), rows)
    judged = next((name for name in JUDGED if name in parts), None)
    split = split_name(folder / judged, parts[judged], GOLD_SPLITS) if judged else ""
    corpus = chosen_split(folder / CORPUS, parts[CORPUS], (split,))
    passages = mapped_passages(corpus, mapped) if mapped else read_passages(str(folder / CORPUS), rows_of(corpus))
    if QUERIES not in parts:
        if need_questions:
            raise missing_questions(folder)
        return "", (passages, ())
    source = str(folder / QUERIES)
    rows = rows_of(chosen_split(folder / QUERIES, parts[QUERIES], (split,)))
    if judged is None:
        return "", (passages, read_questions_with_gold(source, rows, ids_of(passages)))
    judgements, questions = read_judgements(rows_of(parts[judged][split])), read_query_rows(source, rows)
    return "", (passages, attach_gold(str(folder / judged), questions, judgements, ids_of(passages)))
